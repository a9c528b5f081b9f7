# SPDX-License-Identifier: GPL-2.0-only
"""Makes the drawings of the page: an SVG for each panel, and for each sample of a legend."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from fscale.analysis import loadplot, plots, style, svg
from fscale.analysis.curves import Page, Panel
from fscale.analysis.offered import PERCENTILE, Loaded
from fscale.analysis.style import CPU_COLOURS, RC, LineStyle

PANEL_WIDTH = 3.6  # inches, in the page
BAR_HEIGHT = 0.2  # inches, with the gap to the next


def curve_svg(panel: Panel, lines: dict[str, LineStyle], prefix: str) -> str:
    """The scaling curves of one panel, for the page."""
    with mpl.rc_context(RC):
        figure = Figure(figsize=(PANEL_WIDTH, 2.4))
        ax = figure.add_axes((0.15, 0.17, 0.83, 0.8))
        plots.draw_curves(ax, panel, lines)
        ax.yaxis.set_label_coords(-0.13, 0.5)
        label = f"{panel.name}: throughput against cores for {', '.join(_names(panel))}"
        if panel.drawn != panel.cores:
            label += f"; beyond {panel.cores[-1]} cores predicted"
        return svg.inline(svg.raw(figure), prefix, label)


def load_svg(name: str, loads: Mapping[str, Sequence[Loaded]], prefix: str) -> str:
    """Latency against load, with the legend of its core counts, for the page."""
    with mpl.rc_context(RC):
        figure = Figure(figsize=(PANEL_WIDTH, 2.4))
        ax = figure.add_axes((0.22, 0.17, 0.76, 0.8))
        looks = style.lines(dict.fromkeys(loads))
        loadplot.draw_load(ax, loads, looks)
        ax.yaxis.set_label_coords(-0.22, 0.5)
        ax.legend([plots.legend_key(looks[of_cores]) for of_cores in loads], list(loads))
        label = f"{name}: {PERCENTILE} of the latency against load for {', '.join(loads)}"
        return svg.inline(svg.raw(figure), prefix, label)


def cpu_svg(panel: Panel, prefix: str) -> str | None:
    """The CPU bars of one panel, for the page; None if no CPU times were recorded."""
    bars = plots.cpu_points(panel)
    if not bars:
        return None
    below, above = 0.42, 0.05
    height = below + above + BAR_HEIGHT * len(bars)
    with mpl.rc_context(RC):
        figure = Figure(figsize=(PANEL_WIDTH, height))
        labels = plots.cpu_labels(panel)
        longest = max(map(len, labels))
        left = min(0.64, 0.05 + 0.018 * longest)
        ax = figure.add_axes((left, below / height, 0.95 - left, 1 - (below + above) / height))
        plots.draw_cpu(ax, panel, labels)
        label = f"{panel.name}: CPU time by state for {', '.join(name for name, _ in bars)}"
        return svg.inline(svg.raw(figure), prefix, label)


def _key_svg(artist: Artist, prefix: str) -> str:
    """One sample of a legend, without a label, because its text is next to it."""
    with mpl.rc_context(RC):
        figure = Figure(figsize=(0.36, 0.14))
        ax = figure.add_axes((0, 0, 1, 1))
        ax.set_axis_off()
        ax.set_xlim(-0.1, 1.1)
        ax.set_ylim(-1, 1)
        ax.add_artist(artist)
        return svg.inline(svg.raw(figure), prefix, "").replace('role="img"', 'aria-hidden="true"')


def curve_key(
    line: LineStyle, prefix: str, side: str | None = None, simulated: bool = False
) -> str:
    """The legend's sample of a file system."""
    return _key_svg(plots.legend_key(line, side, simulated), prefix)


def ideal_key(prefix: str) -> str:
    """The legend's sample of linear scaling."""
    return _key_svg(plots.ideal_key(), prefix)


def predicted_key(prefix: str) -> str:
    """The legend's sample of a predicted curve."""
    return _key_svg(plots.predicted_key(), prefix)


def given_key(prefix: str) -> str:
    """The legend's sample of linear scaling by the control."""
    return _key_svg(plots.given_key(), prefix)


def layout_keys(page: Page, prefix: str) -> list[tuple[str, str]]:
    """The legend's samples of the marks on a page's panels, with their names."""
    keys = enumerate(plots.layout_keys(page))
    return [(_key_svg(mark, f"{prefix}{i}"), name) for i, (mark, name) in keys]


def patch_key(state: str, prefix: str) -> str:
    """The legend's sample of a CPU state."""
    colour = CPU_COLOURS[state].light
    return _key_svg(Rectangle((0.2, -0.8), 0.6, 1.6, facecolor=colour, linewidth=0), prefix)


def _names(panel: Panel) -> list[str]:
    return [c.name for c in panel.curves]
