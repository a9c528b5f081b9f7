# SPDX-License-Identifier: GPL-2.0-only
"""The section that compares the curves of the run with FxMark's paper."""

from collections import Counter

from fscale.analysis.paper.agreement import (
    BEYOND,
    DOES_NOT,
    GAIN,
    RISEN,
    SCALES,
    SOCKET,
    VERDICTS,
    compare_with_paper,
    other_operations,
    right_shapes,
)
from fscale.analysis.report.render import render
from fscale.analysis.report.section import Report, Section


def _build(report: Report) -> str | None:
    if not report.paper:
        return None
    pages = [(page, compare_with_paper(page)) for page in report.pages]
    counts = Counter(row.verdict for _, rows in pages for row in rows)
    return render(
        "sections/paper.html.j2",
        report=report,
        pages=[(page, rows) for page, rows in pages if rows],
        labels=any(member.results.run.machine.labels for member in report.members),
        counts=[(verdict, counts[verdict]) for verdict in VERDICTS if counts[verdict]],
        right=right_shapes([row for _, rows in pages for row in rows]),
        scales=SCALES,
        does_not=DOES_NOT,
        risen=RISEN,
        gain=GAIN,
        socket=SOCKET,
        beyond=BEYOND,
        others=dict.fromkeys(name for page, _ in pages for name in other_operations(page)),
    )


SECTION = Section("Comparison with FxMark's paper", "paper", _build)
