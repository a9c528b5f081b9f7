# SPDX-License-Identifier: GPL-2.0-only
"""The columns of latencies and fairness, which repetitions and points share."""

import re

from fscale.analysis.metrics import FAIRNESS, LATENCIES


def plain(metric: str) -> str:
    """A metric as a part of a column's name: "p99.9" -> "p99_9"."""
    return re.sub(r"\W", "_", metric)


LATENCY_COLUMNS: dict[str, str] = {
    metric: f"latency_{plain(metric)}_seconds" for metric in LATENCIES
}
FAIRNESS_COLUMNS: dict[str, str] = {metric: plain(metric) for metric in FAIRNESS}
"""metric -> column"""
MEANINGS = {
    "p50": "median of the latency of an operation",
    "p99": "99th percentile of the latency of an operation",
    "p99.9": "99.9th percentile of the latency of an operation",
    "max": "maximum of the latency of an operation",
    "slowest-worker": "operations of the slowest worker over the workers' mean",
    "jain": "Jain's index of the workers' operations: 1 is fair",
}
"""metric -> what it is"""
