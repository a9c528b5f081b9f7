# SPDX-License-Identifier: GPL-2.0-only
"""Decides whether the recorded latencies of a cell represent its operations."""

from collections.abc import Mapping
from typing import Any

MAX_DROPPED = 0.01
"""Largest share of a cell's operations that may be dropped.

The histogram fills up in the first part of a window, which does not represent the rest.
"""


def covered(latency: Mapping[str, Any]) -> float | None:
    """Return the share of the operations whose latency is known, 0 to 1; None without a count."""
    count, dropped = latency.get("count"), latency.get("dropped", 0)
    if not isinstance(count, int) or not isinstance(dropped, int) or count + dropped <= 0:
        return None
    return count / (count + dropped)


def trusted(latency: Mapping[str, Any]) -> bool:
    """Return whether the quantiles of these latencies are those of the cell's operations.

    Latencies of other programs, which come without a count, are trusted.
    """
    share = covered(latency)
    return share >= 1 - MAX_DROPPED if share is not None else "count" not in latency
