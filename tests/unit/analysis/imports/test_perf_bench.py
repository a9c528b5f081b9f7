# SPDX-License-Identifier: GPL-2.0-only
"""The text of perf bench: real files of perf 6.1, and changed ones."""

from pathlib import Path

import pytest

from fscale.analysis.imports.run import Imported, Stated
from fscale.model.errors import FscaleError
from tests.support.imports import FILES, read


def imported(*paths: Path) -> Imported:
    return read("perf-bench", paths, Stated("2026-11-29"))


def changed(directory: Path, file: str, *change: str) -> Path:
    path = directory / "changed.txt"
    path.write_text((FILES / f"perf-{file}.txt").read_text().replace(*change))
    return path


@pytest.mark.parametrize(
    ("file", "workload", "cores", "rate", "unit", "seconds"),
    [
        ("pipe", "sched_pipe", 1, 96977, "ops", 0.206),
        ("syscall", "syscall_basic", 1, 4507753, "ops", 0.022),
        ("all", "syscall_basic", 1, 4137713, "ops", 2.416),
        ("messaging", "sched_messaging", 80, 1 / 0.178, "runs", 0.178),
        ("breakpoint", "breakpoint_thread", 1, 1e6 / 2122.5, "ops", 0.021),
        ("futex-hash", "futex_hash", 2, 2 * 1517568, "ops", 1),
        ("epoll", "epoll_wait", 2, 2 * 239517, "ops", 1),
    ],
)
def test_the_figure_is_a_rate(
    file: str, workload: str, cores: int, rate: float, unit: str, seconds: float
) -> None:
    (cell,) = imported(FILES / f"perf-{file}.txt").cells
    assert (cell.key.workload, cell.key.cores, cell.unit) == (workload, cores, unit)
    assert cell.ops_per_second == pytest.approx(rate)
    assert cell.seconds == seconds
    assert cell.ops == pytest.approx(rate * seconds)


def test_each_function_is_a_point() -> None:
    run = imported(FILES / "perf-memcpy.txt")
    assert {c.key.options["function"]: c.ops_per_second for c in run.cells} == {
        "default": 46.502976,
        "x86-64-unrolled": 48.828125,
        "x86-64-movsq": 36.168981,
        "x86-64-movsb": 57.444853,
    }
    assert {(c.unit, round(c.ops * 1024)) for c in run.cells} == {("GB", 1)}
    assert run.run.loads == {"mem_memcpy": ["size=1MB"]}


@pytest.mark.parametrize("file", ["futex-wake", "numa"])
def test_a_benchmark_without_a_rate_is_left_out(file: str) -> None:
    run = imported(FILES / "perf-pipe.txt", FILES / f"perf-{file}.txt")
    assert [cell.key.workload for cell in run.cells] == ["sched_pipe"]
    (said,) = run.left_out
    assert said.endswith("prints no rate and no total time")
    with pytest.raises(FscaleError, match=r"nothing that can be imported: .*no rate"):
        imported(FILES / f"perf-{file}.txt")


def test_benchmarks_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "all.txt"
    names = ("pipe", "messaging", "pipe")
    path.write_text("".join((FILES / f"perf-{name}.txt").read_text() for name in names))
    assert [(c.key.workload, c.key.repetition) for c in imported(path).cells] == [
        ("sched_pipe", 1), ("sched_messaging", 1), ("sched_pipe", 2),
    ]  # fmt: skip


def test_a_time_that_perf_rounds_to_zero_is_no_rate(tmp_path: Path) -> None:
    (cell,) = imported(changed(tmp_path, "messaging", "0.178", "0.000")).cells
    assert (cell.status, cell.reason) == ("invalid", "it took less time than perf prints")


def test_the_format_simple_does_not_name_the_benchmark() -> None:
    with pytest.raises(FscaleError, match="no line begins `# Running 'sched/pipe'"):
        imported(FILES / "perf-simple.txt")


@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        ("pipe", ("96977", "-96977"), "line 1: -96977 is not a positive number"),
        ("pipe", ("96977", "nan"), "line 1: nan is not a positive number"),
        ("pipe", ("96977", "0"), "line 1: 0 is not a positive number"),
        ("messaging", ("0.178", "-0.178"), "line 1: -0.178 is not a positive number"),
        ("futex-hash", ("1517568", "inf"), "line 1: inf is not a positive number"),
        ("messaging", ("80", "800000"), "800000 workers are more than 65536"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    file: str, change: tuple[str, str], said: str, tmp_path: Path
) -> None:
    path = changed(tmp_path, file, *change)
    with pytest.raises(FscaleError, match=said) as raised:
        imported(path)
    assert str(path) in str(raised.value)
