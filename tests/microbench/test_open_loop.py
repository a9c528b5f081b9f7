# SPDX-License-Identifier: GPL-2.0-only
"""The option `rate`: none of the arrivals is lost, and workers sleep until they come."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from fscale.model.bench import BenchOutput
from fscale.runner.latency import counts
from tests.support import bench

pytestmark = pytest.mark.live

SHORT = ("--duration", "0.5", "--warmup", "0.1")


def at(rate: int, *more: str) -> tuple[str, ...]:
    return ("--option", f"rate={rate}", *(word for one in more for word in ("--option", one)))


def arrived(out: BenchOutput) -> float:
    """The operations that begin or wait between the start barrier and the end of the window."""
    assert out.backlog is not None
    return out.executed_ops + out.backlog


@pytest.mark.parametrize("arrival", ["poisson", "fixed"])
def test_what_arrives_is_done_and_timed(arrival: str, fast: Path, tmp_path: Path) -> None:
    given = (*SHORT, *at(2000, f"arrival={arrival}"), "--latency", str(tmp_path))
    out = bench.run_good("DRBL", fast / "a", *given, count=2)
    due = 2 * 2000 * (out.warmup_seconds + out.seconds)
    # Poisson: five standard deviations.
    assert arrived(out) == pytest.approx(due, abs=5 + (5 * due**0.5) * (arrival == "poisson"))
    assert out.options["rate"] == 2000
    assert out.options["arrival"] == arrival
    assert out.latency is not None
    samples = sum(count for _, count in counts(tmp_path.glob("worker-*.hist")))
    assert samples == sum(out.latency.samples) == pytest.approx(out.ops, abs=2)


def test_repetitions_with_one_seed_have_the_same_arrivals(fast: Path) -> None:
    seen = [
        bench.run_good("DRBL", fast / name, *SHORT, *at(200), "--seed", seed).executed_ops
        for name, seed in (("a", "7"), ("b", "7"), ("c", "8"), ("d", "9"), ("e", "10"))
    ]
    # The ends of the windows differ by some milliseconds.
    assert seen[0] == pytest.approx(seen[1], abs=4)
    assert max(abs(other - seen[0]) for other in seen[2:]) > 4


def test_workers_sleep_until_an_operation_arrives(fast: Path) -> None:
    out = bench.run_good("DRBL", fast / "a", *SHORT, *at(100))
    (worker,) = out.workers
    # Waking up and spinning for 100 us, a hundred times a second.
    assert worker.user_seconds + worker.system_seconds < 0.1 * out.seconds
    assert worker.voluntary_switches >= out.ops


def test_what_is_not_served_is_counted(fast: Path) -> None:
    given = (*SHORT, *at(100_000, "arrival=fixed", "block=1048576"))
    out = bench.run_good("DRBL", fast / "a", *given)
    due = 100_000 * (out.warmup_seconds + out.seconds)
    assert out.backlog is not None
    assert out.backlog > 0.2 * due
    assert arrived(out) == pytest.approx(due, rel=0.01)
    assert bench.run_good("DRBL", fast / "b", *SHORT).backlog is None


def test_a_stock_that_ends_begins_new_arrivals(fast: Path) -> None:
    given = (*SHORT, *at(2000, "arrival=fixed"), "--max-stock", "300")
    out = bench.run_good("MWUL", fast / "a", *given, bound="maximum")
    ended = sum(window.end == "exhausted" for window in out.windows)
    assert ended >= 2
    # What found no stock did not begin; nothing arrives between two windows.
    assert out.backlog is not None
    assert out.backlog >= ended
    assert arrived(out) == pytest.approx(2000 * (out.warmup_seconds + out.seconds), rel=0.1)


def test_the_end_of_a_window_is_not_slept_over(fast: Path) -> None:
    # A gap lasts for some seconds.
    given = ("--duration", "0.3", *at(1), "--seed", "3")
    process, _, ask = bench.start_held("DRBL", fast / "a", *given)
    asked = time.monotonic()
    os.write(ask, b"x")
    bench.finish(process)
    assert time.monotonic() - asked < 1


@pytest.mark.parametrize("binary", [bench.BENCH, bench.SANITIZED])
@pytest.mark.parametrize(
    ("workload", "more"),
    [("DRBL_bg", ()), ("MWCL", ()), ("MWUM", ()), ("DRBL", ("workers=threads",))],
)
def test_all_kinds_of_workloads(
    workload: str, more: tuple[str, ...], binary: Path, fast: Path, tmp_path: Path
) -> None:
    given = (*SHORT, *at(500, *more), "--max-stock", "5000", "--latency", str(tmp_path))
    code, out = bench.run(workload, fast / "a", *given, count=2, binary=binary)
    assert (code, out.status) == (0, "ok"), out.reason
    assert all(worker.ops > 0 for worker in out.workers)
    if out.background:
        # The writer has no rate.
        assert out.background.ops > 10 * out.ops


@pytest.mark.parametrize("other", [["--slice", "0.05", "--sync-fds", "0,1"], ["--windows", "5"]])
def test_what_has_no_time_to_wait_in_is_refused(other: list[str], fast: Path) -> None:
    argv = bench.argv("DRBL", fast / "a", *other, *at(100))
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "option rate" in done.stderr
