# SPDX-License-Identifier: GPL-2.0-only
"""`fscale-bench --windows`: windows end by count, not by time."""

import subprocess
from pathlib import Path

import pytest

from tests.support import bench

pytestmark = pytest.mark.live

COUNTED = ("--windows", "5", "--window-ops", "40")


@pytest.mark.parametrize("workload", bench.WORKLOADS)
def test_all_workloads_count(workload: str, fast: Path) -> None:
    out = bench.run_good(workload, fast / "a", *COUNTED)
    workers = len(out.workers)
    # A warm-up of 40 and 16 a worker, and five windows of at least 40.
    assert out.ops >= 40 + 16 * workers + 5 * 40
    # Nobody goes on when all is done.
    assert out.background or out.executed_ops <= out.ops + workers
    assert [window.end for window in out.windows] == ["time"]


def test_a_window_lasts_long_enough_by_the_rate_of_the_warm_up(fast: Path) -> None:
    # A read takes less than a microsecond: forty would be over at once, and the five windows would
    # always be of two hundred and some. A warm-up that something interrupts tells too low a rate,
    # so one run of many must be as it should.
    runs = (bench.run_good("DRBL", fast / f"{number}", *COUNTED) for number in range(50))
    assert any(out.seconds > 5 * 0.0001 and out.ops > 400 for out in runs)


@pytest.mark.parametrize("workload", ["MRDL", "MRDM", "MRDL_bg"])
def test_a_window_holds_whole_directories(workload: str, fast: Path) -> None:
    out = bench.run_good(workload, fast / "a", *COUNTED, "--option", "entries=3000", count=2)
    assert out.ops >= 5 * 3000 * len(out.workers)


def test_workers_set_up_one_after_another(fast: Path) -> None:
    out = bench.run_good("MWUM", fast / "a", *COUNTED, count=2)
    numbers: dict[str, list[int]] = {f"{worker.id}": [] for worker in out.workers}
    # tmpfs counts its inodes on, and most of a stock is never taken.
    for path in (fast / "a" / "share").iterdir():
        numbers[path.name.partition(".")[0]].append(path.stat().st_ino)
    first, second = numbers.values()
    assert max(first) < min(second)


def test_the_end_of_the_stock_is_said(fast: Path) -> None:
    code, out = bench.run("MWCL", fast / "a", *COUNTED, "--max-stock", "150")
    assert (code, out.status, out.end) == (1, "invalid", "exhausted")
    assert "150 units" in (out.reason or "")
    assert out.ops == pytest.approx(150, abs=2)


def test_nothing_reads_a_clock_in_the_windows(fast: Path) -> None:
    for more in (["--slice", "0.05", "--sync-fds", "0,1"], ["--latency", str(fast)]):
        argv = bench.argv("DRBL", fast / "a", *COUNTED, *more)
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "--windows" in done.stderr
        assert more[0] in done.stderr


def test_windows_end_when_the_rate_is_known_well_enough(fast: Path) -> None:
    def ops(name: str, *more: str) -> int:
        counted = ("--windows", "96", "--window-ops", "2000", "--window-ns", "1", *more)
        return bench.run_good("DRBL", fast / name, *counted).ops

    # The rate of user code that reads a page is known within its double after eight windows.
    assert 8 * 2000 <= ops("a", "--precision", "1000") < 96 * 2000
    assert ops("b") >= 96 * 2000


def test_precision_needs_few_windows(fast: Path) -> None:
    for windows in ([], ["--windows", "97"]):
        argv = bench.argv("DRBL", fast / "a", *windows, "--precision", "50")
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "--precision" in done.stderr


def test_batches_have_five_windows_however_precise(fast: Path) -> None:
    few = ("--windows", "48", "--window-ns", "1", "--precision", "1", "--option", "entries=3000")
    out = bench.run_good("MRDL", fast / "a", *few)
    workers = len(out.workers)
    # A warm-up of a window, 512 operations of all, and up to 20 a worker before the first window.
    assert 5 * 3000 * workers <= out.ops <= 6 * 3000 * workers + 512 + 20 * workers
