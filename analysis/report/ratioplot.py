# SPDX-License-Identifier: GPL-2.0-only
"""Draws the ratios of a comparison with matplotlib: a row for each cell."""

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fscale.analysis import svg
from fscale.analysis.compare.ratios import Ratios
from fscale.analysis.style import GRID, INK, MUTED, RC, SERIES
from fscale.analysis.textfit import TEXT, em, shortened, text_width

ROW = 0.34  # inches
WIDTH = 7.0
AXES = 0.98  # of the width
BELOW = 0.34
REACH = 0.02  # the axis shows at least this much on both sides of a ratio of 1


def reach(rows: Sequence[Ratios]) -> tuple[float, float]:
    """The ends of an axis that covers all estimates, intervals, margins and dots."""
    ends = [1 - REACH, 1 + REACH]
    for row in rows:
        judged = row.judgement
        ends += [v for v in (judged.ratio, judged.low, judged.high) if v is not None]
        ends += [*row.margins, *(dot.ratio for dot in row.dots)]
    low, high = np.log(min(ends)), np.log(max(ends))
    room = 0.04 * (high - low)
    return float(np.exp(low - room)), float(np.exp(high + room))


def ratio_svg(rows: Sequence[Ratios], prefix: str, title: str) -> str:
    """A drawing for the page."""
    with mpl.rc_context(RC):
        drawn = svg.raw(ratio_figure(rows))
        return svg.inline(drawn, prefix, f"{title}: NEW over BASE of {len(rows)} cells")


def ratio_figure(rows: Sequence[Ratios]) -> Figure:
    """A row for each cell: dots, interval with its estimate, margin as a band, words above it."""
    height = BELOW + ROW * len(rows)
    figure = Figure(figsize=(WIDTH, height))
    _draw(figure.add_axes((0.01, BELOW / height, AXES, 1 - BELOW / height)), rows)
    return figure


def _draw(ax: Axes, rows: Sequence[Ratios]) -> None:
    ax.set_xscale("log")
    ax.set_xlim(*reach(rows))
    ax.set_ylim(len(rows), 0)
    for i, row in enumerate(rows):
        low, high = row.margins
        ax.add_patch(Rectangle((low, i + 0.42), high - low, 0.5, facecolor=GRID.light, linewidth=0))
        ax.plot([1, 1], [i + 0.42, i + 0.92], color=MUTED.light, linewidth=0.8)
        room = AXES * WIDTH - text_width(row.remark, TEXT) - em(TEXT)
        name = shortened(row.name, room, TEXT)
        ax.text(0, i + 0.2, name, transform=ax.get_yaxis_transform(), va="center")
        ax.text(1, i + 0.2, row.remark, transform=ax.get_yaxis_transform(), va="center", ha="right")
        middle = i + 0.67
        blue = SERIES["blue"].light
        if row.ticks:
            ax.plot(row.ticks, [middle] * len(row.ticks), "|", color=MUTED.light, alpha=0.35)
        values = [dot.ratio for dot in row.dots]
        ax.plot(values, [middle] * len(values), "o", color=blue, alpha=0.6, markeredgewidth=0)
        judged = row.judgement
        if judged.ratio is not None and judged.low is not None and judged.high is not None:
            ax.plot([judged.low, judged.high], [middle] * 2, color=INK.light, linewidth=1.6)
            ax.plot(judged.ratio, middle, "D", color=INK.light, markersize=5)
    ax.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 2.5, 5, 10]))
    ax.xaxis.set_minor_locator(MaxNLocator(1))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _percent(value)))
    ax.set_yticks([])
    ax.grid(visible=False, axis="y")
    ax.spines[:].set_visible(False)


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.3g}%" if ratio != 1 else "0"
