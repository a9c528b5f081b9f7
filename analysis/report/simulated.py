# SPDX-License-Identifier: GPL-2.0-only
"""The simulator section: where the cores' cycles went, and the lines that they waited for."""

from fscale.analysis.hot import COUNTED, REMOTE, SHARES, hot, rows
from fscale.analysis.report.render import render
from fscale.analysis.report.section import Report, Section
from fscale.analysis.summary import Point
from fscale.analysis.whatif import answers


def _build(report: Report) -> str | None:
    simulated = rows(report.points)
    if not simulated:
        return None
    tops: dict[tuple[str, str, str, str], Point] = {}
    for row in simulated:
        key = row.point.key
        curve = (key.load, key.filesystem, key.medium, key.mode)
        if curve not in tops or tops[curve].key.cores < key.cores:
            tops[curve] = row.point
    shown = {point.key.point for point in tops.values()}
    return render(
        "sections/simulated.html.j2",
        whose=report.whose,
        place_of=lambda point: report.place_of(point.key.point, report.part_of),
        rows=simulated,
        shares=SHARES,
        counted=[*COUNTED, REMOTE],
        tops=[(point, hot(point)) for point in tops.values()],
        others=[
            (row.point, hot(row.point)) for row in simulated if row.point.key.point not in shown
        ],
        answers=answers(report.results.every),
        model=(report.results.run.machine.guest or {}).get("model", {}),
    )


SECTION = Section("Simulated cycles and cache lines", "simulated", _build)
