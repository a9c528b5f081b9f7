# SPDX-License-Identifier: GPL-2.0-only
"""The diagnosis section: verdicts, the bottlenecks of the run, flame graphs, scaling law."""

import base64
import re
from dataclasses import dataclass

from markupsafe import Markup

from fscale.analysis.diagnosis import flame
from fscale.analysis.diagnosis.run import Diagnosed, diagnose, profiled, table, unprofiled
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
    """The diagnosis of a point as HTML; `name` is the point's (`CellKey.point`)."""

    name: str
    sentence: str
    evidence: Markup


def _describe(report: Report, point: Diagnosed, flames: list[Flame]) -> Described:
    suspects = [s for s in point.triage.suspects if s.share >= SHOWN_FROM][:MAX_OBJECTS]
    evidence = render(
        "sections/diagnosed.html.j2",
        point=point,
        suspects=suspects,
        flames=flames,
        whose=report.whose,
    )
    name = report.place_of(unprofiled(point.key).point, report.part_of)
    return Described(name, point.judgement.sentence, evidence)


def _flames(point: Diagnosed) -> list[Flame]:
    """The point's flame graphs; none without a profile, or without a program to draw them."""
    if flame.tool() is None:
        return []
    name = f"{point.key.workload} {point.key.filesystem}, {point.key.cores} cores"
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
    if not profiled(report.results):
        return None
    found = diagnose(report.results)
    most: dict[tuple[object, ...], int] = {}
    for point in found.points:
        curve = (point.key.workload, point.key.filesystem, point.key.medium, point.key.mode)
        most[curve] = max(most.get(curve, 0), point.key.cores)
    ends: list[Described] = []
    others: list[Described] = []
    for point in found.points:
        key = point.key
        if key.cores == most[key.workload, key.filesystem, key.medium, key.mode]:
            ends.append(_describe(report, point, _flames(point)))
        else:
            others.append(_describe(report, point, []))
    return render(
        "sections/diagnosis.html.j2",
        whose=report.whose,
        points=ends,
        others=others,
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
