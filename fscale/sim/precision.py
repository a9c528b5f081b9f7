# SPDX-License-Identifier: GPL-2.0-only
"""How precisely the windows of a point tell its throughput."""

import math
import statistics
from collections.abc import Sequence

from fscale.model.simulation import SimulatedWindow

BATCHES = 8
# Student's t for 95%, by the degrees of freedom from 1: as many as fewer than 16 batches have.
T95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365),
    *(2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145),
)


def half_width(windows: Sequence[SimulatedWindow]) -> float | None:
    """Half-width of the 95% band of the throughput over all windows, relative to it.

    By batch means: with more windows, neighbours are merged until there are 8 to 15 batches. The
    band is that of this boot; it says nothing of other boots. None with fewer than two windows.
    """
    size = 1
    while len(windows) // (2 * size) >= BATCHES:
        size *= 2
    batches = [windows[i : i + size] for i in range(0, len(windows) - size + 1, size)]
    times = [
        sum(window.seconds for window in batch) / max(1, sum(window.ops for window in batch))
        for batch in batches
    ]
    if len(times) < 2 or not sum(times):
        return None
    error = statistics.stdev(times) / math.sqrt(len(times))
    return T95[len(times) - 2] * error / statistics.mean(times)


def throughput(windows: Sequence[SimulatedWindow]) -> float:
    """Operations per simulated second over all windows; 0 without any."""
    seconds = sum(window.seconds for window in windows)
    return sum(window.ops for window in windows) / seconds if seconds else 0.0
