# SPDX-License-Identifier: GPL-2.0-only
"""Draws curves with characters, by plotext; no names are passed to it, so none can break a line."""

import math
import string
from collections.abc import Mapping
from dataclasses import dataclass

import plotext
from rich.text import Text

from fscale.analysis.curves import Curve, Page, Panel
from fscale.analysis.metrics import FAIRNESS, LATENCIES, PER_JOULE, THROUGHPUT
from fscale.analysis.plots import core_ticks, scaled_unit
from fscale.analysis.style import SERIES, LineStyle

MIN_COLUMNS = 20  # a narrower plot would be unreadable
INTERVALS = 4  # at most, on the vertical axis
PATH = "."
BEYOND = "-~"
"""the path to a predicted point, and the point"""
TIMES = {1.0: "s", 1e-3: "ms", 1e-6: "us"}

# Matplotlib's markers as characters that every font has, and colours that every terminal has on any
# background.
_MARKS = {"o": "o", "s": "#", "^": "^", "D": "*", "v": "v", "P": "+", "X": "x"}
_COLOURS = {
    "black": "default",
    "blue": "blue",
    "vermillion": "red",
    "green": "green",
    "purple": "magenta",
    "orange": "yellow",
    "sky blue": "cyan",
}
_NAMES = {colour.light: _COLOURS[name] for name, colour in SERIES.items()}


@dataclass(frozen=True)
class Mark:
    """How a curve is told from the others: its character, and its colour if there is colour."""

    character: str
    colour: str


def marks(page: Page, lines: Mapping[str, LineStyle]) -> dict[str, Mark]:
    """A mark for each curve by its legend name; each has a character of its own.

    A file system has the character that resembles its marker in the report. If it comes twice
    (sides of `fscale ab`), the second gets another one.
    """
    by_series: dict[str, Mark] = {}
    spare = [*_MARKS.values(), *string.ascii_letters]
    curves = {c.name: c for panel in page.panels for c in panel.curves}
    for name, curve in curves.items():
        line = lines[curve.filesystem]
        used = {mark.character for mark in by_series.values()}
        candidates = [_MARKS[line.marker], *spare]
        character = next((c for c in candidates if c not in used), "?")
        by_series[name] = Mark(character, _NAMES.get(line.colour, "default"))
    return by_series


def curves(panel: Panel, marked: Mapping[str, Mark], width: int, height: int) -> Text:
    """The points' metric against cores in `width` columns and `height` lines; both axes are linear.

    Dots lead from mark to mark; if two marks coincide, the later curve's is visible. Predicted
    curves go on with BEYOND.
    """
    top = max(value for curve in panel.curves for part in _parts(curve) for _, value in part)
    divisor, label = _scaled(top, panel)
    step = _step(top / divisor)
    ticks = [i * step for i in range(math.floor(top / divisor / step + 1e-9) + 1)]
    first, last = panel.drawn[0], panel.drawn[-1]
    margin = 0.04 * (last - first) or 0.5
    plotext.terminal.limit(False, False)
    figure = plotext.figure
    figure.clear()
    figure.plot_size(width, height - 1)
    figure.theme("colorless")
    for path in (True, False):
        for curve in panel.curves:
            mark = marked[curve.name]
            measured, beyond = _parts(curve)
            for part, line, point in ((beyond, *BEYOND), (measured, PATH, mark.character)):
                if part:
                    drawn = figure.signal(
                        [cores for cores, _ in part],
                        [value / divisor for _, value in part],
                        marker=plotext.colorize(line if path else point, mark.colour),
                    )
                    figure.draw(drawn.lines(True) if path else drawn)
    figure.ruler("x").lim(first - margin, last + margin)
    labelled = core_ticks(panel.drawn, width, 1.0)
    figure.ruler("x").ticks(labelled, labels=[str(count) for count in labelled])
    figure.ruler("y").lim(0, 1.08 * top / divisor)
    figure.ruler("y").ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    text = Text(f"{label}\n", no_wrap=True)
    return text.append_text(Text.from_ansi(str(figure.build()).rstrip("\n"), no_wrap=True))


def _parts(curve: Curve) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
    """Cores and values of the measured points, and of the predicted curve from where it begins."""
    measured = [(p.key.cores, p.median) for p in curve.points]
    return measured, [(cores, of.value) for cores, of in curve.beyond]


def _scaled(top: float, panel: Panel) -> tuple[float, str]:
    """Divisor and label of the vertical axis."""
    metric = panel.points[0].metric
    if metric in LATENCIES:
        divisor = next((d for d in TIMES if top >= d), 1e-9)
        return divisor, f"{metric}, {TIMES.get(divisor, 'ns')}"
    if metric in FAIRNESS:
        return 1.0, metric
    divisor, label = scaled_unit(top, panel.unit)
    per = {THROUGHPUT: "/s", PER_JOULE: "/J"}.get(metric, " per CPU second")
    return divisor, label.replace("/s", per)


def _step(top: float) -> float:
    """A round distance of the ticks: 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(top / INTERVALS))
    return next(power * f for f in (1, 2, 5, 10) if top / (power * f) <= INTERVALS + 1e-9)
