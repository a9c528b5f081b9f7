# SPDX-License-Identifier: GPL-2.0-only
"""Summarises counted latencies as an HdrHistogram, mean and quantiles."""

from collections.abc import Iterable
from typing import Any

from hdrh.histogram import HdrHistogram

from fscale.model.latency import covered, trusted

_QUANTILES = (50.0, 90.0, 99.0, 99.9, 99.99, 100.0)
_HIGHEST = 2**37 - 1  # nanoseconds; the largest value in the files: 137 s


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
    known = trusted(made)
    quantiles = {
        f"{q:g}": histogram.get_value_at_percentile(q) if known else None for q in _QUANTILES
    }
    mean = histogram.get_mean_value() if known else None
    return made | {"covered": covered(made), "mean": mean, "quantiles": quantiles}
