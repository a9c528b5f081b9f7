# SPDX-License-Identifier: GPL-2.0-only
"""Computes how many repetitions a comparison needs, before anything is measured."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb

from fscale.analysis.compare.settings import Settings
from fscale.analysis.metrics import CPU_EFFICIENCY, FAIRNESS, LATENCIES, PER_JOULE, THROUGHPUT
from fscale.model.results import CellKey

BLOCK = 4
"""Repetitions per side in a block of interleaved samples: eight runs, A B B A twice. Shorter blocks
follow drift more closely but allow fewer arrangements, so that one outlier hides a change
(docs/design/statistics.md compares them)."""


def smallest_p(repetitions: int, blocked: bool) -> float:
    """The smallest p-value that so many repetitions per side can reach."""
    blocks = max(1, repetitions // BLOCK) if blocked else 1
    last = repetitions - (blocks - 1) * BLOCK
    ways = comb(2 * BLOCK, BLOCK) ** (blocks - 1) * comb(2 * last, last)
    return float(min(1.0, 2 / ways))


def repetitions_to_reach(level: float, blocked: bool) -> int:
    """Fewest repetitions per side with which the test can reach `level` at all."""
    n = 1
    while smallest_p(n, blocked) > level:
        n += 1
    return n


def minimum_repetitions(settings: Settings, family: int, interleaved: bool) -> int:
    """Fewest repetitions per side that can detect one changed test among `family`."""
    return repetitions_to_reach(settings.fdr / max(1, family), interleaved)


def curves_of(points: Sequence[CellKey]) -> int:
    """How many tests of curves these points will give."""
    cores: dict[str, set[int]] = defaultdict(set)
    for key in points:
        cores[key.model_copy(update={"cores": 1}).point].add(key.cores)
    return sum(1 if len(counts) == 2 else 3 for counts in cores.values() if len(counts) > 1)


def tests_of(points: Sequence[CellKey], settings: Settings) -> int:
    """How many tests of rates, latencies, fairness and curves these points will give.

    Tests of counts, and of the metric settled, are added to these.
    """
    metrics = set(settings.metrics)
    rates = metrics & {THROUGHPUT, CPU_EFFICIENCY, PER_JOULE, *LATENCIES}
    shared = sum(key.cores * key.workers_per_cpu > 1 for key in points)
    tests = len(rates) * len(points) + len(metrics & set(FAIRNESS)) * shared
    return tests + (curves_of(points) if THROUGHPUT in rates else 0)


@dataclass(frozen=True)
class Shortage:
    """A lack of repetitions, because of which a run cannot be compared."""

    repetitions: int
    tests: int
    needed: int

    def __str__(self) -> str:
        return (
            f"too few repetitions for `fscale compare` ({self.repetitions}): it takes at least "
            f"{self.needed} to detect a single change among {self.tests} tests"
        )


def shortage(cells: Iterable[CellKey], settings: Settings) -> Shortage | None:
    """The shortage of repetitions in a run of these cells, if it is to be compared; None: enough.

    Profiling cells do not count.
    """
    scored = [key for key in cells if key.profile is None]
    points = list({key.point: key for key in scored}.values())
    tests = tests_of(points, settings)
    repetitions = max(key.repetition for key in scored)
    needed = minimum_repetitions(settings, tests, interleaved=False)
    return Shortage(repetitions, tests, needed) if repetitions < needed else None
