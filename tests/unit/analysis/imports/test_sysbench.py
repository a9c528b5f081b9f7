# SPDX-License-Identifier: GPL-2.0-only
"""The text of sysbench: real files of sysbench 1.0.20, and changed ones."""

from pathlib import Path

import pytest

from fscale.analysis.imports.run import Imported, Stated
from fscale.model.errors import FscaleError
from fscale.model.results import Cell
from tests.support.imports import FILES, read

CPU = FILES / "sysbench-cpu-2.txt"


def imported(*paths: Path) -> Imported:
    return read("sysbench", paths, Stated("2026-11-29"))


def of_test(name: str) -> dict[int, Cell]:
    run = imported(*(FILES / f"sysbench-{name}-{threads}.txt" for threads in (1, 2)))
    return {cell.key.cores: cell for cell in run.cells}


def changed(directory: Path, *change: str, name: str = "changed.txt") -> Path:
    path = directory / name
    path.write_text(CPU.read_text().replace(*change))
    return path


@pytest.mark.parametrize(
    ("file", "workload"),
    [
        ("cpu", "cpu"),
        ("mem", "memory"),
        ("file", "fileio"),
        ("mutex", "sysbench-mutex"),
        ("threads", "sysbench-threads"),
    ],
)
def test_threads_are_the_cores_of_a_curve(file: str, workload: str) -> None:
    cells = of_test(file)
    assert list(cells) == [1, 2]
    assert {cell.key.workload for cell in cells.values()} == {workload}
    assert {cell.unit for cell in cells.values()} == {"events"}


def test_the_rate_is_events_per_second() -> None:
    cell = of_test("cpu")[2]
    assert (cell.ops, cell.seconds) == (4900, 1.0031)
    assert cell.ops_per_second == pytest.approx(4880.05, 1e-3)  # as sysbench says


def test_latencies_are_nanoseconds() -> None:
    latency = of_test("file")[2].latency
    assert latency is not None
    assert latency["quantiles"] == {"99": pytest.approx(3.89e6), "100": pytest.approx(12.61e6)}
    assert latency["count"] == 18510


def test_the_load_is_what_the_test_prints_before_it_begins() -> None:
    run = imported(*(FILES / f"sysbench-mem-{threads}.txt" for threads in (1, 2)))
    assert run.run.loads == {
        "memory": ["load=block size: 1KiB; total size: 102400MiB; operation: write; scope: global"]
    }
    assert of_test("cpu")[1].key.options == {}


def test_another_load_is_another_point(tmp_path: Path) -> None:
    other = changed(tmp_path, "limit: 10000", "limit: 20000")
    run = imported(CPU, other)
    assert [cell.key.options["load"] for cell in run.cells] == [
        "Prime numbers limit: 10000", "Prime numbers limit: 20000",
    ]  # fmt: skip


def test_runs_in_one_file_are_repetitions(tmp_path: Path) -> None:
    path = tmp_path / "twice.txt"
    path.write_text(CPU.read_text() + CPU.read_text().replace("4900", "5000"))
    run = imported(path)
    assert [(c.key.repetition, c.ops) for c in run.cells] == [(1, 4900), (2, 5000)]


def test_scripts_have_the_names_of_their_files(tmp_path: Path) -> None:
    """The output of oltp_read_only and of oltp_write_only does not tell which it is."""
    names = ("oltp_read_only.txt", "oltp_write_only.txt")
    change = ("CPU speed:", "SQL statistics:")
    paths = [changed(tmp_path, *change, name=name) for name in names]
    for number, path in enumerate(paths):
        text = path.read_text().replace("Prime numbers limit: 10000\n", "")
        path.write_text(text.replace("4900", f"490{number}"))
    cells = imported(*paths).cells
    assert [c.key.workload for c in cells] == ["oltp_read_only", "oltp_write_only"]


def test_the_form_of_old_versions(tmp_path: Path) -> None:
    """Written by hand in the form of sysbench 0.4: other headings, milliseconds with a unit."""
    path = tmp_path / "old.txt"
    path.write_text(
        "sysbench 0.4.12:  multi-threaded system evaluation benchmark\n\n"
        "Running the test with following options:\nNumber of threads: 4\n\n"
        "Doing CPU performance benchmark\n\nThreads started!\nDone.\n\n"
        "Maximum prime number checked in CPU test: 10000\n\n\nTest execution summary:\n"
        "    total time:                          2.5000s\n"
        "    total number of events:              10000\n"
        "    per-request statistics:\n"
        "         min:                                  1.14ms\n"
        "         max:                                  8.31ms\n"
        "         approx.  95 percentile:               1.27ms\n"
    )
    (cell,) = imported(path).cells
    assert (cell.key.workload, cell.key.cores, cell.ops_per_second) == ("cpu", 4, 4000)
    assert cell.latency is not None
    assert cell.latency["quantiles"] == {"95": pytest.approx(1.27e6), "100": pytest.approx(8.31e6)}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("    total time:", "    time:"), "from line 1 has no `total time`: it failed, or is"),
        (("total number of events:              4900", "total number of events:   -4900"),
         "`total number of events` is -4900"),
        (("1.0031s", "nans"), "`total time` is nans"),
        (("Number of threads: 2", "Number of threads: 0"), "0 threads are impossible"),
        (("Number of threads: 2", "Number of threads: many"), "`Number of threads` is many"),
        (("sysbench 1.0.20", "WARNING: 1.0"), "no line begins `sysbench 1.0`"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(
    change: tuple[str, str], said: str, tmp_path: Path
) -> None:
    path = changed(tmp_path, *change)
    with pytest.raises(FscaleError, match=said) as raised:
        imported(path)
    assert str(path) in str(raised.value)


def test_a_test_without_events_is_invalid(tmp_path: Path) -> None:
    (cell,) = imported(changed(tmp_path, "events:              4900", "events:  0")).cells
    assert cell.status == "invalid"
