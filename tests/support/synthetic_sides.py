# SPDX-License-Identifier: GPL-2.0-only
"""Simulated A/B runs with known changes: what the verdicts' error rates and power are.

The noise is lognormal, part of it drift (first-order autoregressive, 0.9 from run to run), with
one-sided outliers. Simulation shows what the method can do; only measurements on a machine show
what the machine is like (`tests/validation`).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fscale.analysis.compare.judge import judge
from fscale.analysis.compare.model import Subject
from fscale.analysis.compare.observations import Observations, Test
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sliced import PairRatio
from fscale.analysis.metrics import THROUGHPUT

PERSISTENCE = 0.9
OUTLIER = 0.7


@dataclass(frozen=True)
class Noise:
    """`cv`: of one repetition, a fraction; `drift`: its share of the variance that is drift;
    `outliers`: the share of repetitions that run at `OUTLIER` of their speed.
    """

    cv: float
    drift: float = 0.0
    outliers: float = 0.0


def order(repetitions: int, rng: np.random.Generator) -> list[str]:
    """The sides in the order of their runs: A B B A or B A A B, by the toss of a coin."""
    sides: list[str] = []
    for _ in range(0, repetitions, 2):
        sides += "ABBA" if rng.random() < 0.5 else "BAAB"
    return sides[: 2 * repetitions]


def interleaved_test(
    name: str, repetitions: int, noise: Noise, change: float, rng: np.random.Generator
) -> Test:
    """One cell measured as A B B A; side B's speed is `change` (0.1: 10%) lower."""
    sides = order(repetitions, rng)
    drift_sd, white_sd = noise.cv * np.sqrt([noise.drift, 1 - noise.drift])
    drift = rng.normal(0, drift_sd)
    values: dict[str, dict[int, float]] = {"A": {}, "B": {}}
    for side in sides:
        log = drift + rng.normal(0, white_sd)
        if rng.random() < noise.outliers:
            log += np.log(OUTLIER)
        if side == "B":
            log += np.log1p(-change)
        values[side][len(values[side]) + 1] = 1e6 * float(np.exp(log))
        drift = PERSISTENCE * drift + rng.normal(0, drift_sd * np.sqrt(1 - PERSISTENCE**2))
    base, new = (Observations("simulated", values[s]) for s in "AB")
    return Test(_subject(name), THROUGHPUT, base, new, interleaved=True)


def _subject(name: str) -> Subject:
    return Subject(
        workload=name,
        filesystem="simulated",
        medium="none",
        mode="buffered",
        cores=(1,),
        duration=1,
    )


def sliced_test(
    name: str, pairs: int, deviation: float, change: float, rng: np.random.Generator
) -> Test:
    """Pairs in slices whose log ratios have that deviation; half of its variance is the blocks'."""
    logs = np.log1p(-change) + rng.normal(0, deviation, pairs)
    error = deviation / float(np.sqrt(2))
    ratios = {r: PairRatio(float(log), error) for r, log in enumerate(logs, 1)}
    side = Observations("simulated", dict.fromkeys(ratios, 1e6))
    return Test(_subject(name), THROUGHPUT, side, side, interleaved=True, ratios=ratios)


def decided(test: Test, looks: Sequence[int], settings: Settings) -> tuple[str, int]:
    """The verdict of a sequential run on one test in slices, and after how many pairs."""
    for number, look in enumerate(looks, 1):
        ratios = {r: ratio for r, ratio in test.ratios.items() if r <= look}
        seen = replace(test, ratios=ratios, looks=tuple(looks[:number]))
        (judgement,) = judge([seen], settings)
        if judgement.verdict != "undecided":
            break
    return judgement.verdict, look


def verdicts(
    tries: int, repetitions: int, noise: Noise, change: float, settings: Settings
) -> Counter[str]:
    """The verdicts on one cell in so many comparisons.

    A cell that is the only changed one among m tests is found as one test is with a false
    discovery rate of `settings.fdr` / m.
    """
    rng = np.random.default_rng([settings.seed, tries, repetitions])
    return Counter(
        judge([interleaved_test("cell", repetitions, noise, change, rng)], settings)[0].verdict
        for _ in range(tries)
    )
