# SPDX-License-Identifier: GPL-2.0-only
"""The change of the mean rate over all turns of a paired run, in which rare operations count.

A pair's robust centre (sliced.py) is what most turns show. It does not move when a journal commit,
a wait for log space or a grace period hits one turn in ten, and these are what a user's throughput
consists of as well. The mean rate is operations over time, summed over all turns: an estimate of a
ratio of means (Cochran, Sampling Techniques, 3rd ed. 1977, chapter 6), unbiased for operations of
any length, because a turn ends with a whole operation (Wald's equation).

What was never seen has no variance. So "same" also needs so much work that pauses would probably
have been seen (`work_needed`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log

import numpy as np
import scipy

from fscale.analysis.compare.effect import Effect

SHARE = 0.2
"""part of a test's error rate that the mean rate may spend; the robust centre has the rest"""
LOSS = 0.05
"""a change of the mean rate that "same" excludes, and the share of the time that pauses take"""
MISSED = 0.02
"""probability that none of them occurred in the work that was measured"""


@dataclass(frozen=True)
class Work:
    """Operations and seconds of both sides over all turns of a pair.

    `weight`: by which its logarithm enters a test of several points, such as a speed-up.
    """

    base_ops: float
    base_seconds: float
    new_ops: float
    new_seconds: float
    turns: float
    """seconds of all turns, of the side that has fewer"""
    weight: float = 1.0


@dataclass(frozen=True)
class MeanChange:
    """NEW over BASE by the mean rate, with its interval and p-value."""

    p: float
    effect: Effect
    work: float
    """seconds of work on each side, at the point that has fewest"""


def work_needed(pause: float) -> float:
    """Seconds of work in which pauses of `pause` seconds that cost LOSS would have been seen.

    If they come at random, they are pause / LOSS seconds of work apart.
    """
    return log(1 / MISSED) * pause / LOSS


def mean_change(pairs: Mapping[int, tuple[Work, ...]], level: float) -> MeanChange | None:
    """The change over all pairs, by repetition; None without operations on both sides.

    The variance is that of the pairs' influences on the logarithm (the delta method); Student's t
    with the degrees of freedom of so many pairs, fewer if some are much longer than others.
    """
    if len(pairs) < 2 or not all(pairs.values()):
        return None
    mean, work = 0.0, np.inf
    influence = np.zeros(len(pairs))
    lengths = np.zeros(len(pairs))
    for point in zip(*(works for _, works in sorted(pairs.items())), strict=True):
        one = np.array([(w.new_ops, w.new_seconds, w.base_ops, w.base_seconds) for w in point])
        total = one.sum(axis=0)
        if not (total > 0).all():
            return None
        signs = np.array([1, -1, -1, 1]) * point[0].weight
        mean += float(signs @ np.log(total))
        influence += (one / total) @ signs
        lengths += np.array([w.turns for w in point])
        work = min(work, float(sum(w.turns for w in point)))
    number = len(pairs)
    error = float(np.sqrt((influence**2).sum() * number / (number - 1)))
    freedom = max(1.0, float(lengths.sum() ** 2 / (lengths**2).sum()) - 1)
    if error > 0:
        p = float(2 * scipy.stats.t.sf(abs(mean) / error, freedom))
        half = float(scipy.stats.t.ppf((1 + level) / 2, freedom) * error)
    else:
        p, half = float(mean == 0), 0.0
    effect = Effect(*(float(np.exp(x)) for x in (mean, mean - half, mean + half)))
    return MeanChange(p, effect, work)
