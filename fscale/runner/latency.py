# SPDX-License-Identifier: GPL-2.0-only
"""Turns raw latencies into an HdrHistogram."""

from pathlib import Path
from typing import Any

import numpy as np
from hdrh.histogram import HdrHistogram

_QUANTILES = (50.0, 90.0, 99.0, 99.9, 99.99, 100.0)
_HIGHEST = 2**32 - 1  # what the raw files can hold: 4.29 s


def summarise(files: list[Path], dropped: int) -> dict[str, Any]:
    """The histogram of little-endian uint32 nanoseconds, three significant digits.

    Returns `histogram` (HdrHistogram V2, base64, mergeable), `unit`, `count`, `dropped` (operations
    that were not recorded), `mean` and `quantiles` (percentile -> nanoseconds).
    """
    histogram = HdrHistogram(1, _HIGHEST, 3)
    for file in files:
        values, counts = np.unique(np.fromfile(file, dtype="<u4"), return_counts=True)
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            histogram.record_value(max(1, value), count)
    return {
        "histogram": histogram.encode().decode(),
        "unit": "ns",
        "count": histogram.get_total_count(),
        "dropped": dropped,
        "mean": histogram.get_mean_value(),
        "quantiles": {f"{q:g}": histogram.get_value_at_percentile(q) for q in _QUANTILES},
    }
