# SPDX-License-Identifier: GPL-2.0-only
"""FxMark's own logs become runs; the figures in these are made up, their form is FxMark's."""

import gzip
import json
import re
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fscale.analysis.compare.definition import meaning
from fscale.analysis.formats.run import FORMATS
from fscale.analysis.imports.run import Imported, Stated
from fscale.analysis.paper.table2 import table2
from fscale.analysis.reader import load
from fscale.analysis.report import build
from fscale.model.errors import FscaleError
from fscale.model.results import Cell
from fscale.model.topology import machine_layout
from tests.support.exports import exported
from tests.support.hostile import Done
from tests.support.hostile import run as fscale
from tests.support.imports import check_robust
from tests.support.imports import read as read_files
from tests.support.pages import text_of
from tests.support.synthetic import PAPER, descriptor, grid, write_run

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


ONE = plain("mem:ext4:DWOL:1:bufferedio", 110.0)


def written(directory: Path, text: str = LOG, name: str = "2016-01-30-11-02-14.755097") -> Path:
    (directory / name).mkdir(parents=True)
    (directory / name / "fxmark.log").write_text(text)
    return directory / name / "fxmark.log"


def read(logs: list[Path], started: str | None = None) -> Imported:
    return read_files("fxmark", logs, Stated(started))


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
    assert (nothing.status, nothing.reason) == ("error", "the log has no result for it")
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
    with pytest.raises(FscaleError, match=r"SYSTEM differs.*separate directories"):
        read(logs)


def test_a_file_of_two_runs_is_as_two_files(tmp_path: Path) -> None:
    """FxMark's forks open their log for appending, and logs are joined by `cat`."""
    runs = [
        HEAD + plain("mem:ext4:DWOL:1", 100.0 + n) + "### NUM_TEST_CONF  = 1\n" for n in range(3)
    ]
    apart = read([written(tmp_path, text, f"{n}") for n, text in enumerate(runs)], "2016-05-01")
    for ending in ("### NUM_TEST_CONF  = 1\n", ""):  # a run that was cut off has no such line
        joined = "".join(runs).replace("### NUM_TEST_CONF  = 1\n", ending)
        one = read([written(tmp_path, joined, f"joined{len(ending)}")], "2016-05-01")
        assert one.cells == apart.cells
        assert [cell.key.repetition for cell in one.cells] == [1, 2, 3]
    assert apart.run.planned_cells == 3


@pytest.mark.parametrize("change", [("4.2.0", "4.3.0"), ("Made Up", "Other"), ("32G", "64G")])
def test_a_file_of_two_kernels_is_no_run(change: tuple[str, str], tmp_path: Path) -> None:
    first = HEAD + ONE
    log = written(tmp_path, first + (HEAD + ONE).replace(*change))
    line = first.count("\n") + 1
    with pytest.raises(FscaleError, match=rf"line {line} comes from another machine or kernel"):
        read([log])


def test_each_run_of_a_file_has_its_duration(tmp_path: Path) -> None:
    text = HEAD + plain("mem:ext4:DWOL:1", 100.0) + HEAD.replace("30s", "5s")
    cells = read([written(tmp_path, text + plain("mem:ext4:DWOL:1", 90.0))]).cells
    assert [(c.key.duration, c.key.repetition) for c in cells] == [(30, 1), (5, 1)]


def test_a_copy_is_not_a_repetition(tmp_path: Path) -> None:
    text = HEAD + plain("mem:ext4:DWOL:1", 100.5) + "### NUM_TEST_CONF  = 1\n"
    found = read([written(tmp_path, 2 * text), written(tmp_path, text, "b")])
    assert [cell.ops_per_second for cell in found.cells] == [100.5]
    assert found.run.planned_cells == 1
    (said,) = found.left_out
    assert "a copy and not a repetition (2 times)" in said


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        *(
            (name, "ext4_nj")
            for name in ("ext4-no-jnl", "ext4_no_journal", "ext4-nj", "ext4nojournal")
        ),
        *((name, name) for name in ("ext4", "ext4-dax", "nova", "ext4_no_jnl2", "xfs+reflink")),
    ],
)
def test_file_systems_of_forks(name: str, ours: str, tmp_path: Path) -> None:
    (cell,) = read([written(tmp_path, HEAD + plain(f"mem:{name}:DWOL:1", 100.0))]).cells
    assert cell.key.filesystem == ours


@pytest.mark.parametrize(
    ("uname", "architecture"),
    [
        ("Linux h 6.6.31-0-lts #1-Alpine SMP Mon Jan 5 08:00:00 UTC 2026 x86_64 Linux", "x86_64"),
        ("Linux h 6.1 #2 SMP Mon Jan 5 2026 x86_64 Made Up(R) CPU @ 2.60GHz GenuineIntel GNU/Linux",
         "x86_64"),
        ("Linux h 6.1 #2 SMP Mon Jan 5 2026 aarch64 unknown unknown GNU/Linux", "aarch64"),
        ("Linux h 6.1 #2 SMP Mon Jan 5 2026 ppc64le POWER9 GNU/Linux", "ppc64le"),
        ("Linux h 6.1", "unknown"),
    ],
)  # fmt: skip
def test_architectures_are_those_of_uname(uname: str, architecture: str, tmp_path: Path) -> None:
    text = re.sub("(### SYSTEM .*= ).*", rf"\g<1>{uname}", HEAD) + ONE
    machine = read([written(tmp_path, text)]).run.machine
    assert (machine.hostname, machine.architecture) == ("h", architecture)
    assert machine.kernel.startswith("6.")


@pytest.mark.parametrize(
    "names",
    [["SYSTEM"], ["MODEL_NAME"], ["CORE_SEQ"], ["PHYSICAL_CHIPS", "SMT_LEVEL"], ["DISK_SIZE"],
     ["SYSTEM", "DISK_SIZE", "DURATION", "CORE_SEQ", "MODEL_NAME", "PHYSICAL_CHIPS",
      "CORE_PER_CHIP", "SMT_LEVEL"]],
)  # fmt: skip
def test_a_log_without_a_header_has_what_it_has(names: list[str], tmp_path: Path) -> None:
    text = "".join(
        line for line in LOG.splitlines(keepends=True)
        if not any(line.startswith(f"### {name}") for name in names)
    )  # fmt: skip
    log = written(tmp_path, text)
    whole, found = read([written(tmp_path, name="whole")], "2016-05-01"), read([log])
    assert [c.ops_per_second for c in found.cells] == [c.ops_per_second for c in whole.cells]
    assert {c.key.duration for c in found.cells} == {30.0}
    assert f"{log}: the log has no {', '.join(names)}" in found.left_out


@pytest.mark.slow
def test_the_figures_of_a_harness_are_drawn(tmp_path: Path) -> None:
    assert imported(written(tmp_path, ONE), tmp_path / "run").code == 0
    for words in (["show"], ["report"], ["export", "--format", "csv"]):
        done = fscale(tmp_path, words[0], tmp_path / "run", *words[1:])
        assert done.code == 0, done.error


def test_columns_come_in_any_order_and_from_fio(tmp_path: Path) -> None:
    text = HEAD + (
        "## mem:ext4:DWOL:2:bufferedio\n# ncpu works/sec secs works\n2 50.0 30.0 1500\n"
        "## mem:ext4:seq-read-4K:2:directio\n# ncpu secs read_iops write_iops read_50_latency\n"
        "2 30 250 50 50.0%=3\n"
        "## mem:ext4:DRBL:2:directio\n# ncpu secs transactions\n2 30 77\n"
    )
    found = read([written(tmp_path, text)])
    assert [(c.ops_per_second, c.ops, c.status) for c in found.cells] == [
        (50.0, 1500.0, "ok"), (300.0, 9000.0, "ok"), (0.0, 0.0, "error"),
    ]  # fmt: skip
    assert any("read_50_latency" in reason for reason in found.left_out)
    assert any("transactions" in reason for reason in found.left_out)


@pytest.mark.parametrize(
    "table",
    [
        "# secs ncpu works works/sec\n30.0 2 1500 50.0\n",
        "# NCPU SECS WORKS WORKS/SEC\n2 30.0 1500 50.0\n",
        "# ncpu,secs,works,works/sec\n2,30.0,1500,50.0\n",
        "# ncpu secs works/sec\n2 30.0 50.0\n# ncpu p99_latency\n2 9.5\n",
        "# ncpu secs works works/sec\n2 30.0 1500 50.0\n0.123 seconds of 7 workers\n",
        "## a note: mounted again\n# ncpu secs works works/sec\n2 30.0 1500 50.0\n",
    ],
)
def test_tables_of_forks_have_their_figure(table: str, tmp_path: Path) -> None:
    found = read([written(tmp_path, f"{HEAD}## mem:ext4:DWOL:2:bufferedio\n{table}")])
    assert [(c.key.cores, c.ops_per_second, c.ops) for c in found.cells] == [(2, 50.0, 1500.0)]
    dropped = ("p99_latency" in table, "note" in table)
    assert tuple(any(w in r for r in found.left_out) for w in ("p99", "note")) == dropped


@pytest.mark.parametrize("ours", ["2 30.0 1500 50.0", "2 30.0 3000 100.0"])
def test_two_results_below_one_cell_are_of_nobody(ours: str, tmp_path: Path) -> None:
    """Two programs wrote into one log: the first result is not of the cell that stands above it."""
    text = HEAD + "".join(
        f"## mem:{name}:DWOL:2:bufferedio\n# ncpu secs works works/sec\n"
        for name in ("ext4", "xfs")
    )
    found = read([written(tmp_path, f"{text}{ours}\n2 30.0 6000 200.0\n{ONE}")])
    assert [(c.key.filesystem, c.key.cores, c.status) for c in found.cells] == [
        ("ext4", 2, "error"), ("xfs", 2, "invalid"), ("ext4", 1, "ok"),
    ]  # fmt: skip
    assert any("2 results" in reason for reason in found.left_out)


@pytest.mark.parametrize("unread", ["2 30.0 3000", "2: 30.0 3000 100.0", "no space left"])
def test_a_result_that_is_not_read_is_said(unread: str, tmp_path: Path) -> None:
    text = f"{HEAD}## mem:ext4:DWOL:2:bufferedio\n{PLAIN}{unread}\n"
    found = read([written(tmp_path, text + ONE)])
    assert found.cells[0].status == "error"
    assert unread in (found.cells[0].reason or "")
    assert any(unread in reason for reason in found.left_out)


@pytest.mark.parametrize(("result", "code"), [("1 30.0 3000 100.0", 0), ("", 1), ("1 0 0 nan", 1)])
def test_a_log_without_a_figure_fails(result: str, code: int, tmp_path: Path) -> None:
    log = written(tmp_path, f"{HEAD}## mem:ext4:DWOL:1:bufferedio\n{PLAIN}{result}\n")
    done = fscale(tmp_path, "import", "fxmark", log, "--output", tmp_path / "run")
    assert done.code == code
    assert len(load(tmp_path / "run").cells) == 1


def test_cpus_in_their_order_may_be_a_range(tmp_path: Path) -> None:
    text = (HEAD + ONE).replace("0,1,2,3,4,5,6,7,8,9,10,11", "0,4-6, 1-3,7-11")
    assert read([written(tmp_path, text)]).run.machine.cpu_order[:6] == [0, 4, 5, 6, 1, 2]


@pytest.mark.parametrize(
    ("figures", "status"),
    [
        ("1 30.0 3000 100.0", "ok"),
        ("1 30.0 3000 nan", "invalid"),
        ("1 30.0 3000 inf", "invalid"),
        ("1 30.0 -3000 -100", "invalid"),
        ("1 -30.0 3000 100", "invalid"),
        ("1 0 0 -nan", "invalid"),
        ("1 30.0 3000 1e999", "invalid"),
        ("1 30.0 3000 10", "invalid"),  # cut off
        ("2 30.0 3000 100", "invalid"),  # of another cell
        ("1 30.0 3000", "error"),
        ("", "error"),
    ],
)
def test_figures_that_cannot_be_are_none(figures: str, status: str, tmp_path: Path) -> None:
    text = f"{HEAD}## mem:ext4:DWOL:1:bufferedio\n{PLAIN}{figures}\n"
    (cell,) = read([written(tmp_path, text)]).cells
    assert cell.status == status
    assert bool(cell.ops_per_second) == (status == "ok") == (cell.reason is None)


def test_cpu_times_that_are_left_out_are_said(tmp_path: Path) -> None:
    """A fork leaves all CPUs on line: the idle ones' time is in the sum."""
    text = HEAD + profiled("mem:ext4:DWOL:2:bufferedio", 200.0, "30 0 30 900 0 0 0 0")
    found = read([written(tmp_path, text)])
    assert found.cells[0].cpu is None
    assert any("exceed those of the cores in use" in reason for reason in found.left_out)


@pytest.mark.parametrize(
    "packed",
    [
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.encode("utf-16"),
        lambda text: gzip.compress(text.encode()),
    ],
)
def test_logs_of_other_systems_are_logs(packed: object, tmp_path: Path) -> None:
    assert callable(packed)
    log, other = written(tmp_path), written(tmp_path, name="other")
    other.write_bytes(packed(LOG))
    assert read([other], "2016-05-01").cells == read([log]).cells


@pytest.mark.parametrize("bytes_", range(1, len(ONE), 7))
def test_a_log_that_is_cut_off_has_no_wrong_figure(bytes_: int, tmp_path: Path) -> None:
    text = HEAD + plain("mem:ext4:DWOL:2:bufferedio", 200.0) + ONE[:bytes_]
    cells = read([written(tmp_path, text)]).cells
    assert cells[0].ops_per_second == 200
    for cell in cells[1:]:
        assert cell.ops_per_second in (0, 110)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace("### DURATION", "## DURATION"), r"line 3: .* is not a cell"),
        (lambda text: text.replace("= 30s", "= -1s"), "not a duration"),
        (lambda text: text.replace("DWOL:4:", "DWOL:999999:"), "not valid as the cores"),
        (lambda text: text.replace("CHIPS = 2", "CHIPS = 0"), "not valid as PHYSICAL_CHIPS"),
        (lambda text: text.replace("Linux testhost", "FreeBSD"), "uname -a"),
        (lambda text: text.replace("0,1,2", "zero,1"), "not a valid CORE_SEQ"),
        (lambda text: re.sub("(## .*:)[a-z]+io", r"\1mmap", HEAD + ONE), "unknown I/O mode mmap"),
        (lambda text: HEAD + text.replace("30s", "5s"), "second header"),
        (lambda text: "", "is empty"),
        (lambda text: "\0" * 4096, "is empty"),
        (lambda text: "## ssd:f2fs:MWUL:1\n# Fail to run\n", "neither a line `### DURATION"),
        (lambda text: text.replace("DWOL:4", "../DWOL:4"), "is not a cell"),
        (lambda text: text[: text.index("## mem")], "contains no cell"),
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
    assert "already contains a run" in done.error


@pytest.mark.slow
def test_the_report_says_what_the_log_does_not_hold(tmp_path: Path) -> None:
    assert imported(written(tmp_path), tmp_path / "run").code == 0
    words = text_of(build(tmp_path / "run", paper=True))
    assert "imported from fxmark's output" in words
    assert "files do not record the load" in words
    assert "Memory not recorded" in words
    assert "Frequency governor not recorded" in words
    assert "Every point was measured once" in words
    assert "fscale did not measure this" in words
    assert "undisturbed" not in words
    assert "Overwrite a block in a private file" in words


def test_exports_say_that_it_was_imported(tmp_path: Path) -> None:
    assert imported(written(tmp_path), tmp_path / "run").code == 0
    results = load(tmp_path / "run")
    (tmp_path / "out.csv").write_text(exported(results, "csv"))
    frame = pd.read_csv(tmp_path / "out.csv")
    assert frame.imported.str.startswith("fxmark's output").all()
    assert frame.wall_seconds.isna().all()
    assert frame.started.isna().all()
    assert 'disturbed=""' in FORMATS["openmetrics"](results)
    left = json.loads(FORMATS["google-benchmark"](results))["left_out"]
    assert "its CPU time was not recorded" in {one["message"] for one in left}
    for form in FORMATS.values():
        assert "fxmark's output" in form(results) or form is FORMATS["ktap"]


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
    check_robust(lambda: read([log], "2016-05-01"))


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
    about = meaning(run, "DWOL", "ext4", "ram")
    assert about["workloads.DWOL.setup"] == ""
    assert about["media.ram.size"] == "32G"
