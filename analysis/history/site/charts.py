# SPDX-License-Identifier: GPL-2.0-only
"""The drawings of the site: Vega charts, static and interactive, and sparklines."""

import json
import math
import re
from functools import cache
from html import escape
from typing import Any

import numpy as np
import vl_convert
from markupsafe import Markup

from fscale.analysis.compare.wording import change, seconds
from fscale.analysis.history.site.arrange import SeriesPage
from fscale.analysis.history.trend import Trend, TrendValue
from fscale.analysis.metrics import FAIRNESS, LATENCIES, NAMED, PER_JOULE
from fscale.analysis.numbers import rate
from fscale.analysis.report.render import read
from fscale.model.words import plural

DIGITS = 6  # significant, of a figure
WIDTH = 900  # pixels of the still drawing
SPARK = (120, 24)  # units of a sparkline
SPARK_ROOM = 0.05  # smallest range of a sparkline's height, so that noise does not look large

_ID = re.compile(r'(\bid="|url\(#)(clip\d+)')


def specification(page: SeriesPage, trend: Trend) -> dict[str, Any]:
    """The Vega specification of a trend; `x` is the number of the run on the page."""
    spec: dict[str, Any] = json.loads(_template())
    number = page.number
    values = {
        "runs": [{"date": run.started[:10]} for run in page.runs],
        "points": [
            {
                "x": number[value.path],
                "value": _rounded(value.median),
                "low": _rounded(value.low),
                "high": _rounded(value.high),
                "disturbed": value.disturbed > 0,
                "label": describe_value(trend, value),
            }
            for value in trend.values
        ],
        "levels": _levels(page, trend),
        "steps": [
            {
                "x": (number[step.last.path] + number[step.first.path]) / 2,
                "label": change(step.ratio),
                "worse": step.worse,
            }
            for step in trend.steps
        ],
    }
    for data in spec["data"]:
        if data["name"] in values:
            data["values"] = values[data["name"]]
    given = {"last": len(page.runs) - 1, "yTitle": unit(trend)}
    for signal in spec["signals"]:
        if signal["name"] in given:
            signal["value"] = given[signal["name"]]
    spec["width"] = WIDTH
    spec["description"] = _description(page, trend)
    return spec


def unit(trend: Trend) -> str:
    """The unit of a trend's values, for an axis."""
    if trend.metric in LATENCIES:
        return "s"
    if trend.metric in FAIRNESS:
        return "share"
    return f"{trend.place.unit}/{'J' if trend.metric == PER_JOULE else 's'}"


def shown(metric: str, value: float) -> str:
    """A value as text: a time with its unit, a rate with a prefix, fairness as a number up to 1."""
    if metric in LATENCIES:
        return seconds(value)
    return f"{value:.3f}" if metric in FAIRNESS else rate(value)


def describe_value(trend: Trend, value: TrendValue) -> str:
    """Describe a value: run, day, kernel, value, spread, repetitions."""
    median, low, high = (shown(trend.metric, v) for v in (value.median, value.low, value.high))
    text = f"{value.run}, {value.started[:10]}, kernel {value.kernel}: {median}"
    if value.n > 1:
        text += f" ({low} to {high})"
    units = "" if trend.metric in NAMED else f" {unit(trend)}"
    text += f"{units}, {plural(value.n, 'repetition')}"
    return text + (f", {value.disturbed} disturbed" if value.disturbed else "")


def _levels(page: SeriesPage, trend: Trend) -> list[dict[str, float]]:
    """The level between steps, from the first run of a segment to its last."""
    if not trend.steps:
        return []
    paths = [value.path for value in trend.values]
    starts = [0, *(paths.index(step.first.path) for step in trend.steps)]
    ends = [*(start - 1 for start in starts[1:]), len(paths) - 1]
    levels = [trend.steps[0].before, *(step.after for step in trend.steps)]
    return [
        {"from": page.number[paths[a]], "to": page.number[paths[b]], "value": _rounded(level)}
        for a, b, level in zip(starts, ends, levels, strict=True)
    ]


def _description(page: SeriesPage, trend: Trend) -> str:
    return (
        f"{page.title}, {plural(trend.cores, 'core')}: {plural(len(trend.values), 'run')}, "
        f"{plural(len(trend.steps), 'step')}"
    )


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


@cache
def _template() -> str:
    return read("history/series.vg.json")


def still(spec: dict[str, Any], prefix: str) -> str:
    """The drawing as an SVG element, for a browser without JavaScript.

    Its ids start with `prefix`, which is unique in the page; Vega numbers them across all drawings.
    """
    quiet = {**spec, "marks": [mark for mark in spec["marks"] if mark["name"] != "handles"]}
    head, _, body = vl_convert.vega_to_svg(quiet).partition(">")
    numbers: dict[str, int] = {}
    body = _ID.sub(lambda m: f"{m[1]}{prefix}-{numbers.setdefault(m[2], len(numbers))}", body)
    label = escape(spec["description"], quote=True)
    box = head.partition('viewBox="')[2].partition('"')[0]
    return f'<svg viewBox="{box}" role="img" aria-label="{label}" class="plot">{body}'


def sparkline(trend: Trend) -> Markup:
    """A trend as a line without axes, with a dot at the first run after each step."""
    width, height = SPARK
    logs = np.log([value.median for value in trend.values])
    middle = float(logs.min() + logs.max()) / 2
    room = max(float(logs.max() - logs.min()), math.log1p(SPARK_ROOM)) * 1.15
    x = np.linspace(2, width - 2, len(logs)) if len(logs) > 1 else np.array([width / 2])
    y = height / 2 - (logs - middle) / room * height
    places = [value.path for value in trend.values]
    at = [(places.index(step.first.path), step.worse) for step in trend.steps]
    dots = [(x[i], y[i], "worse" if worse else "better") for i, worse in at]
    if len(logs) == 1:
        dots.append((x[0], y[0], "only"))
    drawn = "".join(
        f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="2.5" class="{kind}"/>' for cx, cy, kind in dots
    )
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    label = f"{plural(len(logs), 'run')}, {plural(len(at), 'step')}"
    return Markup(
        f'<svg class="spark" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">'
        f'<polyline points="{line}"/>{drawn}</svg>'
    )
