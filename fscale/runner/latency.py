# SPDX-License-Identifier: GPL-2.0-only
"""Merges the histogram files of the microbenchmark into an HdrHistogram."""

from pathlib import Path
from typing import Any

import numpy as np
from hdrh.histogram import HdrHistogram

from fscale.model.latency import covered, trusted

_QUANTILES = (50.0, 90.0, 99.0, 99.9, 99.99, 100.0)
_HIGHEST = 2**37 - 1  # nanoseconds; the largest value in the files: 137 s


def summarise(files: list[Path], dropped: int) -> dict[str, Any]:
    """Summarise the latencies of all workers.

    A file contains pairs of little-endian uint64: nanoseconds and count. Returns `histogram`
    (HdrHistogram V2, base64, mergeable), `unit`, `count`, `dropped` (operations that are not in the
    histogram), `covered` (the share that is), `mean` and `quantiles` (percentile -> nanoseconds).
    Mean and quantiles are None if the histogram is empty or too many operations were dropped.
    """
    histogram = HdrHistogram(1, _HIGHEST, 3)
    for file in files:
        for value, count in np.fromfile(file, dtype="<u8").reshape(-1, 2).tolist():
            histogram.record_value(max(1, value), count)
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
