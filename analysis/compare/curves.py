# SPDX-License-Identifier: GPL-2.0-only
"""Compares whole scaling curves: each repetition of a curve gives values that are tested.

A curve's repetition r consists of the repetitions r of its core counts. It gives one speed-up, one
slope and one peak, so that the unit stays the repetition, and points and curves share the same
tests and false discovery rate.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from fscale.analysis.compare.model import Subject
from fscale.analysis.compare.observations import Observations, Test
from fscale.analysis.compare.ranktest import Floats
from fscale.analysis.compare.sliced import PairRatio
from fscale.analysis.metrics import DOUBLING, PEAK, SPEEDUP, THROUGHPUT

Series = tuple[Floats, Floats]  # core counts and throughputs, each of shape (points,)


def speedup(curve: Series) -> float:
    """Throughput at the highest core count over that at the lowest."""
    return float(curve[1][-1] / curve[1][0])


def gain_per_doubling(curve: Series) -> float:
    """Factor by which throughput grows when cores double: 2 ** (slope of log2 over log2)."""
    slope = np.polyfit(np.log2(curve[0]), np.log2(curve[1]), 1)[0]
    return float(2**slope)


def peak_cores(curve: Series, margin: float) -> float:
    """The fewest cores that reach the curve's maximum, to within the margin.

    Without the margin, the peak of a flat curve would wander with the noise.
    """
    return float(curve[0][np.argmax(curve[1] >= (1 - margin) * curve[1].max())])


def curve_tests(points: Sequence[Test], margin: float) -> list[Test]:
    """Tests of the curves that the throughput tests in `points` form.

    A curve of two core counts has only a speed-up; a slope and a peak need three.
    """
    curves: dict[Subject, list[Test]] = defaultdict(list)
    for test in points:
        if test.metric == THROUGHPUT:
            curves[test.subject.model_copy(update={"cores": ()})].append(test)
    tests = []
    for subject, curve in curves.items():
        if len(curve) < 2:
            continue
        curve.sort(key=lambda t: t.subject.cores)
        cores = tuple(t.subject.cores[0] for t in curve)
        metrics: dict[str, Callable[[Series], float]] = {SPEEDUP: speedup}
        sliced = all(t.ratios for t in curve)
        if len(curve) > 2:
            metrics[DOUBLING] = gain_per_doubling
            if not sliced:  # pairs give ratios, and a peak is not one
                metrics[PEAK] = lambda curve: peak_cores(curve, margin)
        for metric, of in metrics.items():
            base = _measured([t.base for t in curve], cores, of)
            new = _measured([t.new for t in curve], cores, of)
            whole = subject.model_copy(update={"cores": cores})
            ratios = _ratios(curve, cores, metric)
            tests.append(
                Test(
                    whole,
                    metric,
                    base,
                    new,
                    curve[0].interleaved,
                    curve[0].looks,
                    ratios,
                )
            )
    return tests


def _ratios(points: Sequence[Test], cores: Sequence[int], metric: str) -> dict[int, PairRatio]:
    """The pairs' ratios of a curve's speed-up, or of its gain per doubling.

    Both are linear in the logarithms of the points' ratios.
    """
    if metric == SPEEDUP:
        weights = np.array([-1.0, *[0.0] * (len(points) - 2), 1.0])
    else:
        x = np.log2(np.array(cores))
        weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    common = sorted(set.intersection(*(set(p.ratios) for p in points)))
    return {
        r: PairRatio(
            float(weights @ np.array([p.ratios[r].log for p in points])),
            float(np.sqrt(weights**2 @ np.array([p.ratios[r].error ** 2 for p in points]))),
            min(p.ratios[r].blocks for p in points),
            points[0].ratios[r].seconds,
            work=tuple(
                replace(work, weight=work.weight * weight)
                for p, weight in zip(points, weights, strict=True)
                if weight
                for work in p.ratios[r].work
            ),
        )
        for r in common
    }


def _measured(
    points: Sequence[Observations], cores: Sequence[int], of: Callable[[Series], float]
) -> Observations:
    repetitions = sorted(set.intersection(*(set(p.values) for p in points)))
    x = np.array(cores)
    values = {r: of((x, np.array([p.values[r] for p in points]))) for r in repetitions}
    most = max(len(p.values) for p in points)
    disturbed = min(max(p.disturbed for p in points), len(values))
    lost = [p.lost for p in points if p.disturbed]
    known = [share for share in lost if share is not None]
    return Observations(
        points[0].filesystem,
        values,
        most - len(values),
        disturbed,
        sum(known) if known and len(known) == len(lost) else None,
    )
