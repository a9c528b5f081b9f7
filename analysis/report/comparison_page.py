# SPDX-License-Identifier: GPL-2.0-only
"""The comparison as HTML: a page of its own, or a section of the report."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from fscale.analysis.compare import wording
from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.model import Comparison
from fscale.analysis.compare.ratios import Ratios, ratios
from fscale.analysis.compare.sides import Sides, open_sides
from fscale.analysis.members import Member
from fscale.analysis.report.against import Against
from fscale.analysis.report.drawings import CURVES
from fscale.analysis.report.layout import page as laid_out
from fscale.analysis.report.ratioplot import ratio_svg, reach
from fscale.analysis.report.render import render
from fscale.analysis.report.section import Report, Section
from fscale.model.errors import FscaleError
from fscale.model.files import Folder
from fscale.model.store import AB_FILE

HEADING = "Did the change alter scalability?"
DIGITS = 6  # significant, of a ratio


def fragment(comparison: Comparison, tall: bool = False) -> Markup:
    """The judgements as HTML, for a section of a page.

    `tall`: a long table gets its own scroll bar, because more sections follow.
    """
    return render(
        "sections/compare.html.j2",
        comparison=comparison,
        tall=tall,
        conclusion=wording.conclusion(comparison),
        headline=wording.headline(comparison),
        judgements=wording.ordered(comparison),
        wording=wording,
    )


def page(comparison: Comparison, sides: Sides) -> str:
    """A page that needs no other file and no network: verdicts, ratios, the curves of both."""
    report = _report(comparison, sides)
    # Simulated counts are judged by boots and have no interval.
    noisy = comparison.policy == "noisy"
    drawn = list(ratios(sides, comparison).items()) if noisy else []
    figures = [(f"ratios-{i}", metric, rows) for i, (metric, rows) in enumerate(drawn)]
    sections = [
        (Section("Verdicts", "compare", lambda _: None), fragment(comparison, tall=True)),
        (Section("Ratios", "ratios", lambda _: None), _ratios(figures)),
        (CURVES, CURVES.build(report)),
        (
            Section("The two sides", "sides", lambda _: None),
            render("sections/sides.html.j2", comparison=comparison),
        ),
    ]
    return laid_out(
        report,
        HEADING,
        f"{comparison.new.label} against {comparison.base.label}",
        sections,
        ratios=[_data(*figure) for figure in figures],
        diagnosed=False,
    )


def _report(comparison: Comparison, sides: Sides) -> Report:
    """Both sides as the runs BASE and NEW of a report."""
    base, new = ("A", "B") if sides.interleaved else (None, None)
    members = (
        Member(sides.base_results, "BASE", "BASE", base, all_sides=not sides.interleaved),
        Member(sides.new_results, "NEW", "NEW", new, all_sides=not sides.interleaved),
    )
    return Report(members, Path(), judged={"NEW": Against("NEW", comparison)})


def _ratios(figures: Sequence[tuple[str, str, list[Ratios]]]) -> Markup | None:
    if not figures:
        return None
    drawn = [
        (name, metric, Markup(ratio_svg(rows, f"{name}-plot", metric)))
        for name, metric, rows in figures
    ]
    every = [row for _, _, rows in figures for row in rows]
    return render(
        "sections/ratios.html.j2",
        figures=drawn,
        sliced=any(row.judgement.pairs for row in every),
        dots=any(row.dots for row in every),
        ticks=any(row.ticks for row in every),
    )


def _data(name: str, metric: str, rows: list[Ratios]) -> dict[str, Any]:
    """A figure of ratios for the page's JSON: ratios are NEW over BASE."""
    return {
        "id": name,
        "title": metric,
        "reach": reach(rows),
        "rows": [
            {
                "name": row.name,
                "label": row.label,
                "verdict": row.judgement.verdict,
                "said": row.remark,
                "ratio": row.judgement.ratio,
                "low": row.judgement.low,
                "high": row.judgement.high,
                "margins": row.margins,
                "dots": [[_short(dot.ratio), dot.label] for dot in row.dots],
                "ticks": [_short(ratio) for ratio in row.ticks],
            }
            for row in rows
        ],
    }


def _short(ratio: float) -> float:
    return float(f"{ratio:.{DIGITS}g}")


def _section(report: Report) -> str | None:
    run_dir = report.results.path
    if not Folder(run_dir).exists(AB_FILE):
        return None
    try:
        sides = open_sides(run_dir, None)
        return fragment(compare(sides, sides.settings))
    except FscaleError as error:
        # The report also shows an incomplete run.
        return Markup("<p>No verdict: {}</p>").format(str(error))


SECTION = Section(HEADING, "compare", _section)
