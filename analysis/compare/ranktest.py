# SPDX-License-Identifier: GPL-2.0-only
"""The exact two-sided rank test, for independent samples and for interleaved blocks."""

from dataclasses import dataclass
from math import comb

import numpy as np
import scipy
from numpy.typing import NDArray

from fscale.analysis.compare.repetitions import BLOCK

Floats = NDArray[np.float64]

EXACT_LIMIT = 120
"""Largest block whose null distribution is enumerated; larger ones use the normal approximation."""


@dataclass(frozen=True)
class RankSamples:
    """Two samples of one metric: a value, a side and a block for each repetition.

    `value`: positive, finite, shape (n,). `new`: bool, shape (n,). `block`: int, shape (n,);
    repetitions with the same number ran next to each other; independent samples are one block.
    """

    value: Floats
    new: NDArray[np.bool_]
    block: NDArray[np.int64]

    @classmethod
    def independent(cls, base: Floats, new: Floats) -> "RankSamples":
        """Two samples that were not interleaved."""
        value = np.concatenate([base, new])
        side = np.arange(value.size) >= base.size
        return cls(value, side, np.zeros(value.size, dtype=np.int64))

    @classmethod
    def interleaved(cls, base: dict[int, float], new: dict[int, float]) -> "RankSamples":
        """Two samples, by repetition, that ran as A B B A: equal repetitions were neighbours."""
        repetitions = np.array([*base, *new])
        # A remainder is not a block of its own: it joins the last whole one.
        whole = max([BLOCK, *base, *new]) // BLOCK
        return cls(
            np.array([*base.values(), *new.values()]),
            np.arange(repetitions.size) >= len(base),
            np.minimum((repetitions - 1) // BLOCK, whole - 1),
        )

    @property
    def blocked(self) -> bool:
        """Whether there is more than one block."""
        return np.unique(self.block).size > 1


def aligned(samples: RankSamples) -> Floats:
    """Logarithms with each block's median taken off, shape (n,), so that drift cancels.

    Hodges and Lehmann, "Rank methods for combination of independent experiments in analysis of
    variance", Ann. Math. Stat. 33 (1962): ranks of aligned observations.
    """
    logs: Floats = np.log(samples.value)
    if not samples.blocked:
        return logs
    for b in np.unique(samples.block):
        logs[samples.block == b] -= np.median(logs[samples.block == b])
    # Alignment leaves rounding of the last bits, which must not break ties.
    return np.round(logs, 12)


def p_value(samples: RankSamples) -> float:
    """Two-sided p-value of "both sides are the same", given that a block's order was arbitrary.

    The statistic is the sum of NEW's (aligned mid-)ranks; its null distribution comes from all the
    ways to choose NEW's repetitions within each block. One block gives the exact Wilcoxon-Mann-
    Whitney test, pairs give a signed-rank test, and ties need no correction.
    """
    doubled = np.rint(2 * scipy.stats.rankdata(aligned(samples))).astype(np.int64)
    observed = int(doubled[samples.new].sum())
    blocks = [
        (doubled[samples.block == b], int(samples.new[samples.block == b].sum()))
        for b in np.unique(samples.block)
    ]
    if max(ranks.size for ranks, _ in blocks) > EXACT_LIMIT:
        return normal_p_value(blocks, observed)
    distribution, offset = np.ones(1), 0
    for ranks, chosen in blocks:
        lowest = int(np.sort(ranks)[:chosen].sum())
        distribution = np.convolve(distribution, _subset_sums(ranks, chosen)[lowest:])
        offset += lowest
    at = observed - offset
    low, high = distribution[: at + 1].sum(), distribution[at:].sum()
    return float(min(1.0, 2 * min(low, high)))


def _subset_sums(ranks: NDArray[np.int64], chosen: int) -> Floats:
    """Probability of each sum of `chosen` of the ranks, shape (highest sum + 1,)."""
    top = int(np.sort(ranks)[ranks.size - chosen :].sum())
    ways = np.zeros((chosen + 1, top + 1))
    ways[0, 0] = 1
    for rank in ranks:
        ways[1:, rank:] += ways[:-1, : top + 1 - rank].copy()
    return np.asarray(ways[chosen] / comb(ranks.size, chosen))


def normal_p_value(blocks: list[tuple[NDArray[np.int64], int]], observed: int) -> float:
    """The two-sided p-value of a sum of ranks, by the normal approximation over all blocks."""
    mean = variance = 0.0
    for ranks, chosen in blocks:
        n = ranks.size
        mean += chosen * float(ranks.mean())
        if n > 1:
            variance += chosen * (n - chosen) / n * float(ranks.var(ddof=1))
    if variance == 0:
        return 1.0
    return float(
        min(1.0, 2 * scipy.stats.norm.sf(max(0.0, abs(observed - mean) - 1) / np.sqrt(variance)))
    )
