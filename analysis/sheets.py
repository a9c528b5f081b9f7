# SPDX-License-Identifier: GPL-2.0-only
"""Writes the plots of a report as PDF and SVG files, for a paper."""

import io
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend

from fscale.analysis import loadplot, plots
from fscale.analysis.curves import Page, Panel
from fscale.analysis.offered import Loaded, by_cores
from fscale.analysis.plotsettings import AXIS_LABELS, HEIGHT, MOST_COLUMNS, PANEL, PlotSettings
from fscale.analysis.style import LineStyle
from fscale.analysis.style import lines as lines_of
from fscale.analysis.sweeps import Sweep, sweeps
from fscale.analysis.textfit import KEY, TICK, TITLE, em, shortened, text_width, wrapped
from fscale.model.files import Folder

CPU_ROW = 5.4  # ems of a panel of CPU times around its bars
BAR = 1.8  # ems of a bar, with the gap to the next
SQUARE = 2.2  # ems of a square of the matrix
WIDE_SQUARE = 3.4  # ems of a square with a speed-up
SCALE = 8.0  # ems to the right of the matrix, and between it and its names
LOWEST_MATRIX = 3  # squares
NAMES = 0.4  # of the width of a figure, for names at its left
LONGEST_STEM = 80  # characters of a file's name that come from a workload
STEEP = math.radians(60)  # the names of a matrix's columns

Draw = Callable[[Axes, Panel], None]
Lines = Mapping[str, LineStyle]


def save(pages: Sequence[Page], lines: Lines, folder: Folder, settings: PlotSettings) -> None:
    """Write all figures as PDF and SVG to plots/ in `folder`, each of several pages to its own."""
    with mpl.rc_context(dict(settings.rc)):
        for page in pages:
            directory = f"plots/{page.slug}" if len(pages) > 1 else "plots"
            for stem, figure in figures(page, lines, settings):
                _write(figure, folder, f"{directory}/{stem}")


def figures(page: Page, lines: Lines, settings: PlotSettings) -> Iterator[tuple[str, Figure]]:
    """The figures of a page, each with the name of its file.

    matplotlib's settings must be those of `settings.rc`.
    """
    for stem, part in _parts(page, settings):
        yield stem, _curve_sheet(part, lines, settings)
        if measured := [panel for panel in part.panels if plots.cpu_points(panel)]:
            yield f"{stem}-cpu", _cpu_sheet(measured, settings)
    if len(page.cores) > 1:
        yield "matrix", _matrix(page, settings)
    taken: set[str] = set()
    for sweep in sweeps([page]):
        stem = _free(f"sweep-{_stem(sweep.name)}", taken)
        yield stem, _curve_sheet(sweep.alone, lines_of(dict.fromkeys(sweep.names)), settings)
        if len(sweep.panel.cores) > 1:
            yield f"{stem}-heat", _heat(sweep.panel, settings)
        if loads := by_cores(sweep):
            yield f"{stem}-load", _load_sheet(sweep, loads, settings)


def _parts(page: Page, settings: PlotSettings) -> Iterator[tuple[str, Page]]:
    """What each figure of curves shows, with the name of its file."""
    if settings.per == "all":
        yield "workloads", page
    elif settings.per == "group":
        for group in page.groups:
            yield _stem(group.title).lower(), replace(page, groups=(group,))
    else:
        taken = {"matrix"}
        for panel in page.panels:
            stem = _free(_stem(panel.name), taken)
            taken.add(f"{stem}-cpu")
            yield stem, page.alone(panel)


def _stem(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_=.]+", "-", name)[:LONGEST_STEM]


def _free(stem: str, taken: set[str]) -> str:
    """The stem, with a number if it is taken; it is taken from now on."""
    numbered = (f"{stem}-{n}" for n in itertools.count(2))
    free = next(name for name in itertools.chain([stem], numbered) if name not in taken)
    taken.add(free)
    return free


def _write(figure: Figure, folder: Folder, stem: str) -> None:
    """Write `stem`.pdf and `stem`.svg, the same bytes for the same figure."""
    if engine := figure.get_layout_engine():
        # Run the engine once: with one (even "none"), each `savefig` draws twice.
        engine.execute(figure)
        figure.set_layout_engine(None)
    for suffix, metadata in (("pdf", {"CreationDate": None}), ("svg", {"Date": None})):
        drawn = io.BytesIO()
        figure.savefig(drawn, format=suffix, metadata=metadata)
        folder.write(f"{stem}.{suffix}", drawn.getvalue())


def _sheet(
    panels: Sequence[Panel],
    draw: Draw,
    height: float,
    keys: Sequence[Artist],
    labels: Sequence[str],
    beside: float,
    settings: PlotSettings,
) -> Figure:
    """Panels of this height, with room for text of `beside` inches on their left."""
    most = 1 if settings.per == "workload" else MOST_COLUMNS
    whole = settings.columns or min(most, settings.room(AXIS_LABELS * em(TICK)))
    columns = min(whole, settings.room(beside), len(panels))
    rows = math.ceil(len(panels) / columns)
    width = max(
        settings.width * max(columns, min(whole, 2)) / whole,
        columns * (PANEL * em(TICK) + beside),
    )
    width = min(settings.width, width)
    titles = [wrapped(panel.name, width / columns - beside, TITLE) for panel in panels]
    height += 1.2 * em(TITLE) * max(title.count("\n") for title in titles)
    figure = Figure(figsize=(width, rows * height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, panel, title in zip(axes, panels, titles, strict=False):
        draw(ax, panel)
        ax.set_title(title)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    legend = _legend(figure, keys, labels)
    above = legend.get_window_extent().height / figure.dpi + 0.7 * em(KEY)
    figure.set_figheight(rows * height + above)
    return figure


def _legend(figure: Figure, keys: Sequence[Artist], labels: Sequence[str]) -> Legend:
    """A legend above all panels, of as few rows as fit into the width."""
    size, setting = em(KEY), mpl.rcParams
    handle = size * (setting["legend.handlelength"] + setting["legend.handletextpad"])
    gap = size * setting["legend.columnspacing"]
    room = figure.get_figwidth() - size * (2 * setting["legend.borderpad"] + 1)
    labels = [wrapped(label, room - handle, KEY) for label in labels]
    widths = [handle + max(text_width(line, KEY) for line in label.split("\n")) for label in labels]
    for rows in range(1, len(labels) + 1):
        columns = math.ceil(len(labels) / rows)
        if sum(part.max() + gap for part in np.array_split(widths, columns)) - gap <= room:
            break
    return figure.legend(keys, labels, loc="outside upper center", ncols=columns)


def _curve_sheet(page: Page, lines: Lines, settings: PlotSettings) -> Figure:
    keys, labels = plots.legend(page, lines)

    def draw(ax: Axes, panel: Panel) -> None:
        plots.draw_curves(ax, panel, lines)

    return _sheet(
        page.panels,
        draw,
        settings.height or HEIGHT * em(TICK),
        keys,
        labels,
        AXIS_LABELS * em(TICK),
        settings,
    )


def _load_sheet(
    sweep: Sweep, loads: Mapping[str, Sequence[Loaded]], settings: PlotSettings
) -> Figure:
    looks = lines_of(dict.fromkeys(loads))

    def draw(ax: Axes, _: Panel) -> None:
        loadplot.draw_load(ax, loads, looks)

    return _sheet(
        [sweep.panel],
        draw,
        settings.height or HEIGHT * em(TICK),
        [plots.legend_key(looks[name]) for name in loads],
        list(loads),
        AXIS_LABELS * em(TICK),
        settings,
    )


def _cpu_sheet(panels: Sequence[Panel], settings: PlotSettings) -> Figure:
    room = NAMES * settings.width
    labels = {p.name: [shortened(n, room, TICK) for n in plots.cpu_labels(p)] for p in panels}
    keys = plots.cpu_keys()
    bars = max(map(len, labels.values()))

    def draw(ax: Axes, panel: Panel) -> None:
        plots.draw_cpu(ax, panel, labels[panel.name])

    return _sheet(
        panels,
        draw,
        (CPU_ROW + BAR * bars) * em(TICK),
        keys,
        [str(key.get_label()) for key in keys],
        max(text_width(name, TICK) for names in labels.values() for name in names),
        settings,
    )


def _matrix(page: Page, settings: PlotSettings) -> Figure:
    """The matrix; its columns continue below if the width has no room for all."""
    size, room = em(TICK), NAMES * settings.width
    names = [shortened(name, room, TICK) for name in page.names]
    titles = [shortened(panel.name, room, TICK) for panel in page.panels]
    beside = max(text_width(name, TICK) for name in names) + SCALE * size
    below = 2 * size + math.sin(STEEP) * max(text_width(title, TICK) for title in titles)
    fit = max(1, int((settings.width - beside) / (SQUARE * size)))
    columns = math.ceil(len(titles) / math.ceil(len(titles) / fit))
    bands = math.ceil(len(titles) / columns)
    height = below + SQUARE * size * max(len(names), LOWEST_MATRIX)
    width = min(settings.width, max(2.5, beside + SQUARE * size * columns))
    figure = Figure(figsize=(width, bands * height), layout="constrained")
    # A scale as wide as a third of a column, which stands beside the first band.
    axes = figure.subplots(bands, 2, squeeze=False, width_ratios=(max(columns, 4), 0.35))
    plots.draw_scale(axes[0, 1])
    for ax in axes[1:, 1]:
        ax.set_axis_off()
    for ax, first in zip(axes[:, 0], range(0, len(titles), columns), strict=True):
        part = slice(first, first + columns)
        plots.draw_matrix(ax, page, page.panels[part], names)
        ax.set_xticks(
            range(len(titles[part])), titles[part], rotation=math.degrees(STEEP), ha="right"
        )
        ax.set_xlim(-0.5, columns - 0.5)
    return figure


def _heat(panel: Panel, settings: PlotSettings) -> Figure:
    """A heat map of a sweep, with the scale of its colours."""
    size = em(TICK)
    names = [shortened(curve.name, NAMES * settings.width, TICK) for curve in panel.curves]
    beside = max(text_width(name, TICK) for name in names) + SCALE * size
    wanted = beside + WIDE_SQUARE * size * len(panel.cores)
    height = 5 * size + SQUARE * size * max(len(panel.curves), LOWEST_MATRIX)
    title = wrapped(panel.name, settings.width, TITLE)
    figure = Figure(
        figsize=(min(settings.width, max(2.5, wanted)), height + title.count("\n") * em(TITLE)),
        layout="constrained",
    )
    left, right = figure.subplots(1, 2, width_ratios=(max(len(panel.cores), 4), 0.35))
    plots.draw_heat(left, panel, names)
    plots.draw_scale(right)
    figure.suptitle(title, fontsize=mpl.rcParams["axes.titlesize"], fontweight="bold")
    return figure
