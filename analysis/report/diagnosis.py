# SPDX-License-Identifier: GPL-2.0-only
"""Why curves stop scaling: the evidence beside each curve, and a section about the whole run.

The evidence of a point stands below its curve. The section has the bottlenecks, the scaling laws,
the cost of profiling, and points without a curve.
"""

import base64
import re
from dataclasses import dataclass

from markupsafe import Markup

from fscale.analysis.curves import Curve
from fscale.analysis.diagnosis import flame
from fscale.analysis.diagnosis.run import Diagnosed, table
from fscale.analysis.report.render import render
from fscale.analysis.report.section import Report, Section
from fscale.model.errors import FscaleError

SHOWN_FROM = 0.001  # share of the cores' time
MAX_OBJECTS = 8  # shown per point
_HEIGHT = re.compile(r'<svg[^>]* height="(\d+)"')


@dataclass(frozen=True)
class Flame:
    """A flame graph as a data URI."""

    title: str
    uri: str
    height: int  # in pixels


@dataclass(frozen=True)
class Described:
    """The diagnosis of a point as HTML; `place` and `anchor` are those of `Report`."""

    place: str
    anchor: str
    sentence: str
    evidence: Markup


def of_curve(report: Report, curve: Curve) -> list[Described]:
    """The curve's diagnosed points, the highest core count first; only that has flame graphs."""
    return [
        _describe(report, place, flames=number == 0)
        for number, place in enumerate(report.diagnosed_places(curve))
    ]


def _describe(report: Report, place: str, flames: bool) -> Described:
    point = report.diagnosed[place]
    suspects = [s for s in point.triage.suspects if s.share >= SHOWN_FROM][:MAX_OBJECTS]
    run = place.rpartition("|")[0]
    evidence = render(
        "sections/diagnosed.html.j2",
        point=point,
        suspects=suspects,
        flames=_flames(point) if flames else [],
        whose=f" of {run}" if run else "",
    )
    return Described(place, report.why_anchor(place), point.judgement.sentence, evidence)


def _flames(point: Diagnosed) -> list[Flame]:
    """The point's flame graphs; none without a profile, or without a program to draw them."""
    if flame.tool() is None:
        return []
    name = f"{point.key.load} {point.key.filesystem}, {point.key.cores} cores"
    folded = []
    if point.triage.cpu is not None:
        folded.append(("on CPU", flame.fold_cpu(point.triage.cpu)))
    if point.triage.offcpu is not None:
        folded.append(("off CPU", flame.fold_offcpu(point.triage.offcpu)))
    drawn = []
    for title, stacks in folded:
        try:
            svg = flame.svg(stacks, f"{name}: {title}")
        except FscaleError:  # there are no samples to draw
            continue
        data = base64.b64encode(flame.still(svg).encode()).decode()
        height = _HEIGHT.search(svg)
        pixels = int(height[1]) if height else 640
        drawn.append(Flame(title, f"data:image/svg+xml;base64,{data}", pixels))
    return drawn


def _build(report: Report) -> str | None:
    found = report.diagnosis
    if found is None:
        return None
    beside = {
        place
        for page in report.pages
        for _, curve in page.curves
        for place in report.diagnosed_places(curve)
    }
    return render(
        "sections/diagnosis.html.j2",
        whose=report.whose,
        alone=[_describe(report, p, flames=True) for p in report.diagnosed if p not in beside],
        simulated=report.results.run.machine.simulated,
        rows=table(found, report.results),
        sees_shares=any(p.triage.sees_shares for p in found.points),
        costs=found.costs,
        laws=[law for law in found.laws if law.fit is not None],
        refused=next((law.reason for law in found.laws if law.fit is None), None),
        skipped=found.warnings,
        program=flame.tool(),
        package=flame.PACKAGE,
    )


SECTION = Section("Why it stops scaling", "diagnosis", _build)
