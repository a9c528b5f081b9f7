# SPDX-License-Identifier: GPL-2.0-only
"""A sweep of three block sizes by two core counts on two file systems, in everything that reads it.

No value is ever mixed with another: each has its curve, base, point and series.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib import pyplot as plt
from typer.testing import CliRunner

import fscale
from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.curves import curve_tests
from fscale.analysis.compare.noise import measure_noise
from fscale.analysis.compare.pairs import match_cells, pair
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.analysis.diagnosis.run import diagnose
from fscale.analysis.formats.run import FORMATS
from fscale.analysis.history import index
from fscale.analysis.history.trend import trends
from fscale.analysis.members import Member
from fscale.analysis.metrics import THROUGHPUT
from fscale.analysis.numbers import times
from fscale.analysis.reader import load
from fscale.analysis.report import build, repeat
from fscale.analysis.report.section import Report
from fscale.analysis.report.sweeps import rows
from fscale.analysis.style import lines
from fscale.analysis.sweeps import Sweep, sweeps
from fscale.cli import app
from fscale.commands.options.formats import Format
from fscale.model.errors import FscaleError
from fscale.model.results import Cell, CellKey
from tests.support.guide import boxes, page
from tests.support.synthetic import cell, key, machine, sliced, write_run

BLOCKS = (4096, 16384, 65536)
RISES = {4096: 1.9, 16384: 1.5, 65536: 0.8}
FILESYSTEMS = ("ext4", "xfs")


def rate(key: CellKey) -> float:
    """From 1 to 2 cores the rate grows by a factor that depends on the block alone."""
    block = int(key.options.get("block", 4096))
    one = 1e6 / block**0.5 * (2 if key.filesystem == "xfs" else 1)
    return one * (RISES[block] if key.cores == 2 else 1) * (1 + key.repetition / 1000)


def swept(
    repetitions: int = 3, of: Callable[[CellKey], float] = rate, **changes: Any
) -> list[Cell]:
    keys = [
        key(r, workload="DWAL", filesystem=fs, cores=cores, options={"block": block}, **changes)
        for fs in FILESYSTEMS
        for block in BLOCKS
        for cores in (1, 2)
        for r in range(1, repetitions + 1)
    ]
    return [cell(one, of(one)) for one in keys]


def write(directory: Path, cells: list[Cell], **changes: Any) -> Path:
    given = {"workloads": ("DWAL",), "filesystems": FILESYSTEMS} | changes
    return write_run(directory, cells, **given)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write(tmp_path / "run", swept())


def found(*runs: Path) -> list[Sweep]:
    labels = [None] if len(runs) == 1 else [str(number) for number in range(len(runs))]
    members = [Member(load(run), label) for run, label in zip(runs, labels, strict=True)]
    return sweeps(Report(tuple(members), runs[0]).pages)


def test_a_sweep_has_a_curve_for_each_value_and_each_its_own_base(run: Path) -> None:
    one, other = found(run)
    assert (one.name, other.name) == ("DWAL on ext4 by block", "DWAL on xfs by block")
    assert [member.value for member in one.members] == list(BLOCKS)
    assert [curve.name for curve in one.panel.curves] == [f"block={block}" for block in BLOCKS]
    for sweep in (one, other):
        for block, curve in zip(BLOCKS, sweep.panel.curves, strict=True):
            assert curve.top_speedup is not None
            assert curve.top_speedup.value == pytest.approx(RISES[block])
    assert len(set(lines(dict.fromkeys(one.names)).values())) == 3


def test_points_in_several_axes_are_in_a_sweep_of_each(tmp_path: Path) -> None:
    keys = [
        key(
            filesystem=fs, cores=cores, workers_per_cpu=workers, options={"block": block, "keep": 1}
        )
        for fs in ("ext4", "ext4:mount=commit=1", "tmpfs")
        for block in (512, 1024)
        for workers in (1, 2)
        for cores in (1, 2)
    ]
    named = [sweep.name for sweep in found(write(tmp_path, [cell(k, 1.0) for k in keys]))]
    assert len(named) == len(set(named))
    assert set(named) == {
        *(f"DRBL keep=1{w} on {fs} by block" for w in ("", " workers_per_cpu=2")
          for fs in ("ext4", "ext4:mount=commit=1", "tmpfs")),
        *(f"DRBL block={b} keep=1 on {fs} by workers_per_cpu" for b in (512, 1024)
          for fs in ("ext4", "ext4:mount=commit=1", "tmpfs")),
        *(f"DRBL block={b} keep=1{w} on ext4 by options" for w in ("", " workers_per_cpu=2")
          for b in (512, 1024)),
    }  # fmt: skip


def test_values_ascend(tmp_path: Path) -> None:
    names = [*(f"ext4:mount=commit={n}" for n in (30, 5, 100)), "ext4"]
    keys = [key(filesystem=fs, options={"at": at}) for fs in names for at in (5, -1, 30, -30)]
    cells = [cell(one, 1.0) for one in keys]
    of_options, *_, of_at = sorted(
        found(write(tmp_path, cells, filesystems=names)), key=lambda sweep: -len(sweep.axis)
    )
    assert [m.value for m in of_at.members] == [-30, -1, 5, 30]
    commits = [f"mount=commit={n}" for n in (5, 30, 100)]
    assert [m.value for m in of_options.members] == ["default", *commits]


def test_what_does_not_vary_is_no_sweep(tmp_path: Path) -> None:
    alike = [cell(key(filesystem=fs, options={"block": 512}), 1.0) for fs in ("ext4", "xfs", "a:8")]
    assert found(write(tmp_path / "a", alike)) == []
    sides = [cell(key(filesystem=fs, side=side), 1.0)
             for fs, side in (("ext4", "A"), ("ext4:mount=commit=1", "B"))]  # fmt: skip
    assert found(write(tmp_path / "b", sides)) == []
    longer = [cell(key(duration=d, options={"block": b}), 1.0) for d, b in ((1, 512), (2, 1024))]
    assert found(write(tmp_path / "c", longer)) == []


def test_a_file_systems_options_are_the_values_of_a_sweep(tmp_path: Path) -> None:
    names = ("ext4", "ext4:mount=commit=1", "ext4:mount=commit=30", "xfs")
    cells = [cell(key(filesystem=fs, cores=c), 1.0 * c) for fs in names for c in (1, 2)]
    (sweep,) = found(write(tmp_path, cells, filesystems=names))
    assert sweep.name == "DRBL on ext4 by options"
    assert [curve.name for curve in sweep.panel.curves] == [
        "default", "mount=commit=1", "mount=commit=30",
    ]  # fmt: skip


def test_the_sweeps_of_several_runs_stay_apart(tmp_path: Path) -> None:
    runs = [write(tmp_path / name, swept(), id=name) for name in ("a", "b")]
    named = [sweep.name for sweep in found(*runs)]
    assert named == [
        f"DWAL on {fs} ({label}) by block" for fs in FILESYSTEMS for label in ("0", "1")
    ]


def test_the_heat_map_has_a_square_for_each_point(run: Path) -> None:
    sweep = found(run)[0]
    table = rows(sweep, lines(dict.fromkeys(sweep.names)), "x")
    assert [len(row.squares) for row in table] == [2, 2, 2]
    shares = []
    for block, row in zip(BLOCKS, table, strict=True):
        base, top = row.squares
        assert base is not None and top is not None
        assert (base.ratio, base.colours) == (None, None)
        assert top.ratio is not None and top.colours is not None
        assert top.ratio.value == pytest.approx(RISES[block])
        shares.append(top.colours[0])
    assert len(set(shares)) == 3


def test_the_page_shows_curves_and_heat_map(run: Path, tmp_path: Path) -> None:
    html = build(run, tmp_path / "report").read_text()
    section = html.partition('id="sweeps"')[2].partition("</section>")[0]
    assert [re.sub(r"\s+", " ", title) for title in re.findall("<h3>(.*?)</h3>", section)] == [
        "DWAL on ext4 by block", "DWAL on xfs by block",
    ]  # fmt: skip
    for rise in RISES.values():
        assert section.count(f"<b>{times(rise)}</b>") == 2
    assert section.count("<figure>") == 2
    ids = re.findall(r' id="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    alone = write(tmp_path / "alone", [c for c in swept() if c.key.options == {"block": 4096}])
    assert 'id="sweeps"' not in build(alone).read_text()


def test_plots_for_a_paper(run: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(run), "--output", str(tmp_path / "report")])
    assert done.exit_code == 0, done.output
    drawn = {path.stem for path in (tmp_path / "report" / "plots").glob("sweep*.pdf")}
    assert drawn == {
        f"sweep-DWAL-on-{fs}-by-block{kind}" for fs in FILESYSTEMS for kind in ("", "-heat")
    }
    heat = tmp_path / "report" / "plots" / "sweep-DWAL-on-ext4-by-block-heat.svg"
    texts = re.findall(r">([^<>]+)</text>", heat.read_text())
    assert {"block=4096", "1.90", "1.50", "0.80", "DWAL on ext4 by block"} <= set(texts)


def test_a_terminal_shows_the_curves_by_value(run: Path) -> None:
    done = CliRunner(env={"COLUMNS": "80"}).invoke(app, ["show", str(run)])
    title, _, rest = done.output.partition("DWAL on ext4 by block")
    assert "o block=4096  # block=16384  ^ block=65536" in title.replace("\u00a0", " ")
    head = next(line for line in rest.splitlines() if line.startswith("cores"))
    assert head.split() == ["cores", "block=4096", "block=16384", "block=65536"]


def test_the_table_and_a_curve_in_python(run: Path) -> None:
    loaded = fscale.load(run)
    table = loaded.sweeps
    assert set(table.axis) == {"block"}
    pivot = table.pivot_table("speedup", ["filesystem", "number"], "cores")
    assert pivot[2].tolist() == pytest.approx([*RISES.values(), *RISES.values()])
    ax = loaded.curve("DWAL on xfs by block")
    legend = ax.get_legend()
    assert legend is not None
    names = [text.get_text() for text in legend.get_texts()]
    assert names == [*(f"block={block}" for block in BLOCKS), "linear"]
    with pytest.raises(FscaleError, match=r"did you mean .*DWAL on xfs by block"):
        loaded.curve("DWAL on xfs by blocks")
    plt.close("all")


def test_the_lines_of_the_guide_give_the_heat_map(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "results" / "blocks", swept())
    *first, last = boxes(page("sweeps.md"), "python")[0].splitlines()
    names: dict[str, Any] = {}
    exec("\n".join(first), names)
    pivot = eval(last, names)
    assert pivot.shape == (6, 2)
    assert (pivot[2] / pivot[1]).tolist() == pytest.approx([*RISES.values(), *RISES.values()])


def test_the_table_is_exported_and_empty_without_a_sweep(run: Path, tmp_path: Path) -> None:
    def exported(directory: Path) -> pd.DataFrame:
        out = tmp_path / "table.csv"
        argv = ["export", str(directory), "--format", "csv", "--table", "sweeps"]
        done = CliRunner().invoke(app, [*argv, "--output", str(out)])
        assert done.exit_code == 0, done.output
        return pd.read_csv(out)

    table = exported(run)
    assert table.groupby(["axis", "value", "cores"]).size().to_dict() == {
        ("block", block, cores): 2 for block in BLOCKS for cores in (1, 2)
    }
    assert exported(write(tmp_path / "alone", [cell(key(), 1.0)])).empty


def test_a_comparison_judges_each_value_alone(tmp_path: Path) -> None:
    """Only 16384 becomes slower; if values were mixed, none or others would change."""

    def slower(key: CellKey) -> float:
        return rate(key) * (0.5 if key.options == {"block": 16384} else 1)

    sides = [write(tmp_path / "base", swept(12)), write(tmp_path / "new", swept(12, slower))]
    judged = compare(open_sides(*sides), Settings(metrics=(THROUGHPUT,)))
    points = [j for j in judged.judgements if len(j.subject.cores) == 1]
    assert len(points) == 12
    verdicts = {(j.subject.options, j.verdict) for j in points if j.metric == THROUGHPUT}
    assert verdicts == {
        ((("block", 4096),), "same"),
        ((("block", 16384),), "slower"),
        ((("block", 65536),), "same"),
    }
    assert [j.subject.options[0][1] for j in points[:6]] == [4096, 4096, 16384, 16384, 65536, 65536]


def test_a_value_that_one_side_lacks_is_missing_and_paired_with_none(tmp_path: Path) -> None:
    some = [c for c in swept(12) if c.key.options != {"block": 65536}]
    sides = [write(tmp_path / "base", swept(12)), write(tmp_path / "new", some)]
    judged = compare(open_sides(*sides), Settings())
    assert len(judged.missing_in_new) == 4
    assert all("block=65536" in name for name in judged.missing_in_new)


def test_curves_of_a_comparison_are_by_value(tmp_path: Path) -> None:
    points = pair(match_cells(swept(12), swept(12)), metrics=(THROUGHPUT,)).tests
    curves = curve_tests(points, 0.05)
    assert len(curves) == 2 * 3
    for test in curves:
        assert test.base.values[1] == pytest.approx(RISES[int(test.subject.options[0][1])])


def test_workers_are_matched_by_their_number_if_a_side_has_several() -> None:
    def crowd(*counts: int) -> list[Cell]:
        return [cell(key(r, workers_per_cpu=n), 100.0 * n) for n in counts for r in (1, 2, 3)]

    def matched(base: list[Cell], new: list[Cell]) -> dict[str, tuple[int, int]]:
        points = match_cells(base, new)
        return {s.load: (len(a), len(b)) for s, (a, b) in points.items()}

    assert matched(crowd(1, 2), crowd(1, 2)) == {
        "DRBL": (3, 3), "DRBL workers_per_cpu=2": (3, 3),
    }  # fmt: skip
    assert matched(crowd(1, 2), crowd(2)) == {"DRBL": (3, 0), "DRBL workers_per_cpu=2": (3, 3)}
    # Single numbers are matched whatever they are, if `--allow-different` permits the comparison.
    assert matched(crowd(1), crowd(2)) == {"DRBL": (3, 3)}


def test_runs_of_different_sweeps_of_workers_are_compared(tmp_path: Path) -> None:
    def crowd(directory: Path, counts: list[int]) -> Path:
        cells = [cell(key(r, workers_per_cpu=n), 100.0 * n + r) for n in counts
                 for r in range(1, 13)]  # fmt: skip
        suite = {"title": "t", "workers_per_cpu": counts if len(counts) > 1 else counts[0]}
        return write_run(directory, cells, workloads=["DRBL"], filesystems=["ext4"], suite=suite)

    two, three = crowd(tmp_path / "two", [1, 2]), crowd(tmp_path / "three", [1, 2, 4])
    judged = compare(open_sides(two, three), Settings(metrics=(THROUGHPUT,)))
    assert {j.verdict for j in judged.judgements} == {"same"}
    assert [name for name in judged.missing_in_base if "workers_per_cpu=4" in name]
    one, four = crowd(tmp_path / "one", [1]), crowd(tmp_path / "four", [4])
    with pytest.raises(FscaleError, match=r"suite\.workers_per_cpu: 1 and 4"):
        compare(open_sides(one, four), Settings())
    # In one report the numbers of several runs share no curve.
    pages = Report((Member(load(two), "a"), Member(load(four), "b")), tmp_path).pages
    assert [panel.name for page in pages for panel in page.panels] == [
        "DRBL", "DRBL workers_per_cpu=2", "DRBL workers_per_cpu=4",
    ]  # fmt: skip


def test_noise_is_by_value(tmp_path: Path) -> None:
    run = write(tmp_path, [*swept(8, side="A"), *swept(8, side="B")])
    (tmp_path / "ab.json").write_text(
        json.dumps({"schema": 1, "base": "ext4", "new": "ext4", "looks": []})
    )
    measured = measure_noise(open_sides(run, None), Settings(metrics=(THROUGHPUT,)), 10, 0.05)
    rates = [point for point in measured.points if point.metric == THROUGHPUT]
    assert len(rates) == 12
    assert all(point.repetitions == 16 and point.cv < 0.01 for point in rates)


def test_history_has_a_series_for_each_value(tmp_path: Path) -> None:
    runs = [write(tmp_path / str(n), swept(), id=str(n)) for n in range(2)]
    with index.opened(tmp_path / "index.sqlite") as opened:
        for one in runs:
            index.add(opened, one)
        series = trends(opened, THROUGHPUT)
    assert len(series) == 12
    assert all(len(one.values) == 2 for one in series)
    assert len({one.place.circumstances for one in series}) == 3


def test_history_tells_the_workers_of_a_sweep_apart(tmp_path: Path) -> None:
    cells = [cell(key(r, workers_per_cpu=n), 100.0 * n) for n in (1, 2) for r in (1, 2, 3)]
    suite = {"title": "t", "workers_per_cpu": [1, 2]}
    run = write_run(tmp_path / "r", cells, workloads=["DRBL"], filesystems=["ext4"], suite=suite)
    with index.opened(tmp_path / "index.sqlite") as opened:
        index.add(opened, run)
        series = trends(opened, THROUGHPUT)
    assert [(one.place.circumstances, one.values[0].median) for one in series] == [
        ("ram buffered 1s", 100), ("ram buffered 1s workers_per_cpu=2", 200),
    ]  # fmt: skip


def test_scaling_laws_are_by_value(tmp_path: Path) -> None:
    keys = [
        key(r, cores=n, options={"block": b}) for b in BLOCKS for n in (1, 2, 4, 8) for r in (1, 2)
    ]
    cells = [cell(k, 100.0 * k.cores ** (0.9 if k.options["block"] == 4096 else 0.2)) for k in keys]
    run = write_run(tmp_path, cells, workloads=["DRBL"], cpus=8, machine=machine(8))
    laws = {law.workload: law.curve.top_speedup for law in diagnose(load(run)).laws}
    assert {name: round(ratio.value, 2) for name, ratio in laws.items() if ratio} == {
        "DRBL block=4096": 6.5, "DRBL block=16384": 1.52, "DRBL block=65536": 1.52,
    }  # fmt: skip


def test_a_point_is_measured_again_at_its_value_alone(tmp_path: Path) -> None:
    command = (
        "/x/fscale/__main__.py run quick --option DWAL.block=4k,16k --set workers_per_cpu=[1,2] "
        "--set latency=true --set=workers_per_cpu=[1,2] --output results/a"
    )
    suite = {"title": "t", "workers_per_cpu": [1, 2]}
    run = load(write(tmp_path, swept(), command=[command], suite=suite)).run
    again = repeat.command(run, key(workload="DWAL", options={"block": 16384}, workers_per_cpu=2))
    assert again == (
        "bin/fscale run quick --set latency=true --output results/again --workload DWAL --fs ext4 "
        "--option DWAL.block=16384 --set workers_per_cpu=2 --cores "
    )


def test_junit_and_ktap_say_the_value_of_each_point(run: Path) -> None:
    results = load(run)
    for block in BLOCKS:
        property_ = f'<property name="options" value="block={block}"/>'
        assert FORMATS[Format.JUNIT](results).count(property_) == 4
        assert FORMATS[Format.KTAP](results).splitlines().count(f"# block={block}") == 4


def test_kcidb_has_a_path_for_each_value(run: Path, tmp_path: Path) -> None:
    tests = json.loads(FORMATS[Format.KCIDB](load(run)))["tests"]
    assert len({test["path"] for test in tests}) == 12
    assert "fscale.DWAL.ext4.ram.buffered.2c.block_16384" in {test["path"] for test in tests}


def test_kcidb_has_a_path_for_each_verdict_on_a_value(tmp_path: Path) -> None:
    sides = [str(write(tmp_path / name, swept(12), id=name)) for name in ("base", "new")]
    filed = tmp_path / "kcidb.json"
    done = CliRunner().invoke(app, ["compare", *sides, "--kcidb", str(filed)])
    assert done.exit_code == 0, done.output
    paths = [test["path"] for test in json.loads(filed.read_text())["tests"]]
    assert len(paths) == len(set(paths))
    assert "fscale.DWAL.xfs.ram.buffered.2c.block_65536.throughput" in paths


def test_slices_of_each_value_are_pairs_of_their_own() -> None:
    def turns(side: str, factor: float) -> list[Cell]:
        return [
            sliced(key(r, options={"block": b}, side=side), [100.0 * factor * (b / 512)] * 20)
            for b in (512, 1024) for r in range(1, 5)
        ]  # fmt: skip

    tests = pair(match_cells(turns("A", 1), turns("B", 2)), metrics=(THROUGHPUT,)).tests
    assert {test.subject.options: len(test.ratios) for test in tests} == {
        (("block", 512),): 4, (("block", 1024),): 4,
    }  # fmt: skip
    assert all(test.base.filesystem == "ext4" for test in tests)
