# SPDX-License-Identifier: GPL-2.0-only
"""The input of the page's interactive charts: data, Vega specification, scripts.

The page is complete without them: a browser without JavaScript shows the drawings of matplotlib.
"""

import json
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from markupsafe import Markup

from fscale.analysis.curves import Curve, Page, Panel
from fscale.analysis.metrics import NAMED_VALUES
from fscale.analysis.prediction.model import Range
from fscale.analysis.report import repeat
from fscale.analysis.report.render import read
from fscale.analysis.report.section import Report
from fscale.analysis.style import LONG, PREDICTED, Dashes, dashes, variables
from fscale.analysis.summary import Point, Spread
from fscale.model.results import Cell

SCRIPTS = ("view", "panel", "points", "detail", "flame", "ratios", "charts")
DIGITS = 6  # significant digits of a figure; repetitions differ by more

# Matplotlib's markers as Vega's shapes.
SHAPES = {
    "o": "circle",
    "s": "square",
    "^": "triangle-up",
    "D": "diamond",
    "v": "triangle-down",
    "P": "cross",
    "X": "M-.7,-1L0,-.3L.7,-1L1,-.7L.3,0L1,.7L.7,1L0,.3L-.7,1L-1,.7L-.3,0L-1,-.7Z",
}
DASHES: dict[Dashes, list[float]] = {
    "-": [1, 0],
    "--": [5, 3],
    ":": [1.5, 2.5],
    "-.": [6, 2, 1.5, 2],
    LONG: [11, 3],
    PREDICTED: [4, 4],
}
_VARIABLES = {colour.light: f"var(--{name})" for name, colour in variables().items()}


def data(report: Report, diagnosed: bool = True) -> dict[str, Any]:
    """All panels with their curves and points, for the page's JSON.

    `diagnosed`: the page has a diagnosis section. Rates are in operations per second, latencies in
    seconds; a figure is [median, low, high].
    """
    panels = [_panel(report, page, panel) for page in report.pages for panel in page.panels]
    points = [p for panel in panels for curve in panel["curves"] for p in curve["points"]]
    measures = [name for name in MEASURES if any(name in point for point in points)]
    return {"measures": measures, "panels": panels, "diagnosed": diagnosed}


def _panel(report: Report, page: Page, panel: Panel) -> dict[str, Any]:
    layout, ideal = panel.layout, panel.ideal
    return {
        "id": report.anchor(page, panel),
        "name": panel.name,
        "unit": panel.unit,
        "cores": panel.cores,
        "sockets": list(layout.sockets) if layout else [],
        "kinds": list(layout.borders) if layout else [],
        "physical": layout.cores if layout else None,
        "ideal": ideal
        and {"start": _figures(ideal.start), "factors": [list(f) for f in ideal.factors]},
        "given": [[n, float(f"{f:.{DIGITS}g}")] for n, f in panel.given.factors]
        if panel.given
        else [],
        "curves": [_curve(report, curve) for curve in panel.curves],
    }


def _curve(report: Report, curve: Curve) -> dict[str, Any]:
    line = report.lines[curve.series]
    first = curve.points[0].key
    return {
        "name": curve.name,
        "filesystem": curve.filesystem if curve.run else curve.name,
        "run": curve.run,
        "colour": _VARIABLES[line.colour],
        "shape": SHAPES[line.marker],
        "dash": DASHES[dashes(line, curve.side, curve.simulated)],
        "based": curve.base is not None,
        "command": repeat.command(report.results_of(curve.run).run, first, len(report.pages) > 1),
        "points": [
            {
                "cores": point.key.cores,
                "n": point.n,
                "disturbed": point.disturbed,
                "spread": point.spread.kind,
                "point": report.place_of(point.key.point, curve.run),
                **({"change": change} if (change := report.change_of(point)) else {}),
                **_figures(point),
            }
            for point in curve.points
        ],
        **({"predicted": _predicted(curve)} if curve.beyond else {}),
    }


def _predicted(curve: Curve) -> dict[str, Any]:
    """The curve beyond the measured one; `from` is the place of the point at which it begins."""
    at = curve.beyond[0][0]
    return {
        "from": next(i for i, point in enumerate(curve.points) if point.key.cores == at),
        "dash": DASHES[PREDICTED],
        "points": [
            {
                "cores": one.key.cores,
                "judged": one.recorded,
                "rate": _short(one.rate),
                "speedup": _short(one.speedup),
            }
            for one in curve.predicted
            if one.rate and one.speedup
        ],
    }


def _short(of: Range) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in (of.value, of.low, of.high)]


def _figures(point: Point) -> dict[str, list[float]]:
    figures_by_measure = {}
    for name, measure in MEASURES.items():
        values = [measure(cell, point.workers) for cell in point.cells]
        known = [v for v in values if v is not None and math.isfinite(v) and v > 0]
        if len(known) == point.n:
            array = np.array(known)
            spread = Spread.of(array)
            figures = (float(np.median(array)), spread.low, spread.high)
            figures_by_measure[name] = [float(f"{value:.{DIGITS}g}") for value in figures]
    return figures_by_measure


def _rate(cell: Cell, workers: int) -> float:
    return cell.ops_per_second


def _per_cpu_second(cell: Cell, workers: int) -> float | None:
    return cell.ops / cell.own_cpu_seconds if cell.own_cpu_seconds else None


def _mean_latency(cell: Cell, workers: int) -> float:
    """By Little's law: each worker always has one operation in progress."""
    return workers / cell.ops_per_second


def _named(value_of: Callable[[Cell], float | None]) -> Callable[[Cell, int], float | None]:
    def value(cell: Cell, workers: int) -> float | None:
        return value_of(cell)

    return value


MEASURES: dict[str, Callable[[Cell, int], float | None]] = {
    "rate": _rate,
    "cpu": _per_cpu_second,
    "latency": _mean_latency,
    **{metric: _named(value_of) for metric, value_of in NAMED_VALUES.items()},
}


@cache
def scripts() -> Markup:
    """The scripts reports/charts/*.js, in the order of their dependencies."""
    return Markup("\n").join(read(f"charts/{name}.js") for name in SCRIPTS)


@cache
def specification(name: str = "panel") -> dict[str, Any]:
    """The Vega specification of a panel of curves, or of the "ratios" of a comparison."""
    drawn: dict[str, Any] = json.loads(read(f"charts/{name}.vg.json"))
    return drawn
