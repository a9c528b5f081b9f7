# SPDX-License-Identifier: GPL-2.0-only
"""A pause of one operation in many: what an open loop shows of it, and what a closed loop shows.

    .venv/bin/python -m tests.validation.openloop

Operations take s each, and one in many takes P longer. At r arrivals per second, those of the pause
wait, and so do those that follow until the worker has caught up: an arrival t after the beginning
of a pause waits for P - (1 - r s) t. If n operations had m pauses, a share q of them waits longer
than P - q (1 - r s) n / (m r), which is the quantile 1 - q. In the closed loop only one operation
waits per pause. The exit code is 1 if p90, p99 or p99.9 of the open loop differs by more than 10%
from what is calculated, or if p99.9 of the closed loop is more than a tenth of the pause.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from fscale.model.bench import BenchOutput
from fscale.model.histogram import summarise
from fscale.runner.latency import counts
from tests.validation.delay import rare

WORKLOAD = "DRBL"
BLOCK = 262144
NEAR = 0.1
SHOWN = ("90", "99", "99.9")


def measured(
    binary: Path, cpu: int, seconds: float, *options: str
) -> tuple[BenchOutput, dict[str, float]]:
    """A run in memory on one CPU: its output, and percentile -> latency in seconds."""
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
    return BenchOutput.model_validate_json(done.stdout), {q: n / 1e9 for q, n in quantiles.items()}


def calculated(
    opened: BenchOutput, closed: BenchOutput, pause: float, every: int, rate: float
) -> dict[str, float]:
    """Percentile -> latency of an open loop in seconds.

    One operation in `every` pauses. The `closed` loop says how long one takes that does not.
    """
    each = 1 / closed.ops_per_second - pause / every
    per_pause = opened.ops / (opened.executed_ops // every)
    return {q: pause - (1 - float(q) / 100) * (1 - rate * each) * per_pause / rate for q in SHOWN}


def shown(seconds: dict[str, float]) -> str:
    """The quantiles in milliseconds."""
    return ", ".join(f"p{q} {1e3 * seconds[q]:.4g} ms" for q in ("50", *SHOWN) if q in seconds)


def main() -> int:
    """Measure the closed and the open loop in turn, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds")
    parser.add_argument("--every", type=int, default=4000, help="operations")
    parser.add_argument("--rate", type=int, default=1000, help="arrivals per second")
    parser.add_argument("--duration", type=float, default=18, help="seconds of the open loop")
    parser.add_argument("--cpu", type=int, default=0)
    given = parser.parse_args()
    binary = rare(given.every, round(1e9 * given.pause), WORKLOAD)
    closed, late = measured(binary, given.cpu, given.duration / 3)
    print(f"closed loop: {shown(late)}, {closed.ops} operations", flush=True)
    opened, found = measured(binary, given.cpu, given.duration, f"rate={given.rate}")
    due = calculated(opened, closed, given.pause, given.every, given.rate)
    print(f"open loop: {shown(found)}, {opened.ops} operations, backlog {opened.backlog}")
    print(f"calculated: {shown(due)}")
    near = all(abs(found[q] / due[q] - 1) < NEAR for q in SHOWN)
    return 0 if near and late["99.9"] < 0.1 * given.pause else 1


if __name__ == "__main__":
    sys.exit(main())
