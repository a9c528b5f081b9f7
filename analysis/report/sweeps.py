# SPDX-License-Identifier: GPL-2.0-only
"""The section of sweeps: curves by value, latency by load, a heat map of cores by value."""

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from fscale.analysis import figures
from fscale.analysis.curves import Curve
from fscale.analysis.offered import by_cores
from fscale.analysis.report.render import render
from fscale.analysis.report.section import Report, Section
from fscale.analysis.style import LineStyle, lines, speedup_colours
from fscale.analysis.summary import Point, Ratio
from fscale.analysis.sweeps import Sweep, sweeps


@dataclass(frozen=True)
class Square:
    """A point in the heat map; `colours` are of its speed-up relative to linear."""

    point: Point
    ratio: Ratio | None
    colours: tuple[str, str] | None


@dataclass(frozen=True)
class Row:
    """A curve: its name and the sample of its line, and a square for each core count."""

    name: str
    sample: Markup
    squares: tuple[Square | None, ...]


def rows(sweep: Sweep, looks: Mapping[str, LineStyle], prefix: str) -> list[Row]:
    """The heat map: a row for each value, a column for each core count of the sweep's panel."""
    return [
        Row(
            curve.name,
            Markup(
                figures.curve_key(looks[curve.series], f"{prefix}-{i}", simulated=curve.simulated)
            ),
            tuple(_square(curve, count) for count in sweep.panel.cores),
        )
        for i, curve in enumerate(sweep.panel.curves)
    ]


def _square(curve: Curve, count: int) -> Square | None:
    point = next((p for p in curve.points if p.key.cores == count), None)
    if point is None:
        return None
    share = curve.share_at(point)
    colours = None if share is None else speedup_colours(share)
    return Square(point, curve.speedup(point), colours)


def _build(report: Report) -> str | None:
    found = sweeps(report.pages)
    if not found:
        return None
    shown = []
    for number, sweep in enumerate(found):
        looks = lines(dict.fromkeys(sweep.names))
        svg = figures.curve_svg(sweep.panel, looks, f"sweep-{number}-plot")
        loads = by_cores(sweep)
        load = figures.load_svg(sweep.name, loads, f"sweep-{number}-load") if loads else ""
        keyed = rows(sweep, looks, f"sweep-{number}-key")
        shown.append((sweep, Markup(svg), Markup(load), keyed))
    return render(
        "sections/sweeps.html.j2",
        sweeps=shown,
        open_loop=any(load for _, _, load, _ in shown),
        several=len(report.pages) > 1,
        disturbed=any(point.disturbed for sweep in found for point in sweep.panel.points),
    )


SECTION = Section("Sweeps", "sweeps", _build)
