# SPDX-License-Identifier: GPL-2.0-only
"""The size of a change: the ratio of medians, its interval, and how many data would decide it."""

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from fscale.analysis.compare.ranktest import Floats, RankSamples

RANK_VARIANCE = np.pi / 3  # 1 / efficiency of a rank test against the t-test, normal data
MEDIAN_VARIANCE = np.pi / 2  # the same for a difference of medians
MOST_REPETITIONS = 1000


@dataclass(frozen=True)
class Effect:
    """The ratio of NEW's median to BASE's, with its interval. All values are ratios."""

    ratio: float
    low: float
    high: float


def centred(samples: RankSamples) -> tuple[Floats, Floats]:
    """Logarithms of BASE and NEW, each block centred between the medians of its two sides.

    The rank test must not use the sides when it aligns. An estimate may, and then the centre does
    not depend on the size of the change. A block with one side only carries no information about
    the difference and is left out.
    """
    logs: Floats = np.log(samples.value)
    if not samples.blocked:
        return logs[~samples.new], logs[samples.new]
    base, new = [], []
    for block in np.unique(samples.block):
        in_block = samples.block == block
        a, b = logs[in_block & ~samples.new], logs[in_block & samples.new]
        if a.size and b.size:
            centre = (np.median(a) + np.median(b)) / 2
            base.append(a - centre)
            new.append(b - centre)
    if not base:
        return logs[~samples.new], logs[samples.new]
    return np.round(np.concatenate(base), 12), np.round(np.concatenate(new), 12)


def effect(
    samples: RankSamples, confidence: float, resamples: int, rng: np.random.Generator
) -> Effect:
    """Ratio of medians with a bias-corrected and accelerated bootstrap interval.

    Efron, "Better bootstrap confidence intervals", JASA 82 (1987). Interleaved samples are aligned
    by blocks first. If BCa is undefined (too few different values), the percentile interval is
    used. Without any spread the interval is the point estimate.
    """
    base, new = centred(samples)
    point = float(np.median(new) - np.median(base))
    low, high = _interval(new, base, "BCa", confidence, resamples, rng)
    if not np.isfinite([low, high]).all():
        low, high = _interval(new, base, "percentile", confidence, resamples, rng)
    return Effect(*(float(np.exp(x)) for x in (point, min(low, point), max(high, point))))


def _difference(new: Floats, base: Floats, axis: int) -> Floats:
    return np.asarray(np.median(new, axis=axis) - np.median(base, axis=axis))


def _interval(
    new: Floats,
    base: Floats,
    method: Literal["BCa", "percentile"],
    confidence: float,
    resamples: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.stats.DegenerateDataWarning)
        # scipy divides by the jackknife's spread, which is zero for medians of tied values.
        warnings.simplefilter("ignore", RuntimeWarning)
        interval = scipy.stats.bootstrap(
            [new, base],
            _difference,
            confidence_level=confidence,
            n_resamples=resamples,
            method=method,
            rng=rng,
        ).confidence_interval
    return float(interval.low), float(interval.high)


def deviation(logs: Floats) -> float:
    """Robust standard deviation of logarithms (a fraction of the value); 0 for fewer than two."""
    if logs.size < 2:
        return 0.0
    robust = float(scipy.stats.median_abs_deviation(logs, scale="normal"))
    return robust if robust > 0 else float(logs.std(ddof=1))


def outliers(logs: Floats) -> NDArray[np.bool_]:
    """Mark values beyond 3.5 robust deviations: bool, shape (n,).

    Iglewicz and Hoaglin, "How to detect and handle outliers" (1993): the modified z-score.
    """
    if logs.size == 0:
        return np.zeros(0, np.bool_)
    spread = float(scipy.stats.median_abs_deviation(logs, scale="normal"))
    return np.abs(logs - np.median(logs)) > max(3.5 * spread, 1e-9)


def spread_of(samples: RankSamples) -> float:
    """Robust deviation within both sides, centred; a fraction of the value."""
    sides = centred(samples)
    freedom = [max(0, s.size - 1) for s in sides]
    if sum(freedom) == 0:
        return 0.0
    return float(np.sqrt(np.average([deviation(s) ** 2 for s in sides], weights=freedom)))


def smallest_change(spread: float, repetitions: int, level: float, power: float) -> float:
    """The change (a fraction of the base) that the rank test at `level` detects with `power`.

    It is the detectable change of the t-test on logarithms, (t(1 - level/2) + t(power)) x spread x
    sqrt(2/n), widened by the rank test's efficiency.
    """
    freedom = max(1, 2 * repetitions - 2)
    reach = scipy.stats.t.isf(level / 2, freedom) + scipy.stats.t.ppf(power, freedom)
    return float(1 - np.exp(-reach * spread * np.sqrt(2 / repetitions * RANK_VARIANCE)))


def repetitions_needed(
    spread: float, ratio: float, margin: float, level: float, confidence: float
) -> int | None:
    """Repetitions per side that would probably decide a cell if its ratio stays the same.

    A ratio beyond the margin has to become significant; one within it needs an interval that fits
    between the ratio and the nearer bound. None if that takes more than `MOST_REPETITIONS`.
    """
    log, bound = abs(np.log(ratio)), -np.log1p(-margin)
    n = np.arange(2, MOST_REPETITIONS + 1)
    if log > bound:
        width = scipy.stats.t.isf(level / 2, 2 * n - 2) * np.sqrt(2 / n * RANK_VARIANCE) * spread
        enough = width <= log
    else:
        tail = (1 - confidence) / 2
        width = scipy.stats.t.isf(tail, 2 * n - 2) * np.sqrt(2 / n * MEDIAN_VARIANCE) * spread
        enough = width <= bound - log
    return int(n[np.argmax(enough)]) if enough.any() else None
