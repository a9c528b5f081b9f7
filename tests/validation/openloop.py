# SPDX-License-Identifier: GPL-2.0-only
"""A pause of one operation in many: what an open loop shows of it, and what a closed loop shows.

    .venv/bin/python -m tests.validation.openloop

Operations take s each, and one in N takes P longer. At r arrivals per second, those of the pause
wait, and so do those that follow until the worker has caught up: an arrival t after the beginning
of a pause waits for P - (1 - r s) t. A share q of all operations waits longer than
P - q (1 - r s) N / r, which is the quantile 1 - q. In the closed loop the share 1/N is late. The
exit code is 1 if p99.9 of the open loop differs by more than 10% from that, or if the closed loop
has a p99.9 of more than a tenth of the pause.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from fscale.model.bench import BenchOutput
from fscale.model.histogram import summarise
from fscale.runner.latency import counts
from tests.validation.delay import rare

WORKLOAD = "DRBL"
BLOCK = 262144
NEAR = 0.1
LATE = 0.001
"""the share of the operations beyond p99.9"""


def measured(
    binary: Path, cpu: int, seconds: float, *options: str
) -> tuple[BenchOutput, dict[str, Any]]:
    """A run in memory on one CPU: its output, and the quantiles of its latencies in seconds."""
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm") as place,
        tempfile.TemporaryDirectory() as files,
    ):
        argv = [str(binary), "--workload", WORKLOAD, "--dir", place, "--cpus", str(cpu)]
        argv += ["--duration", str(seconds), "--latency", files]
        for option in (f"block={BLOCK}", *options):
            argv += ["--option", option]
        done = subprocess.run(argv, check=True, capture_output=True, text=True)
        quantiles = summarise(counts(Path(files).glob("worker-*.hist")))["quantiles"]
    seconds_of = {name: nanoseconds / 1e9 for name, nanoseconds in quantiles.items()}
    return BenchOutput.model_validate_json(done.stdout), seconds_of


def expected(pause: float, every: int, rate: float, each: float) -> float:
    """p99.9 of an open loop in seconds; `each` is what an operation without a pause takes."""
    return pause - LATE * (1 - rate * each) * every / rate


def main() -> int:
    """Measure the closed and the open loop in turn, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pause", type=float, default=0.01, help="seconds")
    parser.add_argument("--every", type=int, default=4000, help="operations")
    parser.add_argument("--rate", type=int, default=4000, help="arrivals per second")
    parser.add_argument("--duration", type=float, default=6, help="seconds of a run")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--cpu", type=int, default=0)
    given = parser.parse_args()
    binary = rare(given.every, round(1e9 * given.pause), WORKLOAD)
    good = True
    for _ in range(given.runs):
        closed, tail = measured(binary, given.cpu, given.duration)
        each = 1 / closed.ops_per_second - given.pause / given.every
        print(
            f"closed: {closed.ops_per_second:.0f}/s, p50 {1e3 * tail['50']:.3f} ms, p99.9 "
            f"{1e3 * tail['99.9']:.3f} ms; without pauses {1e6 * each:.1f} us each",
            flush=True,
        )
        good = good and tail["99.9"] < 0.1 * given.pause
        opened, tail = measured(binary, given.cpu, given.duration, f"rate={given.rate}")
        due = expected(given.pause, given.every, given.rate, each)
        print(
            f"open: {opened.ops_per_second:.0f}/s, p50 {1e3 * tail['50']:.3f} ms, p99.9 "
            f"{1e3 * tail['99.9']:.3f} ms; calculated {1e3 * due:.3f} ms, "
            f"{tail['99.9'] / due - 1:+.1%}; backlog {opened.backlog}",
            flush=True,
        )
        good = good and abs(tail["99.9"] / due - 1) < NEAR
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
