# SPDX-License-Identifier: GPL-2.0-only
"""Whether the latencies of a cell speak for its operations."""

from collections.abc import Mapping
from typing import Any

MOST_DROPPED = 0.01
"""of a cell's operations; the rest of a window is not like its first part, which they fill"""


def covered(latency: Mapping[str, Any]) -> float | None:
    """The share of the operations whose latency is known; None where none was counted."""
    count, dropped = latency.get("count"), latency.get("dropped", 0)
    if not isinstance(count, int) or not isinstance(dropped, int) or count + dropped <= 0:
        return None
    return count / (count + dropped)


def trusted(latency: Mapping[str, Any]) -> bool:
    """Whether quantiles of these latencies are quantiles of the cell's operations.

    Those that come without a count (another program's) are taken as they are.
    """
    share = covered(latency)
    return share >= 1 - MOST_DROPPED if share is not None else "count" not in latency
