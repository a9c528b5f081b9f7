# SPDX-License-Identifier: GPL-2.0-only
"""Why cells stop scaling: verdicts, the bottlenecks of the run, flame graphs, scaling law."""

import base64
from dataclasses import dataclass

from analysis.diagnosis import flame
from analysis.diagnosis.run import Diagnosed, diagnose, profiled, table
from analysis.report.render import render
from analysis.report.section import Report, Section
from fscale.model.errors import FscaleError

SHOWN_FROM = 0.001  # share of the cores' time
MOST = 8  # objects a point


@dataclass(frozen=True)
class Flame:
    """A flame graph as a data URI."""

    title: str
    uri: str


def _flames(point: Diagnosed) -> list[Flame]:
    """The point's flame graphs; none where there is no profile or no program to draw it."""
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
        except FscaleError:  # nothing was sampled: there is nothing to draw
            continue
        data = base64.b64encode(svg.encode()).decode()
        drawn.append(Flame(title, f"data:image/svg+xml;base64,{data}"))
    return drawn


def _build(report: Report) -> str | None:
    if not profiled(report.results):
        return None
    found = diagnose(report.results)
    most: dict[tuple[object, ...], int] = {}
    for point in found.points:
        curve = (point.key.workload, point.key.filesystem, point.key.medium, point.key.mode)
        most[curve] = max(most.get(curve, 0), point.key.cores)
    shown = [
        p
        for p in found.points
        if p.key.cores == most[p.key.workload, p.key.filesystem, p.key.medium, p.key.mode]
    ]
    return render(
        "sections/diagnosis.html.j2",
        points=[
            (p, [s for s in p.triage.suspects if s.share >= SHOWN_FROM][:MOST], _flames(p))
            for p in shown
        ],
        simulated=report.results.run.machine.kind == "simulated",
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
