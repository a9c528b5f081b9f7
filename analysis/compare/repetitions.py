# SPDX-License-Identifier: GPL-2.0-only
"""How many repetitions a comparison takes: arithmetic alone, to be said before anything runs."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb

from analysis.compare.settings import CPU_EFFICIENCY, THROUGHPUT, Settings
from fscale.model.results import CellKey

BLOCK = 4
"""Repetitions a side in a block of interleaved samples: eight runs, A B B A twice. Shorter blocks
follow drift more closely but leave fewer arrangements, so that one outlier hides a change
(docs/design/statistics.md compares them)."""


def smallest_p(repetitions: int, blocked: bool) -> float:
    """The smallest p-value that so many repetitions a side can reach."""
    blocks = max(1, repetitions // BLOCK) if blocked else 1
    last = repetitions - (blocks - 1) * BLOCK
    ways = comb(2 * BLOCK, BLOCK) ** (blocks - 1) * comb(2 * last, last)
    return float(min(1.0, 2 / ways))


def repetitions_to_reach(level: float, blocked: bool) -> int:
    """Fewest repetitions a side with which the test can reach `level` at all."""
    n = 1
    while smallest_p(n, blocked) > level:
        n += 1
    return n


def minimum_repetitions(settings: Settings, family: int, interleaved: bool) -> int:
    """Fewest repetitions a side with which one changed test among `family` can be found at all."""
    return repetitions_to_reach(settings.fdr / max(1, family), interleaved)


def curves_of(points: Sequence[CellKey]) -> int:
    """How many tests of curves these points will make."""
    cores: dict[str, set[int]] = defaultdict(set)
    for key in points:
        cores[key.model_copy(update={"cores": 1}).point].add(key.cores)
    return sum(1 if len(counts) == 2 else 3 for counts in cores.values() if len(counts) > 1)


def tests_of(points: Sequence[CellKey], settings: Settings) -> int:
    """How many tests of rates and curves these points will make.

    Counted work, and rates of turns that are settled, come on top.
    """
    rates = {THROUGHPUT, CPU_EFFICIENCY} & set(settings.metrics)
    return len(rates) * len(points) + (curves_of(points) if THROUGHPUT in rates else 0)


@dataclass(frozen=True)
class Shortage:
    """Why a run cannot be compared."""

    repetitions: int
    tests: int
    needed: int

    def __str__(self) -> str:
        return (
            f"too few repetitions for `fscale compare` ({self.repetitions}): a single change among "
            f"{self.tests} tests is found with {self.needed} or more"
        )


def shortage(cells: Iterable[CellKey], settings: Settings) -> Shortage | None:
    """What a run of these cells lacks to be compared with another one of the same; None: nothing.

    Profiling cells do not count.
    """
    scored = [key for key in cells if key.profile is None]
    points = list({key.point: key for key in scored}.values())
    tests = tests_of(points, settings)
    repetitions = max(key.repetition for key in scored)
    needed = minimum_repetitions(settings, tests, interleaved=False)
    return Shortage(repetitions, tests, needed) if repetitions < needed else None
