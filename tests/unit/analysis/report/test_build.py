# SPDX-License-Identifier: GPL-2.0-only
"""From a results directory to report.html: what is read, refused, listed and written."""

import json
import re
from pathlib import Path

import pytest

from fscale.analysis import report as reporting
from fscale.analysis.hot import COUNTED, REMOTE
from fscale.analysis.plotsettings import PlotSettings
from fscale.analysis.reader import load
from fscale.analysis.report import Section, build
from fscale.analysis.report.tables import templates
from fscale.analysis.svg import inline
from fscale.model.bench import BenchError
from fscale.model.errors import Exit, FscaleError
from fscale.model.results import Cell, Command
from fscale.model.simulation import SimulatedWindow, Simulation
from tests.support import synthetic
from tests.support.pages import text_of
from tests.support.synthetic import cell, grid, write_run

pytestmark = pytest.mark.slow

FEW = ("DRBL",)


def small_run(directory: Path) -> Path:
    return write_run(directory, grid((1, 2), 2, FEW, ("tmpfs", "ext4")), workloads=FEW)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return small_run(tmp_path / "run")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The HTML of a run where all went well."""
    return build(small_run(tmp_path_factory.mktemp("run"))).read_text()


def markup(html: str) -> str:
    """The page without its scripts and what they read."""
    return re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)


def edit(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_not_a_results_directory(tmp_path: Path) -> None:
    with pytest.raises(FscaleError, match=r"no run\.json.*--output") as caught:
        build(tmp_path)
    assert caught.value.code == Exit.USAGE


@pytest.mark.parametrize("changes", [{"schema": 2}, {"machine": None}, {"workloads": [{"id": 1}]}])
def test_run_of_another_version(run: Path, changes: dict[str, object]) -> None:
    edit(run / "run.json", **changes)
    with pytest.raises(FscaleError, match="use the version that wrote it"):
        build(run)


def test_no_readable_cell(run: Path) -> None:
    for path in (run / "cells").iterdir():
        path.write_text("{")
    with pytest.raises(FscaleError, match="run the suite again"):
        build(run)


def test_report_cannot_be_written(run: Path) -> None:
    (run / "file").touch()
    with pytest.raises(FscaleError, match="may write to"):
        build(run, run / "file")


def test_broken_cells_are_listed_and_never_counted(run: Path) -> None:
    paths = sorted((run / "cells").iterdir())
    paths[0].write_text('{"schema": 1')
    edit(paths[1], id="another")
    edit(paths[2], ops_per_second=0)
    edit(paths[3], schema=9)
    (run / "cells" / "copy.json").write_bytes(paths[4].read_bytes())
    results = load(run)
    assert len(results.scored) == len(paths) - 4
    assert {u.file for u in results.unreadable} == {"copy.json", *(p.name for p in paths[:4])}
    words = text_of(build(run))
    assert "5 unreadable" in words
    assert "but it counted nothing" in words
    assert all(p.name in words for p in paths[:4])


def test_failed_and_profiled_cells_are_listed_and_never_counted(run: Path) -> None:
    key = load(run).cells[0].key
    error = BenchError(
        call="pwrite", path="/mnt/x", errno=28, name="ENOSPC", message="No space left", worker=0
    )
    failed = cell(key.model_copy(update={"repetition": 7}), 9e9, status="error", reason="no space")
    assert failed.bench is not None
    failed.bench.error = error
    profiled = cell(key.model_copy(update={"repetition": 8, "profile": "locks"}), 8e9)
    for one in (failed, profiled):
        (run / "cells" / f"{one.id}.json").write_text(one.model_dump_json(by_alias=True))
    words = text_of(build(run))
    assert "no space (pwrite on /mnt/x: ENOSPC, No space left)" in words
    assert "1 error" in words
    assert "1 profiled" in words
    figures = json.loads((run / "figures.json").read_text())["figures"]
    assert max(row["high_per_second"] for row in figures) < 8e9


def test_the_background_writers_rate_is_shown(tmp_path: Path, page: str) -> None:
    assert "writer /s" not in page
    workloads = ("DRBL", "DRBL_bg")
    cells = [
        cell(k.key.model_copy(update={"duration": 2.0}), 1000)
        for k in grid((2,), 3, workloads, ("tmpfs",))
    ]
    run = write_run(tmp_path / "run", cells, workloads=workloads)
    assert "writer /s" in text_of(build(run))
    figures = json.loads((run / "figures.json").read_text())["figures"]
    rates = {row["workload"]: row["background_per_second"] for row in figures}
    assert rates == {"DRBL": None, "DRBL_bg": 500}
    assert "background_per_second" in (run / "figures.csv").read_text().splitlines()[0]


def test_a_result_from_before_the_rate_of_the_writer_was_written(tmp_path: Path) -> None:
    run = write_run(
        tmp_path / "run", grid((2,), 1, ("DRBL_bg",), ("tmpfs",)), workloads=("DRBL_bg",)
    )
    (path,) = (run / "cells").iterdir()
    old = json.loads(path.read_text())
    del old["bench"]["background"]["ops_per_second"]
    path.write_text(json.dumps(old))
    build(run)
    (figure,) = json.loads((run / "figures.json").read_text())["figures"]
    assert figure["background_per_second"] > 0


def test_reasons_that_differ_in_numbers_share_a_line(run: Path) -> None:
    for took, path in zip((0.35, 0.5, 12), sorted((run / "cells").iterdir()), strict=False):
        edit(path, disturbed=f"other processes took {took} CPUs on ext4")
    assert "disturbed 3 other processes took 0.35 to 12 CPUs on ext4 3 cells" in text_of(build(run))


def test_report_refers_to_nothing_outside(page: str) -> None:
    page = markup(page)  # scripts are held by the policy
    assert "default-src 'none'" in page
    links = re.findall(r"""(?:href|src|srcset|action|data)\s*=\s*["']([^"']*)["']""", page)
    assert links
    assert [link for link in links if not link.startswith(("#", "data:"))] == []
    assert "@import" not in page
    assert [u for u in re.findall(r"url\(([^)]*)\)", page) if not u.startswith("#")] == []


def test_ids_are_unique_and_links_lead_somewhere(page: str) -> None:
    page = markup(page)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    targets = re.findall(r'(?:href="|url\()#([^")]+)', page)
    assert targets
    assert set(targets) <= set(ids)


def test_plots_are_files_too_and_reproducible(run: Path, tmp_path: Path) -> None:
    for place in ("one", "two"):
        build(run, tmp_path / place, plots=PlotSettings())
    names = sorted(p.name for p in (tmp_path / "one" / "plots").iterdir())
    stems = ["data-reads", "data-reads-cpu", "matrix"]
    assert names == sorted(f"{s}.{x}" for s in stems for x in ("pdf", "svg"))
    for name in ["report.html", *(f"plots/{n}" for n in names)]:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert (tmp_path / "one" / "plots" / "matrix.pdf").read_bytes().startswith(b"%PDF")


def test_one_repetition_on_one_core_says_what_cannot_be_said(tmp_path: Path) -> None:
    run = write_run(tmp_path, grid((1,), 1, FEW, ("ext4",)), workloads=FEW)
    html = build(run, plots=PlotSettings())
    words = text_of(html)
    assert "Every point was measured once" in words
    assert "no speed-up" in words
    assert 'id="matrix"' not in html.read_text()
    assert not (run / "plots" / "matrix.svg").exists()


def test_missing_cells_and_unfinished_runs_show(run: Path) -> None:
    edit(run / "run.json", planned_cells=12, state="interrupted", finished=None)
    words = text_of(build(run))
    assert "4 never measured" in words
    assert "interrupted" in words


def test_all_cells_failed_still_makes_a_report(tmp_path: Path) -> None:
    cells = grid((1,), 1, FEW, ("ext4",))
    failed = [c.model_copy(update={"status": "error", "reason": "broken"}) for c in cells]
    words = text_of(build(write_run(tmp_path, failed, workloads=FEW)))
    assert "0 ok" in words
    assert "broken" in words


def test_text_from_the_machine_is_escaped(run: Path) -> None:
    edit(run / "run.json", warnings=["<img src=x onerror=alert(1)>"])
    html = markup(build(run).read_text())
    assert "<img" not in html
    assert "&lt;img src=x" in html


def test_command_to_reproduce_can_be_typed(page: str) -> None:
    assert "<pre>bin/fscale run quick --output &#39;results/x y&#39;</pre>" in page


def test_commands_that_differ_in_values_share_a_line() -> None:
    def ran(*argv: str, returncode: int = 0) -> Command:
        return Command(argv=list(argv), seconds=1, returncode=returncode)

    folded = templates(
        [
            ran("mkfs.ext4", "-q", "/dev/loop0"),
            ran("mkfs.ext4", "-q", "/dev/loop1", returncode=1),
            ran("mkfs.ext4", "/dev/loop0"),
            ran("mount", "-t", "ext4", "/dev/loop0"),
            ran("mount", "-t", "xfs", "/dev/loop1"),
            ran("bench", "--seed=1"),
            ran("bench", "--seed=2"),
        ]
    )
    assert [(t.text, t.count, t.failed) for t in folded] == [
        ("mkfs.ext4 -q {/dev/loop0 | /dev/loop1}", 2, 1),
        ("mkfs.ext4 /dev/loop0", 1, 0),
        ("mount -t ext4 /dev/loop0", 1, 0),
        ("mount -t xfs /dev/loop1", 1, 0),
        ("bench {--seed=1 | --seed=2}", 2, 0),
    ]


def test_sections_plug_in(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locks = Section("Locks", "locks", lambda report: f"<p>{len(report.points)} points</p>")
    absent = Section("Nothing", "nothing", lambda report: None)
    monkeypatch.setattr(reporting, "SECTIONS", [*reporting.SECTIONS, locks, absent])
    html = build(run).read_text()
    assert '<section id="locks"' in html
    assert "<p>4 points</p>" in html
    assert "nothing-title" not in html


def test_inline_svg_follows_the_theme() -> None:
    svg = (
        '<?xml?><svg width="1pt" viewBox="0 0 9 9"><metadata>m</metadata><defs><style>s</style>'
        '</defs><g id="a"><text style="font-family: \'DejaVu Sans\'; fill: #1b1b1b"/>'
        '<use xlink:href="#a" clip-path="url(#a)"/></g></svg>'
    )
    assert inline(svg, "p", 'a "b" & <c>') == (
        '<svg viewBox="0 0 9 9" role="img" aria-label="a &quot;b&quot; &amp; &lt;c&gt;" '
        'class="plot">'
        '<g id="p-a"><text style="font-family: var(--font); fill: var(--ink)"/>'
        '<use xlink:href="#p-a" clip-path="url(#p-a)"/></g></svg>'
    )


def simulated(rate: float, cores: int, *free: str, side: str | None = None) -> Cell:
    """A cell of the simulator; `free`: the answer to a what-if."""
    key = synthetic.key(cores=cores, side=side)
    window = SimulatedWindow(
        ops=10, seconds=1e-6, instructions=1000, cycles=1000, stall=300, queue=100, spin=50, idle=1,
        transfers={},
    )  # fmt: skip
    ran = Simulation(seed=1, free=list(free), windows=[window], lines=[], host_seconds=1)
    counts = dict.fromkeys((*COUNTED, REMOTE), 10.0)
    return cell(key, rate, simulation=ran, counts=counts)


@pytest.mark.filterwarnings("error")
def test_the_answers_of_a_what_if_have_a_table_and_no_curve(tmp_path: Path) -> None:
    answers = [
        simulated(1000.0 * rank, 80, f"object {rank}", side=f"free-{rank}") for rank in (3, 1, 2)
    ]
    cells = [*(simulated(1000.0, cores) for cores in (1, 8, 80)), *answers]
    run = write_run(tmp_path, cells, workloads=FEW, filesystems=("ext4",), cpus=80)
    html = build(run, plots=PlotSettings())
    said = text_of(html)
    assert "object 3" in said
    assert "free-" not in html.read_text().partition('id="cells"')[0]
    assert "free-" not in (tmp_path / "plots/data-reads.svg").read_text()
    assert "free-" not in (tmp_path / "figures.csv").read_text()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("width", [3.33, 7])
@pytest.mark.parametrize("cores", [(1,), (1, 2)])
def test_long_names_leave_the_plots_their_room(
    tmp_path: Path, cores: tuple[int, ...], width: float
) -> None:
    cells = []
    for made in grid(cores, 2, ("DRBL", "DRBM"), ("ext4", "xfs")):
        name = f"{made.key.filesystem} with a name and options that nobody would give it"
        key = made.key.model_copy(update={"filesystem": name, "options": {"of": "x" * 40}})
        cells.append(cell(key, 1000.0 * key.cores))
    run = write_run(tmp_path, cells, workloads=("DRBL", "DRBM"), filesystems=())
    build(run, plots=PlotSettings(width))
    assert (tmp_path / "plots/data-reads-cpu.pdf").exists()
