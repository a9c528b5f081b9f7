# SPDX-License-Identifier: GPL-2.0-only
"""The section that lists several runs, and says whether they can be compared."""

from collections import Counter

from markupsafe import Markup

from fscale.analysis.report.headline import counted, limits, seconds
from fscale.analysis.report.render import render
from fscale.analysis.report.section import Report, Section


def _build(report: Report) -> str:
    runs = [(str(m.run), m.results) for m in {m.run: m for m in report.members}.values()]
    warnings = {
        a.label: a.comparison.warnings if a.comparison else [] for a in report.against.values()
    }
    compared = [own for label, own in warnings.items() if not report.against[label].refused]
    often = Counter(warning for own in compared for warning in own)
    shared = [warning for warning, n in often.items() if n == len(compared) > 1]
    return render(
        "sections/runs.html.j2",
        first=report.members[0].label,
        runs=[(label, results, seconds(results), counted(results)) for label, results in runs],
        refused=[(a.label, a.refused) for a in report.against.values() if a.refused],
        shared=shared,
        differ=[
            (label, left)
            for label, own in warnings.items()
            if (left := [warning for warning in own if warning not in shared])
        ],
        limits=limits(report),
    )


def each(section: Section) -> Section:
    """A section for a report of several runs: that of each run, under its name."""

    def build(report: Report) -> str | None:
        built = [(part.part_of, section.build(part)) for part in report.parts]
        parts = [
            Markup("<h3>{}</h3>\n{}").format(name, Markup(html)) for name, html in built if html
        ]
        return Markup("\n").join(parts) if parts else None

    return Section(section.title, section.anchor, build)


SECTION = Section("Runs", "runs", _build)
