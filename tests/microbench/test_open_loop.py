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


def check_arrived(out: BenchOutput, rate: int, least: float = 0.99) -> None:
    """What began or waits by the end of the windows has arrived in them, or in the warm-up.

    On a busy machine a worker begins with its arrivals late in the warm-up. Poisson: five standard
    deviations.
    """
    assert out.backlog is not None
    due, most = rate * out.seconds, rate * (out.warmup_seconds + out.seconds)
    noise = 5 + (5 * most**0.5) * (out.options["arrival"] == "poisson")
    assert least * due - noise <= out.executed_ops + out.backlog <= most + noise


@pytest.mark.parametrize("arrival", ["poisson", "fixed"])
def test_what_arrives_is_done_and_timed(arrival: str, fast: Path, tmp_path: Path) -> None:
    given = (*SHORT, *at(2000, f"arrival={arrival}"), "--latency", str(tmp_path))
    out = bench.run_good("DRBL", fast / "a", *given, count=2)
    check_arrived(out, 2 * 2000)
    assert out.options["rate"] == 2000
    assert out.options["arrival"] == arrival
    assert out.latency is not None
    samples = sum(count for _, count in counts(tmp_path.glob("worker-*.hist")))
    assert samples == sum(out.latency.samples) == pytest.approx(out.ops, abs=2)


def test_workers_sleep_until_an_operation_arrives(fast: Path) -> None:
    out = bench.run_good("DRBL", fast / "a", *SHORT, *at(100))
    (worker,) = out.workers
    # Waking up and spinning for 100 us, a hundred times a second.
    assert worker.user_seconds + worker.system_seconds < 0.1 * out.seconds
    # Arrivals within 100 us of each other, or during a stall of the machine, find it awake.
    assert worker.voluntary_switches > 0.8 * out.ops


def test_what_is_not_served_is_counted(fast: Path) -> None:
    given = (*SHORT, *at(100_000, "arrival=fixed", "block=1048576"))
    out = bench.run_good("DRBL", fast / "a", *given)
    check_arrived(out, 100_000)
    assert out.backlog is not None
    assert out.backlog > 0.2 * 100_000 * out.seconds
    assert bench.run_good("DRBL", fast / "b", *SHORT).backlog is None


def test_a_stock_that_ends_begins_new_arrivals(fast: Path) -> None:
    given = (*SHORT, *at(2000, "arrival=fixed"), "--max-stock", "300")
    out = bench.run_good("MWUL", fast / "a", *given, bound="maximum")
    ended = sum(window.end == "exhausted" for window in out.windows)
    assert ended >= 2
    # What found no stock did not begin; nothing arrives between two windows.
    assert out.backlog is not None
    assert out.backlog >= ended
    check_arrived(out, 2000, least=0.9)


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
