# SPDX-License-Identifier: GPL-2.0-only
"""Quantiles from the recorded latencies of a cell, if they represent its operations."""

from collections.abc import Mapping
from typing import Any

MAX_DROPPED = 0.01
"""Largest share of a cell's operations that may be dropped.

The histogram fills up in the first part of a window, which does not represent the rest.
"""
MIN_BEYOND = 10
"""Operations that must lie beyond a percentile: fewer make it a matter of chance."""
PERCENTILES = {"p50": "50", "p99": "99", "p99.9": "99.9", "max": "100"}
"""metric -> percentile, as in the quantiles of a cell"""


def recorded_share(latency: Mapping[str, Any]) -> float | None:
    """Return the share of the operations whose latency is known, 0 to 1; None without a count."""
    count, dropped = latency.get("count"), latency.get("dropped", 0)
    if not isinstance(count, int) or not isinstance(dropped, int) or count + dropped <= 0:
        return None
    return count / (count + dropped)


def represents_cell(latency: Mapping[str, Any]) -> bool:
    """Return whether the quantiles of these latencies are those of the cell's operations.

    Those of other programs, which come without a count, are taken to be.
    """
    share = recorded_share(latency)
    return share >= 1 - MAX_DROPPED if share is not None else "count" not in latency


def beyond(count: int, percentile: str) -> float:
    """Return how many of `count` operations lie beyond a percentile such as "99.9"."""
    return round(count * (100 - float(percentile)) / 100, 6)


def quantile(latency: Mapping[str, Any] | None, metric: str) -> float | None:
    """Return nanoseconds of a metric or percentile; None if `why_none` has a reason."""
    if why_none(latency, metric):
        return None
    assert latency is not None
    return float(latency["quantiles"][PERCENTILES.get(metric, metric)])


def why_none(latency: Mapping[str, Any] | None, metric: str) -> str:
    """Return why a cell has no figure of one of PERCENTILES, as a clause; empty if it has one.

    `metric` may also be a percentile such as "90". A percentile needs MIN_BEYOND operations beyond
    it. That is not asked of the maximum, nor of other programs, which do not tell how many
    operations they timed.
    """
    if latency is None:
        return "no latencies were recorded (`--set latency=true` records those of microbenchmarks)"
    if not represents_cell(latency):
        share = recorded_share(latency) or 0.0
        return f"the recorded latencies cover only {share:.0%} of the operations"
    percentile, quantiles = PERCENTILES.get(metric, metric), latency.get("quantiles")
    if not isinstance(quantiles, Mapping) or not isinstance(quantiles.get(percentile), int | float):
        return f"the recorded latencies have no {metric}"
    count = latency.get("count")
    if isinstance(count, int) and percentile != "100" and beyond(count, percentile) < MIN_BEYOND:
        return f"fewer than {MIN_BEYOND} of a repetition's {count} operations lie beyond {metric}"
    return ""
