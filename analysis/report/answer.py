# SPDX-License-Identifier: GPL-2.0-only
"""The answer: what scales, and what stops the rest, a cell for each workload and file system."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from fscale.analysis import conclusion
from fscale.analysis.curves import Curve, Page, Panel
from fscale.analysis.diagnosis.run import Diagnosed
from fscale.analysis.diagnosis.verdict import Confidence
from fscale.analysis.findings import (
    CLEAR_FROM,
    SCALES_FROM,
    SUPERLINEAR_FROM,
    CurveFinding,
    Scaling,
    findings,
)
from fscale.analysis.report.render import render
from fscale.analysis.report.section import Report, Section
from fscale.analysis.style import speedup_colours

WIDTH, HEIGHT = 60, 24  # of a cell's curve, in its own units
TOP = 1.1  # of the drawing, over the curve's highest point


@dataclass(frozen=True)
class Answer:
    """A curve's cell; `found` is None if the curve has no speed-up."""

    curve: Curve
    found: CurveFinding | None
    colours: tuple[str, str] | None
    measured: str
    """the curve as the points of an SVG polyline; matplotlib would take 9 ms for each"""
    linear: str
    why: Diagnosed | None
    why_anchor: str | None

    @property
    def stopped_by(self) -> str | None:
        """The object that takes most of the cores' time, with its share; None: nothing to say."""
        if self.why is None:
            return None
        if cause := self.why.judgement.cause:
            possibly = "possibly " * (self.why.judgement.confidence is Confidence.POSSIBLE)
            return f"{possibly}{cause.name.object}, {cause.share:.0%}"
        lost = self.found and self.found.verdict in (Scaling.PARTLY, Scaling.FALLS)
        return "no object explains it" if lost else None


@dataclass(frozen=True)
class Row:
    """A workload on all file systems; None where it was not measured."""

    panel: Panel
    anchor: str
    answers: tuple[Answer | None, ...]


def mostly_disturbed(report: Report) -> bool:
    """Whether one remark says it of the whole report, and no cell of the table."""
    return conclusion.mostly_disturbed([cell for point in report.points for cell in point.cells])


def sentence(page: Page) -> str:
    """What the curves of a page do; a name that it begins with stays as it is."""
    text = conclusion.of(page)
    named = not text.startswith(("of ", "no "))
    return f"{text if named else text[0].upper() + text[1:]}."


def rows(report: Report, page: Page) -> list[Row]:
    """The rows in the order of the panels, the cells in the order of `page.names`."""
    found = {(f.panel.name, f.curve.name): f for f in findings(page)}
    return [
        Row(
            panel,
            report.anchor(page, panel),
            tuple(
                _answer(report, panel, curve, found.get((panel.name, name)))
                if (curve := panel.curve(name))
                else None
                for name in page.names
            ),
        )
        for panel in page.panels
    ]


def _answer(report: Report, panel: Panel, curve: Curve, found: CurveFinding | None) -> Answer:
    share = curve.share_of_linear
    doubtful = found is None or found.verdict is Scaling.SUPERLINEAR
    place = next(iter(report.diagnosed_places(curve)), None)
    base = curve.points[0]
    return Answer(
        curve,
        found,
        None if share is None or doubtful else speedup_colours(share),
        _polyline(panel, curve, [p.median for p in curve.points]),
        _polyline(panel, curve, [base.median * curve.linear_at(p) for p in curve.points]),
        report.diagnosed[place] if place else None,
        report.why_anchor(place) if place else None,
    )


def _polyline(panel: Panel, curve: Curve, heights: list[float]) -> str:
    first, last = panel.cores[0], panel.cores[-1]
    top = TOP * curve.peak.median

    def points() -> Iterator[str]:
        for point, height in zip(curve.points, heights, strict=True):
            x = WIDTH * (point.key.cores - first) / max(1, last - first)
            yield f"{x:.3g},{HEIGHT * (1 - height / top):.3g}"

    return " ".join(points())


def table(report: Report, limits: Sequence[str] = ()) -> Markup | None:
    """The answers of all pages as HTML; None if there are no limits and no two core counts.

    `limits`: what the run cannot say, one sentence each, the most important first.
    """
    pages = [
        (page, sentence(page), rows(report, page)) for page in report.pages if len(page.cores) > 1
    ]
    if not pages and not limits:
        return None
    shown = [answer for _, _, body in pages for row in body for answer in row.answers if answer]
    return render(
        "sections/answer.html.j2",
        pages=pages,
        limits=limits,
        size=(WIDTH, HEIGHT),
        scale=[speedup_colours(share / 2) for share in range(-2, 3)],
        disturbed=not mostly_disturbed(report)
        and any(answer.found and answer.found.disturbed for answer in shown),
        early=any(
            answer.curve.top.key.cores != page.cores[-1]
            for page, _, body in pages
            for row in body
            for answer in row.answers
            if answer
        ),
        profiled=bool(report.diagnosed),
        scales_from=SCALES_FROM,
        clear_from=CLEAR_FROM,
        superlinear_from=SUPERLINEAR_FROM,
        controlled=any(report.controls.values()),
    )


SECTION = Section("What scales, and what stops the rest", "answer", table)
