# SPDX-License-Identifier: GPL-2.0-only
"""Detects steps: places where the level of a series changed for more than one run.

The detection has three stages; docs/design/statistics.md shows the effect of each.

1. A single outlier is replaced by the median of its neighbourhood (Hampel's filter: F. R. Hampel,
   The influence curve and its role in robust estimation, J. Am. Stat. Assoc. 69, 1974).
2. PELT (R. Killick, P. Fearnhead, I. A. Eckley, J. Am. Stat. Assoc. 107, 2012) proposes edges. The
   unit is the series' own noise, the deviation of successive differences, which a step does not
   inflate.
3. The weakest edge is removed until all remaining ones are beyond the margin and significant by
   Student's t, with Bonferroni's correction for the number of possible places. The noise is pooled
   over all segments, and increased if successive runs are correlated.
"""

import itertools

import numpy as np
import ruptures
import scipy
from numpy.typing import NDArray

FEWEST_RUNS = 6
SEGMENT = 2
PENALTY = 3.0
NEIGHBOURS = 2  # on either side of a value that may be an outlier
OUTLIER = 4.0  # deviations from the median of the neighbourhood
ALPHA = 0.01  # error rate per series

Array = NDArray[np.float64]


def edges(values: Array, margin: float) -> list[int]:
    """The index of the first value after each change of level, ascending.

    Args:
        values: (n,) positive figures in the order of the runs, any unit.
        margin: the smallest change that counts, as a fraction: 0.05 is 5%.

    Returns:
        An empty list with fewer than six values.
    """
    if len(values) < FEWEST_RUNS:
        return []
    logs = np.log(values)
    noise = float(scipy.stats.median_abs_deviation(np.diff(logs), scale="normal")) / np.sqrt(2)
    noise = max(noise, margin / 100)  # for a series that hardly ever varies
    logs = _without_outliers(logs, OUTLIER * noise)
    search = ruptures.KernelCPD(kernel="linear", min_size=SEGMENT).fit(logs / noise)
    candidates = search.predict(pen=PENALTY * 2 * np.log(len(logs)))[:-1]
    return _confirmed(logs, candidates, -float(np.log1p(-margin)), margin / 100)


def _without_outliers(logs: Array, limit: float) -> Array:
    filtered = logs.copy()
    for place, value in enumerate(logs):
        near = logs[max(0, place - NEIGHBOURS) : place + NEIGHBOURS + 1]
        middle = float(np.median(near))
        if abs(value - middle) > limit:
            filtered[place] = middle
    return filtered


def _confirmed(logs: Array, candidates: list[int], least: float, floor: float) -> list[int]:
    """Backward elimination: `least` is the smallest change, `floor` the smallest noise."""
    confirmed = list(candidates)
    while confirmed:
        parts = np.split(logs, confirmed)
        noise = max(_noise(parts, len(logs)), floor)
        strengths = [
            abs(float(np.mean(b) - np.mean(a))) / np.sqrt(1 / len(a) + 1 / len(b)) / noise
            for a, b in itertools.pairwise(parts)
        ]
        changes = [abs(float(np.median(b) - np.median(a))) for a, b in itertools.pairwise(parts)]
        free = len(logs) - len(parts)
        enough = float(scipy.stats.t.isf(ALPHA / 2 / (len(logs) - 1), free))
        weak = [i for i, s in enumerate(strengths) if s < enough or changes[i] <= least]
        if not weak:
            break
        del confirmed[min(weak, key=lambda i: strengths[i])]
    return confirmed


def _noise(parts: list[Array], count: int) -> float:
    """Deviation within the parts, scaled to its effect on their means.

    With a correlation r of successive values, a mean of n values is as precise as one of
    n (1 - r) / (1 + r) independent values.
    """
    rest = [part - np.mean(part) for part in parts]
    squares = sum(float(np.sum(part**2)) for part in rest)
    if squares == 0:
        return 0.0
    products = sum(float(np.sum(part[1:] * part[:-1])) for part in rest)
    alike = float(np.clip(products / squares, 0, 0.9))
    return float(np.sqrt(squares / (count - len(parts)) * (1 + alike) / (1 - alike)))
