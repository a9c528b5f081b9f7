# SPDX-License-Identifier: GPL-2.0-only
"""What the slices of a paired run say: a ratio for each pair, and the pairs together.

The unit is the pair, two fresh file systems mounted at once: within a pair layout and caches are
the same, however many blocks of slices it has. A pair's ratio is the median of its blocks', which a
neighbour that comes and goes hits one by one; the pairs' mean is judged by Student's t.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import median_abs_deviation, t

from analysis.compare.effect import MEDIAN_VARIANCE, RANK_VARIANCE, Effect
from analysis.compare.ranktest import Floats
from analysis.compare.settings import THROUGHPUT
from fscale.model.results import Cell

LEAST_PAIRS = 4
LEAST_BLOCKS = 5  # of a pair; with fewer, it has no ratio


@dataclass(frozen=True)
class PairRatio:
    """The logarithm of NEW over BASE in one pair, and its standard error from the blocks."""

    log: float
    error: float


@dataclass(frozen=True)
class Paired:
    """What all pairs of one test say."""

    p: float
    effect: Effect
    between: float
    """standard deviation of the pairs' logarithms"""
    within: float
    """standard error of one pair's logarithm, root mean square"""
    spread: float
    """of a sample of its own on each side, of which as many would tell as much"""


def _rates(cell: Cell, metric: str) -> dict[int, float]:
    """Block -> operations per second, or per CPU second, over the side's two turns in it."""
    turns: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for one in cell.slices or ():
        length = one.seconds if metric == THROUGHPUT else one.cpu_seconds
        if one.seconds > 0 and length > 0:
            turns[one.block].append((one.ops, length))
    rates = {
        block: sum(ops for ops, _ in own) / sum(length for _, length in own)
        for block, own in turns.items()
        if len(own) == 2
    }
    return {block: rate for block, rate in rates.items() if rate > 0}


def ratios_of(
    base: Mapping[int, Cell], new: Mapping[int, Cell], metric: str
) -> dict[int, PairRatio]:
    """The ratio of each pair, by repetition; one with fewer than LEAST_BLOCKS has none."""
    found = {}
    for repetition in sorted(base.keys() & new.keys()):
        rates = _rates(base[repetition], metric), _rates(new[repetition], metric)
        blocks = sorted(rates[0].keys() & rates[1].keys())
        if len(blocks) >= LEAST_BLOCKS:
            logs: Floats = np.log([rates[1][b] / rates[0][b] for b in blocks])
            deviation = float(median_abs_deviation(logs, scale="normal"))
            error = deviation * float(np.sqrt(MEDIAN_VARIANCE / len(blocks)))
            found[repetition] = PairRatio(float(np.median(logs)), error)
    return found


def paired(ratios: Mapping[int, PairRatio], upto: int | None, level: float) -> Paired:
    """Student's t over the first `upto` pairs (at least two), two-sided, with its interval.

    A few pairs may agree by chance better than their own blocks allow; so the variance is at least
    the one that the blocks give.
    """
    own = [ratio for r, ratio in sorted(ratios.items()) if upto is None or r <= upto]
    logs = np.array([ratio.log for ratio in own])
    between = float(np.std(logs, ddof=1))
    within = float(np.sqrt(np.mean([ratio.error**2 for ratio in own])))
    deviation = max(between, within)
    error = deviation / np.sqrt(len(own))
    mean, freedom = float(np.mean(logs)), len(own) - 1
    if error > 0:
        p = float(2 * t.sf(abs(mean) / error, freedom))
        half = float(t.ppf((1 + level) / 2, freedom) * error)
    else:
        p, half = float(mean == 0), 0.0
    effect = Effect(*(float(np.exp(x)) for x in (mean, mean - half, mean + half)))
    # Two samples of n have a standard error of their spread times sqrt(2 / n) and the rank test's.
    return Paired(p, effect, between, within, deviation / float(np.sqrt(2 * RANK_VARIANCE)))
