# SPDX-License-Identifier: GPL-2.0-only
"""The comparison as HTML: a page of its own, or a section of the report."""

from markupsafe import Markup

from analysis.compare import wording
from analysis.compare.settings import Comparison
from analysis.report.policy import policy
from analysis.report.render import read, render, stylesheet


def fragment(comparison: Comparison) -> Markup:
    """The judgements as HTML without a head, for a section of a page."""
    return render(
        "sections/compare.html.j2",
        comparison=comparison,
        headline=wording.headline(comparison),
        judgements=wording.ordered(comparison),
        wording=wording,
    )


def refusal(reason: str) -> Markup:
    """The reason why there are no judgements, as HTML."""
    return Markup("<p>No verdict: {}</p>").format(reason)


def page(comparison: Comparison) -> str:
    """A page that needs no other file and no network."""
    style, script = stylesheet(), read("report.js")
    return render(
        "compare.html.j2",
        comparison=comparison,
        section=fragment(comparison),
        policy=policy(style, [script]),
        style=style,
        script=script,
    )
