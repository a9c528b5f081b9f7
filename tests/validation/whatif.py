# SPDX-License-Identifier: GPL-2.0-only
"""Two planted bottlenecks: does what-if rank them as removing each from the source does?

.venv/bin/python -m tests.validation.whatif --output results/validation/what-if

In Debian's ext4 a read, which shares nothing else, adds to one counter twice and to another once.
The first is the bottleneck and hides the second. Prints what --what-if says of each and what a
module without it gives; exits 1 where they differ by more than a tenth, or where the ranking is
another. On more cores than one socket has, who follows whom at a line is chance, and stays for a
boot: there only the median of several seeds can be compared.
"""

import argparse
import sys
from pathlib import Path

from fscale.analysis.hot import simulations
from fscale.analysis.reader import load
from fscale.analysis.summary import Point, summarise
from tests.validation.gate import fscale, module

COUNTERS = ("ext4_twice_planted", "ext4_once_planted")
NEAR = 0.1


def simulated(output: Path, ko: Path, given: argparse.Namespace, *more: str) -> list[Point]:
    """The points of one sweep."""
    fscale(
        *("simulate", "--fs", "ext4", "--module", ko, "--workload", "DRBL", "--memory", "2048"),
        *("--cores", str(given.cores), "--seeds", str(given.seeds), "--output", output, *more),
    )
    return summarise(load(output).scored)


def free_of(points: list[Point], counter: str) -> Point:
    """The point in which a counter cost nothing."""
    for point in points:
        free = {name for simulation in simulations(point) for name in simulation.free}
        if point.key.side and any(counter in name for name in free):
            return point
    raise SystemExit(f"what-if did not ask for {counter}")


def main() -> int:
    """Build the modules, simulate, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cores", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--kernel", default="bookworm")
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    both = module("two", given.kernel, "ext4")
    asked = simulated(given.output / "both", both, given, "--what-if", "2")
    base = next(point.median for point in asked if point.key.side is None)
    bad = 0
    gains: list[tuple[float, float]] = []
    print("| without | what-if | removed from the source |\n|---|--:|--:|")
    for counter in COUNTERS:
        without = module("two", given.kernel, "ext4", leave_out=f"atomic_inc(&{counter})")
        (point,) = simulated(given.output / counter, without, given)
        said, real = free_of(asked, counter).median / base, point.median / base
        gains.append((said, real))
        bad += abs(said / real - 1) > NEAR
        print(f"| `{counter}` | {said:.2f} | {real:.2f} |", flush=True)
    by_said, by_real = (sorted(gains, key=lambda gain: gain[n]) for n in (0, 1))
    return int(bad > 0 or by_said != by_real)


if __name__ == "__main__":
    sys.exit(main())
