# SPDX-License-Identifier: GPL-2.0-only
"""Linear is what the machine gives: the controls of a run, and what goes by them."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from fscale.analysis.compare.sides import open_sides
from fscale.analysis.control import Basis, Control, Given
from fscale.analysis.diagnosis.run import diagnose
from fscale.analysis.diagnosis.verdict import Shape as DiagnosedShape
from fscale.analysis.diagnosis.verdict import shape_of
from fscale.analysis.findings import Scaling, findings
from fscale.analysis.members import Member
from fscale.analysis.reader import load
from fscale.analysis.report import build, controls, headline, interactive, tables
from fscale.analysis.report.section import Report
from fscale.model.results import NO_FILESYSTEM, Cell, CellKey
from tests.support import synthetic
from tests.support.synthetic import cell, cpus_of, descriptor, machine, write_run

pytestmark = pytest.mark.slow

COUNTS = (1, 2, 4, 8, 16)
TURBO = {1: 1.0, 2: 1.96, 4: 3.7, 8: 6.9, 16: 12.5}  # one busy core is faster than sixteen
CONTENDED = {1: 1.0, 2: 1.5, 4: 1.9, 8: 2.1, 16: 2.2}
FLAT = {n: float(n) for n in COUNTS}
STRAY = (1.0, 0.995, 1.005)  # of the repetitions

Shape = Mapping[int, float]


def key(workload: str, cores: int, repetition: int, filesystem: str = "ext4") -> CellKey:
    medium = "none" if filesystem == NO_FILESYSTEM else "ram"
    return synthetic.key(
        repetition, workload=workload, filesystem=filesystem, medium=medium, cores=cores
    )


def curve(workload: str, shape: Shape, filesystem: str = "ext4") -> list[Cell]:
    return [
        cell(key(workload, n, r, filesystem), 1e5 * factor * stray)
        for n, factor in shape.items()
        for r, stray in enumerate(STRAY, 1)
    ]


def control(shape: Shape, workload: str = "control_user") -> list[Cell]:
    return curve(workload, shape, NO_FILESYSTEM)


def report(where: Path, cells: list[Cell], sockets: int = 1, threads: int = 1) -> Report:
    cores = 16 // sockets // threads
    path = write_run(
        where, cells, workloads=["DRBL", "MWCM", "DRBL_bg"], filesystems=["ext4"], cpus=16,
        machine=machine(16, cpus_of(sockets, cores, threads)),
    )  # fmt: skip
    return Report((Member(load(path)),), where)


def verdicts(of: Report) -> dict[str, Scaling]:
    return {f.panel.workload: f.verdict for page in of.pages for f in findings(page)}


def given(of: Report, cores: int) -> Given:
    (found,) = of.controls.values()
    assert found is not None
    return next(g for g in found.given if g.cores == cores)


MEASURED = [*curve("DRBL", TURBO), *curve("MWCM", CONTENDED)]


def test_without_a_control_linear_is_by_physical_cores(tmp_path: Path) -> None:
    made = report(tmp_path, MEASURED)
    assert made.controls == {None: None}
    assert verdicts(made) == {"DRBL": Scaling.PARTLY, "MWCM": Scaling.PARTLY}
    assert made.pages[0].panels[0].curves[0].linear == 16
    assert made.pages[0].panels[0].given is None


def test_what_shares_nothing_scales_as_the_machine_does(tmp_path: Path) -> None:
    made = report(tmp_path, [*MEASURED, *control(TURBO)])
    assert verdicts(made) == {"DRBL": Scaling.SCALES, "MWCM": Scaling.PARTLY}
    curves = {panel.workload: panel.curves[0] for panel in made.pages[0].panels}
    assert [curves["DRBL"].linear_at(p) for p in curves["DRBL"].points] == pytest.approx(
        list(TURBO.values()), rel=0.02
    )
    assert given(made, 16).basis is Basis.CONTROL
    assert given(made, 16).efficiency == pytest.approx(12.5 / 16, rel=0.02)


def test_the_diagnosis_and_the_law_go_by_it(tmp_path: Path) -> None:
    plain = write_run(tmp_path / "plain", MEASURED, workloads=["DRBL", "MWCM"], cpus=16)
    both = write_run(
        tmp_path / "both", [*MEASURED, *control(TURBO)], workloads=["DRBL", "MWCM"], cpus=16
    )
    laws = {
        name: {law.workload: law.fit for law in diagnose(load(path)).laws}
        for name, path in (("plain", plain), ("both", both))
    }
    free, bound = laws["both"]["DRBL"], laws["plain"]["DRBL"]
    assert free is not None
    assert bound is not None
    assert free.sigma.value + free.kappa.value < 0.001 < bound.sigma.value + bound.kappa.value
    contended = laws["both"]["MWCM"]
    assert contended is not None
    assert contended.sigma.value > 0.2


@pytest.mark.parametrize(
    ("machine_gives", "work_gives", "verdict"),
    [
        ({1: 1, 8: 8, 10: 8.2, 12: 7.7}, {1: 1, 8: 8, 10: 8.2, 12: 7.7}, DiagnosedShape.SCALES),
        ({1: 1, 8: 8, 10: 8.2, 12: 4}, {1: 1, 8: 8, 10: 8.2, 12: 4}, DiagnosedShape.SATURATES),
        ({1: 1, 8: 8, 10: 8.2, 12: 7.7}, {1: 1, 8: 8, 10: 8.2, 12: 6}, DiagnosedShape.COLLAPSES),
        ({1: 1, 2: 0.8}, {1: 1, 2: 0.8}, DiagnosedShape.SATURATES),
        ({1: 1, 2: 0.8}, {1: 1, 2: 0.6}, DiagnosedShape.COLLAPSES),
    ],
)
def test_what_the_machine_loses_is_no_collapse_of_the_file_system(
    tmp_path: Path, machine_gives: Shape, work_gives: Shape, verdict: DiagnosedShape
) -> None:
    made = report(tmp_path, [*curve("DRBL", work_gives), *control(machine_gives)])
    shape, _, _ = shape_of(made.pages[0].panels[0].curves[0])
    assert shape is verdict
    falls = work_gives[max(work_gives)] < min(1, machine_gives[max(work_gives)])
    assert (verdicts(made)["DRBL"] is Scaling.FALLS) is falls


def test_a_control_that_is_half_as_fast_is_no_yardstick(tmp_path: Path) -> None:
    half = {n: max(1.0, n / 2) for n in COUNTS}
    made = report(tmp_path, [*curve("DRBL", half), *control(half)])
    assert verdicts(made) == {"DRBL": Scaling.PARTLY}
    assert given(made, 16).basis is Basis.DEGRADED
    assert given(made, 16).efficiency == 1
    said = controls.limits(made.controls[None])
    assert len([s for s in said if " at 16 cores" in s and "60%" in s]) == 1


def test_the_control_that_gains_most_counts(tmp_path: Path) -> None:
    """A fault in the kernel's entry slows one of them, and must not excuse file systems."""
    for slow, fast in (("control_syscall", "control_user"), ("control_user", "control_syscall")):
        cells = [*MEASURED, *control(CONTENDED, slow), *control(TURBO, fast)]
        made = report(tmp_path / slow, cells)
        assert given(made, 16).efficiency == pytest.approx(12.5 / 16, rel=0.02)
        assert {name for name, _, _ in given(made, 16).speedups} == {slow, fast}


def noisy(cells: list[Cell]) -> list[Cell]:
    """One of three repetitions at the most cores is a quarter faster, as linear would be."""
    return [
        cell(c.key, 1.3 * c.ops_per_second) if c.key.cores == 16 and c.key.repetition == 1 else c
        for c in cells
    ]


def disturbed(cells: list[Cell]) -> list[Cell]:
    return [
        c.model_copy(update={"disturbed": "others took 0.5 CPUs"}) if c.key.repetition < 3 else c
        for c in cells
    ]


def first_only(cells: list[Cell]) -> list[Cell]:
    return [c for c in cells if c.key.repetition == 1]


def failed(cells: list[Cell]) -> list[Cell]:
    return [
        c.model_copy(update={"status": "error", "reason": "x"}) if c.key.cores == 16 else c
        for c in cells
    ]


def without_base(cells: list[Cell]) -> list[Cell]:
    return [c for c in cells if c.key.cores > 1]


@pytest.mark.parametrize(
    ("spoil", "basis"),
    [
        (noisy, Basis.SPREAD),
        (disturbed, Basis.MISSING),
        (first_only, Basis.MISSING),
        (failed, Basis.MISSING),
        (without_base, Basis.MISSING),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_what_is_not_sure_of_a_control_turns_no_verdict(
    tmp_path: Path, spoil: Callable[[list[Cell]], list[Cell]], basis: Basis
) -> None:
    made = report(tmp_path, [*MEASURED, *spoil(control(TURBO))])
    assert given(made, 16).basis is basis
    assert given(made, 16).efficiency == 1
    assert verdicts(made)["DRBL"] is Scaling.PARTLY
    said = [s for s in controls.limits(made.controls[None]) if "16" in s]
    assert len(said) == (basis is Basis.MISSING)
    assert 'id="control"' in build(tmp_path).read_text()


def test_a_control_never_raises_linear(tmp_path: Path) -> None:
    made = report(tmp_path, [*MEASURED, *control({n: 1.2 * n if n > 1 else 1 for n in COUNTS})])
    assert {g.efficiency for g in made.controls[None].given} == {1.0}  # type: ignore[union-attr]


def test_hardware_threads_add_nothing_to_linear(tmp_path: Path) -> None:
    shape = {1: 1.0, 2: 1.96, 4: 3.7, 8: 6.4, 16: 9.6}
    made = report(tmp_path, [*curve("DRBL", shape), *control(shape)], threads=2)
    assert made.pages[0].panels[0].curves[0].linear == pytest.approx(6.4, rel=0.01)
    assert given(made, 16).linear == 8
    hot = {**shape, 16: 5.6}
    made = report(tmp_path / "hot", [*curve("DRBL", shape), *control(hot)], threads=2)
    assert made.pages[0].panels[0].curves[0].linear == pytest.approx(5.6, rel=0.01)


def test_beside_a_writer_the_readers_cores_count(tmp_path: Path) -> None:
    readers = {n: factor for n, factor in TURBO.items() if n > 1}
    made = report(tmp_path, [*curve("DRBL_bg", readers), *control(TURBO)])
    (own,) = made.pages[0].panels[0].curves
    assert own.linear == pytest.approx(15 * (12.5 / 16) / (1.96 / 2), rel=0.02)


def test_the_line_of_the_machine_is_what_the_control_measured(tmp_path: Path) -> None:
    made = report(tmp_path, [*MEASURED, *control(TURBO)])
    panel = made.pages[0].panels[0]
    assert panel.given is not None
    assert dict(panel.given.factors) == pytest.approx(TURBO)
    drawn = interactive.data(made)["panels"][0]["given"]
    assert [n for n, _ in drawn] == list(COUNTS)
    page = build(tmp_path).read_text()
    assert 'id="control"' in page
    assert "-given-ideal" in page


def test_controls_are_no_cells_of_the_run(tmp_path: Path) -> None:
    path = write_run(tmp_path, [*MEASURED, *control(TURBO)], workloads=["DRBL", "MWCM"], cpus=16)
    results = load(path)
    assert len(results.controls) == 3 * len(COUNTS)
    assert len(results.cells) == len(results.scored) == len(MEASURED)
    assert results.missing == 0
    assert not any(c.key.control for c in results.cells)
    sides = open_sides(path, path)
    compared = [*sides.base_cells, *sides.new_cells]
    assert len(compared) == 2 * len(MEASURED)
    assert not any(c.key.control for c in compared)


def test_a_run_of_controls_that_all_failed_says_so(tmp_path: Path) -> None:
    broken = [c.model_copy(update={"status": "error"}) for c in control(TURBO)]
    made = report(tmp_path, [*MEASURED, *broken])
    assert [g.basis for g in made.controls[None].given][1:] == [Basis.MISSING] * 4  # type: ignore[union-attr]
    assert made.pages[0].panels[0].given is None
    assert 'id="control"' in build(tmp_path).read_text()


@pytest.mark.parametrize(("factor", "drawn"), [(0.9, 14.4), (1.0, 16), (1.1, 16)])
def test_no_machine_is_drawn_to_give_more_than_linear(
    tmp_path: Path, factor: float, drawn: float
) -> None:
    made = report(tmp_path, [*MEASURED, *control({n: n * (factor if n > 1 else 1) for n in TURBO})])
    (found,) = made.controls.values()
    assert found is not None
    assert found.measured(16) == pytest.approx(drawn)


def test_nothing_is_known_between_core_counts() -> None:
    assert Control((), ()).given == ()
    assert Control((), (1, 2)).efficiency(3) == 1
    assert Control((), (1, 2)).measured(2) is None
    assert descriptor("DRBL").control is False


def test_heat_and_frequency_are_told(tmp_path: Path) -> None:
    cells = [
        c.model_copy(update={"frequency_khz": 2_500_000 if c.key.cores > 1 else 3_500_000})
        for c in [*MEASURED, *control(TURBO)]
    ]
    hot = {cells[0].id, cells[-1].id}
    cells = [c.model_copy(update={"thermal_throttled": int(c.id in hot)}) for c in cells]
    made = report(tmp_path, cells)
    throttled = [t for t in tables.troubles(made) if t.state == "throttled"]
    assert {name for t in throttled for name in t.cells} == hot
    assert (given(made, 1).khz, given(made, 16).khz) == (3_500_000, 2_500_000)
    assert ">3.50<" in build(tmp_path).read_text()
    assert any("throttled for heat during 1 cells" in limit for limit in headline.limits(made))
    cool = report(tmp_path / "cool", [*MEASURED, *control(TURBO)])
    assert given(cool, 16).khz is None
    assert not any("heat" in limit for limit in headline.limits(cool))


def test_a_report_of_disturbed_cells_says_so_first(tmp_path: Path) -> None:
    busy = [cell.model_copy(update={"disturbed": "a build"}) for cell in curve("DRBL", FLAT)]
    first = headline.limits(report(tmp_path / "busy", busy))[0]
    assert first.startswith("Other processes disturbed 100% of the repetitions (15 of 15)")
    some = report(tmp_path / "some", [*busy[:3], *curve("DRBL", FLAT)[3:]])
    assert not any("disturbed" in limit for limit in headline.limits(some))
