# SPDX-License-Identifier: GPL-2.0-only
"""Summarises counted latencies as an HdrHistogram, mean and quantiles."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from math import ceil, log, sqrt
from statistics import pvariance
from typing import Any

from hdrh.histogram import HdrHistogram

from fscale.model.latency import recorded_share, represents_cell

_QUANTILES = (50.0, 90.0, 99.0, 99.9, 99.99, 100.0)
_HIGHEST = 2**37 - 1  # nanoseconds; the largest value in the files: 137 s
_PRECISION = 1e-3  # of a bucket from 2,048 ns on; below, a bucket is a nanosecond


def summarise(counts: Iterable[tuple[int, int]], dropped: int = 0) -> dict[str, Any]:
    """Summarise pairs of nanoseconds and the number of operations that took so long.

    Returns `histogram` (HdrHistogram V2, base64, mergeable), `unit`, `count`, `dropped` (operations
    that are not in the histogram), `covered` (the share that is), `mean` and `quantiles`
    (percentile -> nanoseconds). Mean and quantiles are None if the histogram is empty or too many
    operations were dropped.
    """
    histogram = HdrHistogram(1, _HIGHEST, 3)
    for value, count in counts:
        histogram.record_value(min(max(1, value), _HIGHEST), count)
    made: dict[str, Any] = {
        "histogram": histogram.encode().decode(),
        "unit": "ns",
        "count": histogram.get_total_count(),
        "dropped": dropped,
    }
    known = represents_cell(made)
    quantiles = {
        f"{q:g}": histogram.get_value_at_percentile(q) if known else None for q in _QUANTILES
    }
    mean = histogram.get_mean_value() if known else None
    return made | {"covered": recorded_share(made), "mean": mean, "quantiles": quantiles}


def summarise_blocks(blocks: Sequence[Mapping[int, int]]) -> dict[str, Any]:
    """Summarise blocks of turns, each nanoseconds -> operations, as one histogram.

    Adds `errors` to the keys of `summarise`: percentile -> standard error of the quantile's
    logarithm, by a jackknife that leaves out one block after another. It is no smaller than a
    bucket's width lets it be known.
    """
    whole: Counter[int] = Counter()
    for block in blocks:
        whole.update(block)
    made = summarise(sorted(whole.items()))
    values = sorted(whole)
    without = [
        list(accumulate(whole[value] - block.get(value, 0) for value in values)) for block in blocks
    ]
    known = [sums for sums in without if sums and sums[-1]]
    return made | {"errors": {f"{q:g}": _error(q, values, known) for q in _QUANTILES if known}}


def _error(percentile: float, values: Sequence[int], without: Sequence[Sequence[int]]) -> float:
    """The jackknife's standard error; `without` are sums over the values, one block left out."""
    found = [
        values[bisect_left(sums, max(1, ceil(round(sums[-1] * percentile / 100, 6))))]
        for sums in without
    ]
    logs = [log(max(1, value)) for value in found]
    width = max(_PRECISION, 1 / max(1, *found))
    return max(sqrt((len(logs) - 1) * pvariance(logs)), width / sqrt(12))
