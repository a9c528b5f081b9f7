# SPDX-License-Identifier: GPL-2.0-only
"""Evaluates the slices of a paired run: a ratio for each pair, and a test over all pairs.

The unit is the pair, two fresh file systems mounted at once: within a pair, layout and caches are
the same, however many blocks of slices it has. A pair's ratio is a robust centre of the ratios of
its blocks, because a short disturbance hits single blocks. The mean of the pairs is tested with
Student's t.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median

import numpy as np
import scipy

from fscale.analysis.compare.effect import MOST_REPETITIONS, RANK_VARIANCE, Effect
from fscale.analysis.compare.meanrate import MeanChange, Work, mean_change
from fscale.analysis.compare.ranktest import Floats
from fscale.analysis.metrics import (
    COUNT,
    FAIRNESS,
    INSTRUCTIONS,
    LATENCIES,
    NEVER_SLICED,
    turn_length,
)
from fscale.model.latency import PERCENTILES, quantile
from fscale.model.results import Cell

MIN_PAIRS = 4
FIRST_LOOK = 6
"""pairs; with fewer, Student's t at the level of a test among many needs ten deviations"""
FIRST_LOOK_OF_BOOTS = MIN_PAIRS
"""pairs of boots: each takes minutes, there are few tests, and counts hardly vary between boots"""
MIN_BLOCKS = 5  # a pair with fewer blocks has no ratio


@dataclass(frozen=True)
class PairRatio:
    """The logarithm of NEW over BASE in one pair, and its standard error from the blocks."""

    log: float
    error: float
    blocks: int = 0
    seconds: float = 0
    """length of a turn, median"""
    logs: tuple[float, ...] = field(default=(), compare=False, repr=False)
    """the logarithm in each block, in order"""
    work: tuple[Work, ...] = field(default=(), compare=False, repr=False)
    """all turns, which the mean rate comes from; empty for what is no rate"""


@dataclass(frozen=True)
class Paired:
    """The result of all pairs of one test."""

    p: float
    effect: Effect
    between: float
    """standard deviation of the pairs' logarithms"""
    within: float
    """standard error of one pair's logarithm, root mean square"""
    mean: MeanChange | None = None
    """the change of the mean rate; None if the metric is no rate"""

    @property
    def deviation(self) -> float:
        """The uncertainty of one pair's logarithm.

        A few pairs may agree by chance better than their own blocks allow, so it is at least the
        error within a pair.
        """
        return max(self.between, self.within)


def _rates(cell: Cell, metric: str) -> dict[int, float]:
    """Block -> the rate over the side's two turns in it; a block without both lengths has none."""
    turns: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for one in cell.slices or ():
        length = turn_length(one, metric)
        if one.seconds > 0 and length > 0:
            turns[one.block].append((one.ops, length))
    rates = {
        block: sum(ops for ops, _ in block_turns) / sum(length for _, length in block_turns)
        for block, block_turns in turns.items()
        if len(block_turns) == 2
    }
    return {block: rate for block, rate in rates.items() if rate > 0}


def _work(base: Cell, new: Cell, metric: str) -> Work:
    one, other = (
        [s for s in cell.slices or () if s.seconds > 0 and turn_length(s, metric) > 0]
        for cell in (base, new)
    )
    return Work(
        base_ops=sum(s.ops for s in one),
        base_seconds=sum(turn_length(s, metric) for s in one),
        new_ops=sum(s.ops for s in other),
        new_seconds=sum(turn_length(s, metric) for s in other),
        turns=min(sum(s.seconds for s in turns) for turns in (one, other)),
    )


def centre(logs: Floats) -> float:
    """The median of the means of all pairs of values, each with itself too.

    Hodges and Lehmann, "Estimates of location based on rank tests", Ann. Math. Stat. 34 (1963): it
    tolerates 29% of outliers. For normal values it needs 1.05 times as many values as the mean,
    while the median needs 1.57 times as many.
    """
    one, other = np.triu_indices(logs.size)
    return float(np.median((logs[one] + logs[other]) / 2))


def ratios_of(
    base: Mapping[int, Cell], new: Mapping[int, Cell], metric: str
) -> dict[int, PairRatio]:
    """The ratio of each pair, by repetition; pairs with fewer than MIN_BLOCKS have none."""
    pair_ratios = {}
    for repetition in sorted(base.keys() & new.keys()):
        if metric == INSTRUCTIONS:
            counts = [instructions(side[repetition]) for side in (base, new)]
            if all(counts):
                pair_ratios[repetition] = PairRatio(float(np.log(counts[1] / counts[0])), 0.0)
            continue
        if metric in LATENCIES:
            quantiles = [_quantile(side[repetition], metric) for side in (base, new)]
            if all(quantiles):
                pair_ratios[repetition] = _of_quantiles(base[repetition], *filter(None, quantiles))
            continue
        if metric in FAIRNESS:
            continue
        rates = _rates(base[repetition], metric), _rates(new[repetition], metric)
        blocks = sorted(rates[0].keys() & rates[1].keys())
        if len(blocks) >= MIN_BLOCKS:
            logs: Floats = np.log([rates[1][b] / rates[0][b] for b in blocks])
            deviation = float(scipy.stats.median_abs_deviation(logs, scale="normal"))
            error = deviation * float(np.sqrt(RANK_VARIANCE / len(blocks)))
            seconds = median(s.seconds for s in base[repetition].slices or () if s.seconds)
            work = (_work(base[repetition], new[repetition], metric),)
            pair_ratios[repetition] = PairRatio(
                centre(logs), error, len(blocks), seconds, tuple(logs), work
            )
    return pair_ratios


@dataclass(frozen=True)
class _Quantile:
    """The logarithm of a quantile over all turns of a side, and its standard error."""

    log: float
    error: float


def _quantile(cell: Cell, metric: str) -> _Quantile | None:
    """None if the cell has no latencies by turn, or none of this metric."""
    nanoseconds = None if metric in NEVER_SLICED else quantile(cell.latency, metric)
    errors = (cell.latency or {}).get("errors", {})
    error = errors.get(PERCENTILES[metric])
    if not nanoseconds or not isinstance(error, int | float):
        return None
    return _Quantile(float(np.log(nanoseconds)), float(error))


def _of_quantiles(cell: Cell, base: _Quantile, new: _Quantile) -> PairRatio:
    """The ratio of two sides' quantiles: one over all blocks, for a block alone has no tail."""
    turns = [turn for turn in cell.slices or () if turn.seconds]
    blocks = len({turn.block for turn in turns})
    seconds = median(turn.seconds for turn in turns)
    error = float(np.hypot(base.error, new.error))
    return PairRatio(new.log - base.log, error, blocks, seconds)


def instructions(cell: Cell) -> float:
    """Instructions per operation in a guest that counts them; 0 if they were not counted."""
    return (cell.counts or {}).get(INSTRUCTIONS.removeprefix(COUNT), 0.0)


def paired(ratios: Mapping[int, PairRatio], upto: int | None, level: float) -> Paired | None:
    """Student's t over the first `upto` pairs, two-sided, with its interval.

    None if fewer than two of them have a ratio: nothing is known about their spread.
    """
    by_repetition = {r: ratio for r, ratio in sorted(ratios.items()) if upto is None or r <= upto}
    if len(by_repetition) < 2:
        return None
    used = list(by_repetition.values())
    logs = np.array([ratio.log for ratio in used])
    between = float(np.std(logs, ddof=1))
    within = float(np.sqrt(np.mean([ratio.error**2 for ratio in used])))
    error = max(between, within) / np.sqrt(len(used))
    mean, freedom = float(np.mean(logs)), len(used) - 1
    if error > 0:
        p = float(2 * scipy.stats.t.sf(abs(mean) / error, freedom))
        half = float(scipy.stats.t.ppf((1 + level) / 2, freedom) * error)
    else:
        p, half = float(mean == 0), 0.0
    effect = Effect(*(float(np.exp(x)) for x in (mean, mean - half, mean + half)))
    mean_rate = mean_change({r: ratio.work for r, ratio in by_repetition.items()}, level)
    return Paired(p, effect, between, within, mean_rate)


def smallest_change(deviation: float, pairs: int, level: float, power: float) -> float:
    """The change (a fraction of the base) that so many pairs detect with `power` at `level`."""
    freedom = max(1, pairs - 1)
    reach = scipy.stats.t.isf(level / 2, freedom) + scipy.stats.t.ppf(power, freedom)
    return float(1 - np.exp(-reach * deviation / np.sqrt(pairs)))


def pairs_needed(
    deviation: float, ratio: float, margin: float, level: float, confidence: float
) -> int | None:
    """Pairs that would probably decide a point if its ratio stays the same.

    A ratio beyond the margin has to become significant; one within it needs an interval that fits
    between the ratio and the nearer bound. None if that takes more than `MOST_REPETITIONS`.
    """
    log, bound = abs(np.log(ratio)), -np.log1p(-margin)
    n = np.arange(MIN_PAIRS, MOST_REPETITIONS + 1)
    tail, room = (level / 2, log) if log > bound else ((1 - confidence) / 2, bound - log)
    enough = scipy.stats.t.isf(tail, n - 1) * deviation / np.sqrt(n) <= room
    return int(n[np.argmax(enough)]) if enough.any() else None
