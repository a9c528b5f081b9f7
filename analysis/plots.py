# SPDX-License-Identifier: GPL-2.0-only
"""Draws panels with matplotlib: scaling curves and CPU bars."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FixedLocator, FuncFormatter, Locator, MaxNLocator, NullLocator
from numpy.typing import NDArray

from fscale.analysis import textfit
from fscale.analysis.curves import Curve, Page, Panel
from fscale.analysis.style import (
    CPU_COLOURS,
    GRID,
    MUTED,
    PAPER,
    PREDICTED,
    LineStyle,
    dashes,
    speedup_colours,
)
from fscale.analysis.summary import Point
from fscale.model.topology import Layout

_SOCKET: dict[str, Any] = {"color": MUTED.light, "linewidth": 0.5, "alpha": 0.55}
_KIND: dict[str, Any] = _SOCKET | {"linestyle": (0, (4, 2)), "linewidth": 0.9, "alpha": 0.9}
_TURN: dict[str, Any] = {"marker": 7, "color": MUTED.light, "linestyle": "none"}  # a caret down
_GIVEN: dict[str, Any] = {"color": MUTED.light, "linestyle": "-", "linewidth": 1.6, "alpha": 0.6}
_PREDICTED: dict[str, Any] = {"linestyle": PREDICTED, "linewidth": 1.2}
_THREADS: dict[str, Any] = {"facecolor": GRID.light, "linewidth": 0, "alpha": 0.6}

_BEYOND: dict[str, Any] = {"marker": 6, "color": MUTED.light, "linestyle": "none"}  # a caret up

LINEAR_WITHIN = 3.0  # times the highest point, up to which the axis shows linear scaling
BEYOND = "predicted, with its interval"
"""the legend's name of the curves beyond the measured ones"""
LONGEST = 28  # characters of a bar's label
DIGIT = 0.65  # ems that a digit takes at most
EDGE = 1.0  # points of a hollow marker, which some styles give none
MOST_TICKS = 5  # intervals of the axis of throughput


def scaled_unit(largest: float, unit: str) -> tuple[float, str]:
    """Divisor and axis label that keep the tick labels short: 4.5e6 ops -> (1e6, "M ops/s")."""
    for divisor, prefix in ((1e9, "G "), (1e6, "M "), (1e3, "k ")):
        if largest >= divisor:
            return divisor, f"{prefix}{unit}/s"
    return 1.0, f"{unit}/s"


def core_ticks(cores: list[int], width: float, digit: float) -> list[int]:
    """The core counts that get a label on an axis; `width` and that of a digit have the same unit.

    The highest and the lowest have one; the others, from the highest down, if there is room.
    """
    span = max(cores[-1] - cores[0], 1)
    gap = span * digit * (len(str(cores[-1])) + 1) / width
    ticks: list[int] = []
    for count in [cores[-1], cores[0], *reversed(cores)]:
        if all(abs(count - other) >= gap for other in ticks if other != count):
            ticks.append(count)
    return sorted(set(ticks))


class CoreTicks(Locator):
    """Labels core counts as far as the axis, when it is drawn, has room for them."""

    axis: Axis

    def __init__(self, cores: list[int]) -> None:
        self._cores = cores
        self._digit = DIGIT * textfit.em(textfit.TICK)

    def __call__(self) -> Sequence[float]:
        """The labelled core counts."""
        drawn = self.axis.axes
        width = drawn.get_window_extent().width / drawn.figure.dpi
        return core_ticks(self._cores, width, self._digit)


class FewTicks(MaxNLocator):
    """At most MOST_TICKS intervals, and fewer on a low axis."""

    axis: Axis

    def __call__(self) -> Any:
        """The labelled values."""
        room = 4 * self.axis.get_tick_space() // 3  # the space counts two heights of text for each
        self.set_params(nbins=max(1, min(MOST_TICKS, room)))
        return super().__call__()


def draw_curves(ax: Axes, panel: Panel, lines: Mapping[str, LineStyle], ideal: bool = True) -> None:
    """Throughput against cores, a line for each file system, whiskers for the spread.

    A caret at the top marks where the paper's curves turn. A hollow marker is a point with a
    disturbed repetition. The dotted line (`ideal`) is linear scaling from the fastest base; a caret
    at its end says that it goes on above the plot, which it does if the curves would be too low in
    a plot that shows all of it. The solid grey line beside it is the control, if one ran. A thin
    vertical line follows each full socket, a dashed one marks where slower cores are added; the
    background is grey where hardware threads share cores. A dashed line in a band is a predicted
    curve with its interval.
    """
    predicted = [of.high for curve in panel.curves for _, of in curve.beyond]
    top = max([p.spread.high for p in panel.points] + predicted)
    divisor, label = scaled_unit(top, panel.unit)
    single = len(panel.cores) == 1
    for i, curve in enumerate(panel.curves):
        shift = 0.09 * (i - (len(panel.curves) - 1) / 2) if single else 0.0
        _draw_curve(ax, curve, lines[curve.series], divisor, shift, f"curve-{i}")
        if curve.beyond:
            _draw_predicted(ax, curve, lines[curve.series], divisor, f"predicted-{i}")
    height = 1.08 * top
    if ideal and not single:
        height = _draw_ideal(ax, panel, top, divisor)
    cores = panel.drawn
    margin = 0.5 if single else 0.06 * (cores[-1] - cores[0])
    ax.set_xlim(cores[0] - margin, cores[-1] + margin)
    if panel.layout and not single:
        end = panel.cores[-1] + (0.5 if panel.cores != cores else margin)
        _draw_layout(ax, panel.layout, panel.cores, end)
    for turn in panel.turns:
        ax.plot(turn, 1, transform=ax.get_xaxis_transform(), clip_on=False, zorder=3, **_TURN)
    ax.xaxis.set_major_locator(CoreTicks(cores))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.grid(visible=False, axis="x")
    ax.set_ylim(0, height / divisor)
    ax.yaxis.set_major_locator(FewTicks())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.set_xlabel("cores")
    ax.set_ylabel(label)


def _draw_curve(
    ax: Axes, curve: Curve, line: LineStyle, divisor: float, shift: float, gid: str
) -> None:
    x = np.array([p.key.cores for p in curve.points]) + shift
    look = replace(line, dashes=dashes(line, curve.side, curve.simulated))
    draw_line(ax, x, curve.points, [bool(p.disturbed) for p in curve.points], look, gid, divisor)


def draw_line(
    ax: Axes,
    x: NDArray[np.float64],
    points: Sequence[Point],
    doubtful: Sequence[bool],
    line: LineStyle,
    gid: str,
    divisor: float = 1.0,
) -> None:
    """Medians over `divisor`, with whiskers for the spread; markers of doubtful ones are hollow."""
    y = np.array([p.median for p in points]) / divisor
    low = y - np.array([p.spread.low for p in points]) / divisor
    high = np.array([p.spread.high for p in points]) / divisor - y
    ax.plot(x, y, color=line.colour, linestyle=line.dashes, zorder=2, gid=gid)
    ax.errorbar(
        x, y, [low, high], fmt="none", ecolor=line.colour, elinewidth=0.8, capsize=2.2, zorder=2.5
    )
    hollow = np.array(doubtful)
    for kind in (False, True):
        chosen = hollow == kind
        if not chosen.any():
            continue
        ax.plot(
            x[chosen],
            y[chosen],
            linestyle="none",
            marker=line.marker,
            color=line.colour,
            markerfacecolor=PAPER.light if kind else line.colour,
            markeredgewidth=EDGE,
            clip_on=False,
            zorder=3,
        )


def _draw_predicted(ax: Axes, curve: Curve, line: LineStyle, divisor: float, gid: str) -> None:
    cores = [count for count, _ in curve.beyond]
    value, low, high = (
        np.array([getattr(of, name) for _, of in curve.beyond]) / divisor
        for name in ("value", "low", "high")
    )
    ax.fill_between(cores, low, high, color=line.colour, alpha=0.15, linewidth=0, zorder=1.5)
    ax.plot(cores, value, color=line.colour, zorder=2, gid=gid, **_PREDICTED)
    ax.plot(
        cores[1:],
        value[1:],
        linestyle="none",
        marker=line.marker,
        markersize=0.7 * mpl.rcParams["lines.markersize"],
        color=line.colour,
        clip_on=False,
        zorder=3,
    )


def _draw_ideal(ax: Axes, panel: Panel, top: float, divisor: float) -> float:
    """Draw linear scaling; the height that the axis needs, if the highest point is at `top`."""
    ideal = panel.ideal
    if ideal is None:
        return 1.08 * top
    x = np.array([cores for cores, _ in ideal.factors])
    y = np.array([factor * ideal.start.median for _, factor in ideal.factors])
    height = 1.08 * (max(top, y[-1]) if y[-1] <= LINEAR_WITHIN * top else top)
    ax.plot(x, y / divisor, color=MUTED.light, linestyle=":", linewidth=1, zorder=1, gid="ideal")
    if y[-1] > height:
        leaves = np.interp(height, y, x)
        ax.plot(leaves, height / divisor, clip_on=False, gid="beyond-ideal", **_BEYOND)
    if given := panel.given:
        x = np.array([cores for cores, _ in given.factors])
        y = np.array([factor * given.start.median for _, factor in given.factors])
        ax.plot(x, y / divisor, zorder=1, gid="given-ideal", **_GIVEN)
    return height


def _draw_layout(ax: Axes, there: Layout, cores: list[int], right: float) -> None:
    for end in there.sockets:
        if cores[0] <= end < cores[-1]:
            ax.axvline(end + 0.5, zorder=0.5, gid="socket", **_SOCKET)
    for end in there.borders:
        if cores[0] <= end < cores[-1]:
            ax.axvline(end + 0.5, zorder=0.5, gid="kind", **_KIND)
    if there.cores < cores[-1]:
        ax.axvspan(there.cores + 0.5, right, zorder=0, gid="threads", **_THREADS)


def layout_keys(page: Page) -> list[tuple[Artist, str]]:
    """The legend's samples of the marks for the machine's layout and for the paper."""
    there = next((panel.layout for panel in page.panels), None)
    keys: list[tuple[Artist, str]] = []
    if any(panel.turns for panel in page.panels):
        keys.append((Line2D([0.5], [0], **_TURN), "turn in FxMark's paper"))
    if there is None or len(page.cores) < 2:
        return keys
    if any(page.cores[0] <= end < page.cores[-1] for end in there.sockets):
        keys.append((Line2D([0.5, 0.5], [-1, 1], **_SOCKET), "end of a socket"))
    if any(page.cores[0] <= end < page.cores[-1] for end in there.borders):
        keys.append((Line2D([0.5, 0.5], [-1, 1], **_KIND), "slower cores from here"))
    if there.cores < page.cores[-1]:
        keys.append((Rectangle((0.2, -0.8), 0.6, 1.6, **_THREADS), "hardware threads"))
    return keys


def legend_key(line: LineStyle, side: str | None = None, simulated: bool = False) -> Line2D:
    """The legend's sample of a curve."""
    style = dashes(line, side, simulated)
    return Line2D(
        [0, 0.5, 1], [0, 0, 0], color=line.colour, ls=style, marker=line.marker, markevery=[1]
    )


def ideal_key() -> Line2D:
    """The legend's sample of linear scaling."""
    return Line2D([0, 1], [0, 0], color=MUTED.light, linestyle=":", linewidth=1)


def predicted_key() -> Line2D:
    """The legend's sample of a predicted curve."""
    return Line2D([0, 1], [0, 0], color=MUTED.light, **_PREDICTED)


def given_key() -> Line2D:
    """The legend's sample of linear scaling by the control."""
    return Line2D([0, 1], [0, 0], **_GIVEN)


def cpu_keys() -> list[Patch]:
    """The legend's samples of the CPU states, in the bars' order."""
    return [Patch(facecolor=colour.light, label=state) for state, colour in CPU_COLOURS.items()]


def legend(
    page: Page, lines: Mapping[str, LineStyle], ideal: bool = True
) -> tuple[list[Artist], list[str]]:
    """The samples of a legend of a page's curves, and their names; marks follow the curves."""
    curves = {c.name: c for p in page.panels for c in p.curves}
    keys: dict[str, Artist] = {
        name: legend_key(lines[c.series], c.side, c.simulated) for name, c in curves.items()
    }
    marks = {label: key for key, label in layout_keys(page)}
    if page.predicted:
        marks[BEYOND] = predicted_key()
    if ideal and any(len(p.cores) > 1 for p in page.panels):
        marks["linear"] = ideal_key()
    if ideal and any(panel.given for panel in page.panels):
        marks["linear on this machine"] = given_key()
    return [*keys.values(), *marks.values()], [*keys, *marks]


def cpu_points(panel: Panel) -> list[tuple[str, Point]]:
    """The bars of a panel: each curve's highest core count, if CPU times were recorded."""
    return [(c.name, c.top) for c in panel.curves if c.top.cpu is not None]


def cpu_labels(panel: Panel) -> list[str]:
    """The bars' labels, with the core count if it is not the panel's highest.

    Long labels lose their middle, because the run is at the end.
    """
    most = panel.cores[-1]
    labels = [
        name if point.key.cores == most else f"{name} (at {point.key.cores})"
        for name, point in cpu_points(panel)
    ]
    half = LONGEST // 2
    return [
        name if len(name) <= LONGEST else f"{name[: half - 1]}\u2026{name[-half:]}"
        for name in labels
    ]


def draw_cpu(ax: Axes, panel: Panel, labels: Sequence[str]) -> None:
    """How the CPUs under test spent their time: one stacked bar for each file system."""
    bars = cpu_points(panel)
    left = np.zeros(len(bars))
    for state, colour in CPU_COLOURS.items():
        width = np.array([100 * (p.cpu or {})[state] for _, p in bars])
        rows = np.arange(len(bars))
        x = np.stack([left, left + width, left + width, left], axis=1)
        y = np.stack([rows - 0.34, rows - 0.34, rows + 0.34, rows + 0.34], axis=1)
        # One artist for all bars: matplotlib takes a second for a few hundred single ones.
        ax.add_collection(
            PolyCollection(
                list(np.stack([x, y], axis=2)),
                facecolor=colour.light,
                edgecolor=PAPER.light,
                linewidth=0.4,
            )
        )
        left += width
    ax.set_yticks(range(len(bars)), labels)
    ax.set_ylim(len(bars) - 0.5, -0.5)
    ax.set_xlim(0, 100)
    ax.xaxis.set_major_locator(FixedLocator([0, 25, 50, 75, 100]))
    ax.set_xlabel("% of CPU time")
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False)
    ax.spines["left"].set_visible(False)


def draw_matrix(ax: Axes, page: Page, panels: Sequence[Panel], names: Sequence[str]) -> None:
    """FxMark's Figure 13: colour is the speed-up at the highest core count, numbers are the peak.

    A row for each file system, a column for each workload of `panels`. A dagger marks a curve
    without a figure at the highest core count. `names` are the labels of the rows.
    """
    for column, panel in enumerate(panels):
        for row, name in enumerate(page.names):
            curve = panel.curve(name)
            if curve is None:
                continue
            ends_early = curve.top.key.cores < page.cores[-1]
            number = f"{curve.peak.key.cores}{'†' if ends_early else ''}"
            _draw_square(ax, column, row, curve.share_of_linear, number)
    _set_up_squares(ax, names)


def draw_heat(ax: Axes, panel: Panel, names: Sequence[str]) -> None:
    """A heat map: a row for each curve, a column for each core count, a square for each point.

    The number is the speed-up over the curve's base, the colour the same relative to linear.
    `names` are the labels of the rows.
    """
    for row, curve in enumerate(panel.curves):
        for point in curve.points:
            ratio = curve.speedup(point)
            text = f"{ratio.value:.2f}" if ratio else "1" if point is curve.base else ""
            _draw_square(ax, panel.cores.index(point.key.cores), row, curve.share_at(point), text)
    _set_up_squares(ax, names)
    ax.set_xticks(range(len(panel.cores)), [str(count) for count in panel.cores])
    ax.set_xlim(-0.5, len(panel.cores) - 0.5)
    ax.set_xlabel("cores")


def _draw_square(ax: Axes, column: int, row: int, share: float | None, text: str) -> None:
    plain = ("none", mpl.rcParams["text.color"])
    fill, ink = plain if share is None else speedup_colours(share)
    corner = (column - 0.5, row - 0.5)
    ax.add_patch(Rectangle(corner, 1, 1, facecolor=fill, edgecolor=PAPER.light))
    ax.text(column, row, text, ha="center", va="center_baseline", color=ink)


def _set_up_squares(ax: Axes, names: Sequence[str]) -> None:
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(length=0)
    ax.tick_params(axis="x", pad=1)
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)


def draw_scale(ax: Axes) -> None:
    """The colours of a matrix, from linear scaling to the opposite."""
    steps = 64
    for i in range(steps):
        share = 1 - 2 * i / (steps - 1)
        colour = speedup_colours(share)[0]
        ax.add_patch(Rectangle((0, i), 1, 1.1, facecolor=colour, linewidth=0))
    ax.set_xlim(0, 1)
    ax.set_ylim(steps, 0)
    ax.set_xticks([])
    ax.set_yticks([0, steps / 2, steps], ["linear", "1x", "1/linear"])
    ax.yaxis.tick_right()
    ax.tick_params(length=0)
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
