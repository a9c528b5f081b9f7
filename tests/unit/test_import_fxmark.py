# SPDX-License-Identifier: GPL-2.0-only
"""FxMark's own logs become runs; the figures in these are made up, their form is FxMark's."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.compare.definition import facts
from analysis.formats import FORMATS
from analysis.formats.fxmark import read
from analysis.paper.table2 import table2
from analysis.reader import load
from analysis.report import build
from fscale.model.errors import FscaleError
from fscale.model.results import Cell
from fscale.model.topology import machine_layout
from tests.hostile import Done
from tests.hostile import run as fscale
from tests.synthetic import PAPER, descriptor, grid, write_run

HEAD = """\
### SYSTEM         = Linux testhost 4.2.0-rc8 #1 SMP Mon Jan 4 12:00:00 UTC 2016 x86_64 x86_64 x86_64 GNU/Linux
### DISK_SIZE      = 32G
### DURATION       = 30s
### DIRECTIO       = bufferedio,directio
### NCORES         = 1,2,4
### CORE_SEQ       = 0,1,2,3,4,5,6,7,8,9,10,11


### MODEL_NAME     = Made Up CPU
### PHYSICAL_CHIPS = 2
### CORE_PER_CHIP  = 3
### SMT_LEVEL      = 2


"""  # noqa: E501
PLAIN = "# ncpu secs works works/sec \n\n"
PROFILED = (
    "# ncpu secs works works/sec real.sec user.sec nice.sec sys.sec idle.sec iowait.sec irq.sec "
    "softirq.sec steal.sec guest.sec user.util nice.util sys.util\n\n"
)


def plain(name: str, rate: float) -> str:
    cores = name.split(":")[3]
    return f"## {name}\n{PLAIN}{cores} 30.000000 {30 * rate:.6f} {rate:.6f} \n\n"


def profiled(name: str, rate: float, times: str) -> str:
    cores = name.split(":")[3]
    return f"## {name}\n{PROFILED}{cores} 30.0 {30 * rate:.6f} {rate:.6f} 30.1 {times} 0 1 2 3\n\n"


LOG = (
    HEAD
    + profiled("mem:ext4:DWOL:4:bufferedio", 300.5, "1.5 0.5 40 20 3 0.25 0.75 2")
    + profiled("mem:ext4:DWOL:2:bufferedio", 200.0, "1 0 50 5 0 0 0 -1.6e+09")
    + profiled("mem:xfs:DWOL:2:bufferedio", 150.0, "1 0 50 5 0 0 0 1.4e+10")
    + plain("mem:ext4:DWOL:1:bufferedio", 110.0)
    + plain("mem:ext4:DWOL:1:directio", 7.0)
    + plain("mem:tmpfs:DWOL:1:directio", 500.0)
    + plain("nvme:ext4_no_jnl:MWCM:1", 90.0)
    + "## mem:xfs:DWOL:4:bufferedio\n# Fail to run\n\n"
    + "## mem:btrfs:DWOL:1:bufferedio\nbefor alloc bench\nin worker_main, p=26\n"
    + "# ncpu secs works works/sec\n1 0.0 0.0 -nan\n"
    + "## mem:xfs:dbench_client:1:bufferedio\n# ncpu secs works works/sec \n\n1 30 0 640.759 \n"
    + plain("mem:ext4:DRBH_bg:3:bufferedio", 9.0)
    + "### NUM_TEST_CONF  = 12\n"
)


def written(directory: Path, text: str = LOG, name: str = "2016-01-30-11-02-14.755097") -> Path:
    (directory / name).mkdir(parents=True)
    (directory / name / "fxmark.log").write_text(text)
    return directory / name / "fxmark.log"


def by_point(cells: tuple[Cell, ...]) -> dict[tuple[str, str, str, str, int], Cell]:
    return {
        (c.key.workload, c.key.filesystem, c.key.medium, c.key.mode, c.key.cores): c for c in cells
    }


def imported(log: Path, output: Path, *more: object) -> Done:
    return fscale(log.parents[1], "import", "fxmark", log, "--output", output, *more)


def test_cells_are_the_logs(tmp_path: Path) -> None:
    cells = by_point(read([written(tmp_path)]).cells)
    assert {point: c.ops_per_second for point, c in cells.items() if c.status == "ok"} == {
        ("DWOL", "ext4", "ram", "buffered", 4): 300.5,
        ("DWOL", "ext4", "ram", "buffered", 2): 200.0,
        ("DWOL", "xfs", "ram", "buffered", 2): 150.0,
        ("DWOL", "ext4", "ram", "buffered", 1): 110.0,
        ("DWOL", "ext4", "ram", "direct", 1): 7.0,
        ("DWOL", "tmpfs", "none", "buffered", 1): 500.0,
        ("MWCM", "ext4_nj", "nvme", "buffered", 1): 90.0,
        ("dbench_client", "xfs", "ram", "buffered", 1): 640.759,
    }
    four = cells["DWOL", "ext4", "ram", "buffered", 4]
    assert (four.ops, four.seconds, four.key.duration) == (9015.0, 30.0, 30.0)
    assert four.cpus == [0, 1, 2, 3]
    assert (four.unit, four.key.repetition) == ("ops", 1)
    client = cells["dbench_client", "xfs", "ram", "buffered", 1]
    assert (client.unit, client.ops) == ("MB", pytest.approx(30 * 640.759))


def test_cpu_times_are_the_logs_where_they_can_be(tmp_path: Path) -> None:
    cells = by_point(read([written(tmp_path)]).cells)
    times = cells["DWOL", "ext4", "ram", "buffered", 4].cpu
    assert times is not None
    assert times.model_dump() == {
        "user": 2.0, "system": 40, "idle": 20, "iowait": 3, "irq": 0.25, "softirq": 0.75,
        "steal": 2,
    }  # fmt: skip
    assert cells["DWOL", "ext4", "ram", "buffered", 2].cpu is None
    assert cells["DWOL", "xfs", "ram", "buffered", 2].cpu is None
    assert cells["DWOL", "ext4", "ram", "buffered", 1].cpu is None


def test_what_failed_has_a_reason_and_no_figure(tmp_path: Path) -> None:
    cells = by_point(read([written(tmp_path)]).cells)
    nothing = cells["DWOL", "xfs", "ram", "buffered", 4]
    assert (nothing.status, nothing.reason) == ("error", "the log has no result of it")
    empty = cells["DWOL", "btrfs", "ram", "buffered", 1]
    assert (empty.status, empty.reason) == ("invalid", "FxMark counted nothing")
    assert nothing.ops_per_second == empty.ops_per_second == 0


def test_readers_beside_a_writer_are_left_out_and_said(tmp_path: Path) -> None:
    done = imported(written(tmp_path), tmp_path / "run")
    assert done.code == 0, done.error
    assert "10 cells (8 ok, 1 error, 1 invalid) of 10 points" in done.output
    assert "left out: DRBH_bg on ext4" in done.error
    results = load(tmp_path / "run")
    assert results.missing == 2
    assert "DRBH_bg" not in {c.key.workload for c in results.cells}


def test_the_machine_is_the_logs(tmp_path: Path) -> None:
    run = read([written(tmp_path)]).run
    machine = run.machine
    assert (machine.hostname, machine.kernel) == ("testhost", "4.2.0-rc8")
    assert (machine.architecture, machine.cpu_model) == ("x86_64", "Made Up CPU")
    there = machine_layout(machine)
    assert (there.sockets, there.cores, there.threads) == ((3, 6), 6, 12)
    assert (run.started, run.state) == ("2016-01-30T11:02:14", "complete")
    assert machine.memory_bytes == 0
    assert machine.topology[0].node is None


def test_logs_of_one_machine_are_repetitions(tmp_path: Path) -> None:
    first = written(tmp_path, HEAD + plain("mem:ext4:DWOL:1", 100.0))
    second = written(
        tmp_path, HEAD + plain("mem:ext4:DWOL:1", 102.0) + plain("mem:ext4:DWOL:1", 104.0), "other"
    )
    read_both = read([first, second])
    assert [(c.key.repetition, c.ops_per_second) for c in read_both.cells] == [
        (1, 100.0), (2, 102.0), (3, 104.0),
    ]  # fmt: skip
    assert read_both.run.state == "interrupted"
    assert str(first) in (read_both.run.imported or "")
    assert str(second) in (read_both.run.imported or "")


def test_logs_of_two_kernels_are_no_run(tmp_path: Path) -> None:
    text = HEAD + plain("mem:ext4:DWOL:1", 100.0)
    logs = [written(tmp_path, text), written(tmp_path, text.replace("4.2.0", "4.3.0"), "b")]
    with pytest.raises(FscaleError, match=r"SYSTEM differs.*directories of their own"):
        read(logs)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace("### DURATION", "## DURATION"), r"line 3: .* is no cell"),
        (lambda text: re.sub("### MODEL_NAME.*\n", "", text), "no line `### MODEL_NAME"),
        (lambda text: text.replace("= 30s", "= -1s"), "cannot be a duration"),
        (lambda text: text.replace("DWOL:4:", "DWOL:999999:"), "cannot be the cores"),
        (lambda text: text.replace("CHIPS = 2", "CHIPS = 0"), "cannot be PHYSICAL_CHIPS"),
        (lambda text: text.replace("Linux testhost", "FreeBSD"), "uname -a"),
        (lambda text: text.replace("0,1,2", "zero,1"), "cannot be CORE_SEQ"),
        (lambda text: text.replace(":bufferedio", ":mmap"), "is no cell"),
        (lambda text: text.replace("DWOL:4", "../DWOL:4"), "is no cell"),
        (lambda text: text[: text.index("## mem")], "holds no cell"),
    ],
)
def test_what_is_no_log_is_an_error(tmp_path: Path, change: object, said: str) -> None:
    assert callable(change)
    with pytest.raises(FscaleError, match=said):
        read([written(tmp_path, change(LOG))])


def test_a_time_is_needed_and_can_be_given(tmp_path: Path) -> None:
    log = written(tmp_path, name="logs")
    done = imported(log, tmp_path / "run")
    assert done.code == 2
    assert "add --started" in done.error
    assert imported(log, tmp_path / "run", "--started", "May").code == 2
    assert not (tmp_path / "run").exists()
    assert imported(log, tmp_path / "run", "--started", "2016-05-01").code == 0
    assert load(tmp_path / "run").run.started == "2016-05-01"


def test_a_run_is_not_written_over(tmp_path: Path) -> None:
    log = written(tmp_path)
    assert imported(log, tmp_path / "run").code == 0
    done = imported(log, tmp_path / "run")
    assert done.code == 2
    assert "holds a run already" in done.error


def test_the_report_says_what_the_log_does_not_hold(tmp_path: Path) -> None:
    assert imported(written(tmp_path), tmp_path / "run").code == 0
    text = re.sub(
        r"<(script|style|svg).*?</\1>",
        " ",
        build(tmp_path / "run", paper=True).read_text(),
        flags=re.DOTALL,
    )
    words = " ".join(re.sub(r"<[^>]+>", " ", text).split()).replace("&#39;", "'")
    assert "Made of FxMark's log" in words
    assert "the log does not hold others' load" in words
    assert "Memory not recorded" in words
    assert "Frequency governor not recorded" in words
    assert "Every point was measured once" in words
    assert "fscale did not measure this" in words
    assert "undisturbed" not in words
    assert "Overwrite a block in a private file" in words


def test_exports_say_that_it_was_imported(tmp_path: Path) -> None:
    assert imported(written(tmp_path), tmp_path / "run").code == 0
    results = load(tmp_path / "run")
    (tmp_path / "out.csv").write_text(FORMATS["csv"](results))
    frame = pd.read_csv(tmp_path / "out.csv")
    assert frame.imported.str.startswith("FxMark's log").all()
    assert frame.wall_seconds.isna().all()
    assert frame.started.isna().all()
    assert 'disturbed=""' in FORMATS["openmetrics"](results)
    left = json.loads(FORMATS["google-benchmark"](results))["left_out"]
    assert "its CPU time was not recorded" in {one["message"] for one in left}
    for form in FORMATS.values():
        assert "FxMark's log" in form(results) or form is FORMATS["ktap"]


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    line=st.integers(0, LOG.count("\n")),
    text=st.one_of(st.text(max_size=40), st.sampled_from(LOG.splitlines())),
)
def test_no_log_breaks_the_reader(tmp_path: Path, line: int, text: str) -> None:
    lines = LOG.splitlines()
    lines[line : line + 1] = [text]
    log = tmp_path / "fxmark.log"
    log.write_text("\n".join(lines), errors="replace")
    try:
        found = read([log], "2016-05-01")
    except FscaleError as error:
        assert str(error).isprintable()
        return
    for cell in found.cells:
        assert Cell.model_validate_json(cell.model_dump_json(by_alias=True)) == cell
        assert cell.status == "ok" or not cell.ops_per_second


def repeated(directory: Path, factor: float) -> Path:
    """A run made of a log that has DWOL twelve times."""
    text = HEAD + "".join(plain("mem:ext4:DWOL:1", factor * (100 + n / 10)) for n in range(12))
    assert imported(written(directory, text), directory / "run").code == 0
    return directory / "run"


def test_old_figures_are_compared_with_old_ones(tmp_path: Path) -> None:
    base, new = repeated(tmp_path / "a", 1), repeated(tmp_path / "b", 0.7)
    done = fscale(tmp_path, "compare", base, new)
    assert done.code == 1
    assert "1 slower" in done.output
    once = tmp_path / "c" / "run"
    assert imported(written(tmp_path / "c", HEAD + plain("mem:ext4:DWOL:1", 1)), once).code == 0
    done = fscale(tmp_path, "compare", base, once)
    assert done.code == 2
    assert "repetitions" in done.error


def test_old_figures_are_ours_only_when_allowed(tmp_path: Path) -> None:
    base = repeated(tmp_path / "a", 1)
    cells = grid([1], 12, ["DWOL"], ["ext4"], rate=lambda k: 100 + k.repetition / 10)
    ours = [
        c.model_copy(update={"key": key, "id": key.id})
        for c in cells
        if (key := c.key.model_copy(update={"duration": 30.0}))
    ]
    about = descriptor("DWOL").model_dump() | {"setup": "a file of 4 KiB"}
    new = write_run(tmp_path / "new", ours, workloads=["DWOL"])
    content = json.loads((new / "run.json").read_text())
    (new / "run.json").write_text(json.dumps(content | {"workloads": [about]}))
    done = fscale(tmp_path, "compare", base, new)
    assert done.code == 2
    assert "workloads.DWOL.setup" in done.error
    assert fscale(tmp_path, "compare", base, new, "--allow-different", "workloads").code == 0


def test_its_workloads_are_the_papers_and_not_ours(tmp_path: Path) -> None:
    assert sorted(table2()) == sorted(PAPER)
    run = read([written(tmp_path)]).run
    about = facts(run, "DWOL", "ext4", "ram")
    assert about["workloads.DWOL.setup"] == ""
    assert about["media.ram.size"] == "32G"
