# SPDX-License-Identifier: GPL-2.0-only
"""Draws latency against load with matplotlib."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter

from fscale.analysis.offered import PERCENTILE, Loaded
from fscale.analysis.plots import FewTicks, draw_line, scaled_unit
from fscale.analysis.style import LineStyle


def draw_load(
    ax: Axes, loads: Mapping[str, Sequence[Loaded]], lines: Mapping[str, LineStyle]
) -> None:
    """Latency against the load, a line for each core count, whiskers for the spread.

    A hollow marker is a load that exceeded what was served.
    """
    every = [one for of_cores in loads.values() for one in of_cores]
    divisor, label = scaled_unit(max(one.offered for one in every), "arrivals")
    for i, (name, of_cores) in enumerate(loads.items()):
        x = np.array([one.offered for one in of_cores]) / divisor
        points, exceeded = [o.point for o in of_cores], [o.exceeded for o in of_cores]
        draw_line(ax, x, points, exceeded, lines[name], f"load-{i}")
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(FuncFormatter(lambda seconds, _: _tick(seconds)))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_xlim(left=0)
    ax.xaxis.set_major_locator(FewTicks())
    ax.set_xlabel(label)
    ax.set_ylabel(PERCENTILE)


def _tick(seconds: float) -> str:
    """A power of ten: 1e-5 -> "10 us"."""
    for unit, length in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= 0.99 * length:
            return f"{seconds / length:g} {unit}"
    return f"{seconds * 1e9:g} ns"
