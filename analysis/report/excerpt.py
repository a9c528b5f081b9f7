# SPDX-License-Identifier: GPL-2.0-only
"""The first part of the report, for a page of another program, such as a notebook."""

from markupsafe import Markup

from fscale.analysis.report import answer, comparison_page, headline
from fscale.analysis.report.render import render, stylesheet
from fscale.analysis.report.section import Report


def excerpt(report: Report) -> Markup | None:
    """The verdicts of a paired run, or the answer on others, as HTML with its own style.

    The answer on one run has its limits, and what was run. None if there is no answer: several runs
    of a single core count.
    """
    several, one = (answer.SECTION,), (comparison_page.SECTION, headline.SECTION)
    parts = (section.build(report) for section in (several if report.several else one))
    content = next((part for part in parts if part is not None), None)
    if content is None:
        return None
    return render("excerpt.html.j2", style=stylesheet(), content=Markup(content))
