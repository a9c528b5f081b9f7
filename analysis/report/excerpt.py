# SPDX-License-Identifier: GPL-2.0-only
"""The first part of the report, for a page of another program, such as a notebook."""

from markupsafe import Markup

from fscale.analysis.report import answer, headline
from fscale.analysis.report.render import render, stylesheet
from fscale.analysis.report.section import Report


def excerpt(report: Report) -> Markup:
    """The answer, with its limits, as HTML that has its own style and no script.

    The answer on one run is followed by what was run.
    """
    section = answer.SECTION if report.several else headline.SECTION
    return render("excerpt.html.j2", style=stylesheet(), content=section.build(report))
