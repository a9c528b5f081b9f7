# SPDX-License-Identifier: GPL-2.0-only
"""Makes the figures: an SVG per panel for the page, a PDF and an SVG per group for a paper."""

import io
import math
from collections.abc import Callable, Iterable, Sequence

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from fscale.analysis import plots, svg
from fscale.analysis.curves import Page, Panel
from fscale.analysis.style import CPU_COLOURS, PAPER, RC, LineStyle
from fscale.model.files import Folder

TEXT_WIDTH = 7.0  # inches, of a USENIX page
PANEL_WIDTH = 3.6  # inches, in the page
COLUMNS = 4
NARROWEST = 0.75  # inches, of a panel without the names on its left
BAR_HEIGHT = 0.2  # inches, with the gap to the next

Draw = Callable[[Axes, Panel], None]


def curve_svg(panel: Panel, lines: dict[str, LineStyle], prefix: str) -> str:
    """The scaling curves of one panel, for the page."""
    with mpl.rc_context(RC):
        figure = Figure(figsize=(PANEL_WIDTH, 2.4))
        ax = figure.add_axes((0.15, 0.17, 0.83, 0.8))
        plots.draw_curves(ax, panel, lines, width=0.83 * PANEL_WIDTH)
        ax.yaxis.set_label_coords(-0.13, 0.5)
        label = f"{panel.name}: throughput against cores for {', '.join(_names(panel))}"
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
        longest = max(len(label) for label in plots.cpu_labels(panel))
        left = min(0.64, 0.05 + 0.018 * longest)
        ax = figure.add_axes((left, below / height, 0.95 - left, 1 - (below + above) / height))
        plots.draw_cpu(ax, panel)
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


def save(figure: Figure, folder: Folder, stem: str) -> None:
    """Write `stem`.pdf and `stem`.svg on white paper, the same bytes for the same figure."""
    if engine := figure.get_layout_engine():
        # Run the engine once: with one (even "none"), each `savefig` draws twice.
        engine.execute(figure)
        figure.set_layout_engine(None)
    for suffix, metadata in (("pdf", {"CreationDate": None}), ("svg", {"Date": None})):
        drawn = io.BytesIO()
        figure.savefig(drawn, format=suffix, facecolor=PAPER.light, metadata=metadata)
        folder.write(f"{stem}.{suffix}", drawn.getvalue())


def _sheet(
    panels: tuple[Panel, ...],
    draw: Draw,
    height: float,
    keys: list[Artist],
    labels: list[str],
    beside: float = 0.0,
) -> Figure:
    """Panels of this height, with room for names of `beside` inches on their left."""
    columns = min(COLUMNS, len(panels), max(1, int(TEXT_WIDTH / (NARROWEST + beside))))
    rows = math.ceil(len(panels) / columns)
    key_width = 0.45 + _long(labels)
    width = TEXT_WIDTH * max(min(len(panels), COLUMNS), 2) / COLUMNS
    width = min(TEXT_WIDTH, max(width, key_width, columns * (NARROWEST + beside)))
    key_rows = math.ceil(len(labels) / max(1, int(width / key_width)))
    key_columns = math.ceil(len(labels) / key_rows)
    key_height = 0.17 * key_rows + 0.08
    figure = Figure(figsize=(width, rows * height + key_height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, panel in zip(axes, panels, strict=False):
        draw(ax, panel)
        ax.set_title(panel.name)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    figure.legend(keys, labels, loc="outside upper center", ncols=key_columns)
    return figure


def save_page(
    page: Page, lines: dict[str, LineStyle], folder: Folder, directory: str, ideal: bool = True
) -> None:
    """Write every figure of a page to a directory in `folder`, as PDF and SVG in text width."""
    with mpl.rc_context(RC):
        for group in page.groups:
            name = group.title.lower().replace(" ", "-")
            sheet = _curve_sheet(group.panels, lines, plots.layout_keys(page), ideal)
            save(sheet, folder, f"{directory}/{name}")
            measured = tuple(p for p in group.panels if plots.cpu_points(p))
            if measured:
                save(_cpu_sheet(measured), folder, f"{directory}/{name}-cpu")
        if len(page.cores) > 1:
            save(_matrix(page), folder, f"{directory}/matrix")


def legend(
    panels: Sequence[Panel],
    lines: dict[str, LineStyle],
    marks: Sequence[tuple[Artist, str]],
    ideal: bool,
) -> tuple[list[Artist], list[str]]:
    """The samples of a legend of these panels, and their names; `marks` follow the curves."""
    curves = {c.name: c for p in panels for c in p.curves}
    keys: list[Artist] = [
        plots.legend_key(lines[c.series], c.side, c.simulated) for c in curves.values()
    ]
    labels = list(curves)
    keys += [key for key, _ in marks]
    labels += [label for _, label in marks]
    if ideal and any(len(p.cores) > 1 for p in panels):
        keys.append(plots.ideal_key())
        labels.append("linear")
    if ideal and any(panel.given for panel in panels):
        keys.append(plots.given_key())
        labels.append("linear on this machine")
    return keys, labels


def _curve_sheet(
    panels: tuple[Panel, ...],
    lines: dict[str, LineStyle],
    marks: list[tuple[Artist, str]],
    ideal: bool,
) -> Figure:
    keys, labels = legend(panels, lines, marks, ideal)
    axis = 0.72 * TEXT_WIDTH / COLUMNS

    def draw(ax: Axes, panel: Panel) -> None:
        plots.draw_curves(ax, panel, lines, axis, ideal)

    return _sheet(panels, draw, 1.7, keys, labels)


def _cpu_sheet(panels: tuple[Panel, ...]) -> Figure:
    keys: list[Artist] = list(plots.cpu_keys())
    labels = [str(key.get_label()) for key in keys]
    bars = max(len(plots.cpu_points(p)) for p in panels)
    names = [name for panel in panels for name in plots.cpu_labels(panel)]
    return _sheet(panels, plots.draw_cpu, 0.6 + BAR_HEIGHT * bars, keys, labels, _long(names))


def _matrix(page: Page) -> Figure:
    columns, rows = len(page.panels), len(page.names)
    # Names of columns stand at 60 degrees.
    below = max(0.6, 0.2 + math.sin(math.pi / 3) * _long(panel.name for panel in page.panels))
    beside = max(1.3, 0.9 + _long(page.names))
    figure = Figure(
        figsize=(max(2.5, beside + 0.24 * columns), below + 0.24 * max(rows, 3)),
        layout="constrained",
    )
    plots.draw_matrix(figure.add_subplot(), page)
    return figure


def _long(names: Iterable[str]) -> float:
    """Inches that the longest name takes."""
    return plots.DIGIT * max(map(len, names))
