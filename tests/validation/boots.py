# SPDX-License-Identifier: GPL-2.0-only
"""Boots a guest many times with nothing changed: does `compare` of two boots raise false alarms?

.venv/bin/python -m tests.validation.boots --output results/validation/boots

Guests count instructions (icount), so that nothing of the host is in their figures, and several may
run at once. What moves them from boot to boot is what the kernel has put where, and how its queues
and trees have grown. There are no caches in it, and a guest's kernel is always loaded at the same
address (nokaslr): what a real machine's boots do to cache misses comes on top. With --timed guests
are only emulated: the host's caches, and all else of it, are in their figures then. Every boot is
compared with every other, and within each boot its odd repetitions with its even ones. It goes on
where it was stopped.
"""

import argparse
import math
import os
import shutil
import statistics
import subprocess
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path

from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import Sides, sides_of
from fscale.analysis.metrics import CPU_EFFICIENCY, THROUGHPUT
from fscale.analysis.reader import Results, load
from fscale.model.errors import FscaleError
from fscale.model.paths import ROOT
from fscale.model.results import Cell

MARGINS = (0.05, 0.02, 0.01, 0.002)
"""Those of `compare`, of pairs in slices, of counted work; and one that hides little."""

TRIES = 3
"""of a boot: on a host that is busy with other things, a guest may give no sign of life"""


def boot(number: int, given: argparse.Namespace) -> None:
    """Measure in a new boot, unless that is done."""
    output = given.output / f"boot{number}"
    if (output / "run.json").exists():
        if load(output).run.state == "complete":
            return
        shutil.rmtree(output)
    argv = [
        *(str(ROOT / "bin" / "fscale"), "vm", "run", "quick", "--kernel", given.kernel),
        *(["--accel", "tcg"] if given.timed else ["--deterministic"]),
        *("--smp", "1", "--memory", "2G", "--cores", "1"),
        *("--fs", given.filesystems, "--workload", given.workloads),
        *("--repetitions", str(2 * given.repetitions), "--duration", str(given.duration)),
        *("--set", "warmup=0.1", "--seed", "1", "--output", str(output)),
    ]
    for left in reversed(range(TRIES)):
        with (given.output / f"boot{number}.log").open("a") as log:
            done = subprocess.run(argv, stdout=log, stderr=subprocess.STDOUT, check=False)
        if done.returncode == 0:
            return
        # It would go on in another boot.
        shutil.rmtree(output, ignore_errors=True)
        if not left:
            raise FscaleError(f"boot {number} failed {TRIES} times; see {log.name}")


def part(cells: Sequence[Cell], half: int) -> list[Cell]:
    """The odd or the even repetitions, renumbered."""
    return [
        cell.model_copy(
            update={
                "key": cell.key.model_copy(update={"repetition": (cell.key.repetition + 1) // 2})
            }
        )
        for cell in cells
        if cell.key.repetition % 2 == half
    ]


def verdicts(sides: Sides, margin: float) -> Counter[str]:
    """How many judgements of a comparison have each verdict; `alarms` counts it once."""
    comparison = compare(sides, Settings(margin=margin, metrics=(THROUGHPUT, CPU_EFFICIENCY)))
    found = Counter(str(judgement.verdict) for judgement in comparison.judgements)
    found["alarms"] = int(found["slower"] + found["faster"] > 0)
    found["comparisons"] = 1
    return found


def components(groups: Sequence[Sequence[float]]) -> tuple[float, float]:
    """The standard deviations within groups and between them (analysis of variance).

    Of groups of one size; between them it is 0 where they differ no more than chance would have it.
    """
    within = statistics.mean(statistics.variance(group) for group in groups)
    means = statistics.variance([statistics.mean(group) for group in groups])
    return math.sqrt(within), math.sqrt(max(0.0, means - within / len(groups[0])))


def spread(boots: Sequence[Results]) -> dict[str, tuple[float, float]]:
    """Of each point's throughput: the relative spread within boots and between them."""
    found: dict[str, list[list[float]]] = {}
    for results in boots:
        rates: dict[str, list[float]] = {}
        for cell in results.scored:
            if cell.status == "ok" and cell.ops_per_second:
                name = f"{cell.key.workload} {cell.key.filesystem}"
                rates.setdefault(name, []).append(math.log(cell.ops_per_second))
        for name, values in rates.items():
            found.setdefault(name, []).append(values)
    fewest = {name: min(map(len, groups)) for name, groups in found.items()}
    return {
        name: components([group[: fewest[name]] for group in groups])
        for name, groups in sorted(found.items())
    }


def main() -> None:
    """Boot, compare, count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--kernel", default="bookworm")
    parser.add_argument("--filesystems", default="ext4")
    parser.add_argument("--workloads", default="DRBL,MWCL")
    parser.add_argument("--boots", type=int, default=10)
    parser.add_argument("--repetitions", type=int, default=7, help="a side of a comparison")
    parser.add_argument("--duration", type=float, default=0.1)
    parser.add_argument("--timed", action="store_true", help="one after the other, on a quiet host")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(1 if given.timed else os.cpu_count()) as pool:
        list(pool.map(lambda number: boot(number, given), range(given.boots)))
    boots = [load(given.output / f"boot{number}") for number in range(given.boots)]
    halves = [[part(results.cells, half) for half in (0, 1)] for results in boots]
    print(f"{len({str(results.run.machine.boots) for results in boots})} boots")
    for margin in MARGINS:
        between: Counter[str] = Counter()
        within: Counter[str] = Counter()
        for (one, cells), (other, others) in combinations(zip(boots, halves, strict=True), 2):
            sides = sides_of((one, cells[0]), (other, others[0]), ("a", "b"))
            between += verdicts(sides, margin)
        for results, (odd, even) in zip(boots, halves, strict=True):
            within += verdicts(sides_of((results, odd), (results, even), ("a", "b")), margin)
        for name, count in (("two boots", between), ("one boot", within)):
            print(
                f"margin {margin:.1%}, {name}: {count['alarms']} of {count['comparisons']} "
                f"comparisons raise a false alarm; judgements {dict(count)}"
            )
    for name, (inside, outside) in spread(boots).items():
        print(
            f"{name} {THROUGHPUT}: spread within a boot {inside:.3%}, between boots {outside:.3%}"
        )


if __name__ == "__main__":
    main()
