# SPDX-License-Identifier: GPL-2.0-only
"""How well predicted curves meet measured ones, beside predictors that need no simulator.

A curve is the rate at each core count. Speed-ups are divided by that of a control that shares
nothing and multiplied by the core count, on both sides: the clock of a machine that slows down when
all of its cores work is no merit or fault of a prediction.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

Curve = Mapping[int, float]
"""cores -> rate, or speed-up"""
# A curve is contended if its measured speed-up stays below this part of linear.
CONTENDED = 0.5


def speedups(rates: Curve, control: Curve | None = None) -> dict[int, float]:
    """Speed-up at each core count, by that of the control at the counts that it has.

    The first core count is the base.
    """
    first = min(rates)
    by_curve = {}
    for cores, rate in sorted(rates.items()):
        share = 1.0
        if control is not None:
            share = control[cores] * first / (control[first] * cores)
        by_curve[cores] = rate / rates[first] / share
    return by_curve


def peak(curve: Curve) -> int:
    """The core count of the highest value; the fewest cores among equals."""
    return max(curve, key=lambda cores: (curve[cores], -cores))


def slope(curve: Curve) -> int:
    """The sign of the change over the last two core counts: 1, 0 or -1."""
    *_, before, last = sorted(curve)
    return (curve[last] > curve[before]) - (curve[last] < curve[before])


def amdahl(measured: Curve) -> Callable[[int], float]:
    """Amdahl's law through the measured one and two cores (the serial share is at least 0)."""
    serial = max(0.0, 2 / measured[2] - 1)
    return lambda cores: 1 / (serial + (1 - serial) / cores)


@dataclass(frozen=True)
class Pair:
    """A curve that was predicted and measured, as speed-ups at the same core counts."""

    workload: str
    filesystem: str
    predicted: Curve
    measured: Curve

    @property
    def errors(self) -> dict[int, float]:
        """The natural logarithm of predicted by measured at each core count but the base."""
        first = min(self.measured)
        return {
            cores: math.log(self.predicted[cores] / value)
            for cores, value in self.measured.items()
            if cores != first
        }

    @property
    def contended(self) -> bool:
        """Whether the measured speed-up at the most cores is below half of linear."""
        most = max(self.measured)
        return self.measured[most] < CONTENDED * most / min(self.measured)


@dataclass(frozen=True)
class Score:
    """What a predictor is worth over some curves, at their highest core counts."""

    curves: int
    error: float
    """median of the logarithmic errors without their signs"""
    signed: float
    """mean of the logarithmic errors: above 0, too much speed-up was predicted"""
    slopes: int
    """curves whose last slope has the right sign"""
    peaks: int
    """curves whose highest value is at the right core count"""


def score(pairs: Sequence[Pair]) -> Score:
    """Score predictions; there must be at least one."""
    last = [pair.errors[max(pair.errors)] for pair in pairs]
    return Score(
        curves=len(pairs),
        error=statistics.median(map(abs, last)),
        signed=statistics.fmean(last),
        slopes=sum(slope(pair.predicted) == slope(pair.measured) for pair in pairs),
        peaks=sum(peak(pair.predicted) == peak(pair.measured) for pair in pairs),
    )


def trivial(pairs: Iterable[Pair], two: Mapping[tuple[str, str], float]) -> dict[str, list[Pair]]:
    """The same curves by predictors that need no simulator, by their names.

    `two` has the measured speed-up at two cores, which Amdahl's law needs.
    """
    by_law: dict[str, list[Pair]] = {"linear": [], "flat": [], "Amdahl's law": []}
    for pair in pairs:
        first = min(pair.measured)
        law = amdahl({2: two[pair.workload, pair.filesystem]})
        rules: dict[str, Callable[[int], float]] = {
            "linear": lambda cores, first=first: cores / first,  # type: ignore[misc]
            "flat": lambda _: 1.0,
            "Amdahl's law": law,
        }
        for name, rule in rules.items():
            predicted = {cores: rule(cores) for cores in pair.measured}
            by_law[name].append(Pair(pair.workload, pair.filesystem, predicted, pair.measured))
    return by_law


def matched(
    predicted: Mapping[tuple[str, str], Curve],
    measured: Mapping[tuple[str, str], Curve],
    controls: tuple[Curve | None, Curve | None] = (None, None),
) -> list[Pair]:
    """The curves that both sides have, at the core counts that both have, as speed-ups.

    `controls` are rates of what shares nothing, predicted and measured.
    """
    pairs = []
    for name in sorted(predicted.keys() & measured.keys()):
        counts = sorted(predicted[name].keys() & measured[name].keys())
        if len(counts) < 2:
            continue
        sides = [
            speedups({cores: curve[cores] for cores in counts}, control)
            for curve, control in zip((predicted[name], measured[name]), controls, strict=True)
        ]
        pairs.append(Pair(*name, *sides))
    return pairs
