# SPDX-License-Identifier: GPL-2.0-only
"""The table of several runs: a row for each point, a column for each run, as mmtests has it."""

from collections import Counter
from dataclasses import dataclass

from fscale.analysis.compare import wording
from fscale.analysis.compare.model import Judgement, Subject
from fscale.analysis.compare.pairs import subject_of
from fscale.analysis.report.against import Against
from fscale.analysis.report.render import render
from fscale.analysis.report.section import Report, Section
from fscale.analysis.summary import Point


@dataclass(frozen=True)
class RunValue:
    """A run's value at a point; `ratio` is relative to the first run, None if not comparable."""

    point: Point | None
    ratio: float | None = None
    judgement: Judgement | None = None
    health: str | None = None
    """broken, lost or mended against the first run"""

    @property
    def change(self) -> str:
        """The change in per cent, with its sign."""
        return wording.change(self.ratio)

    @property
    def verdict(self) -> str | None:
        """The verdict on the change; None if it was not judged."""
        if self.judgement is None or self.judgement.p is None:
            return None
        return self.judgement.verdict


@dataclass(frozen=True)
class SubjectRow:
    """A point in all runs; a run that did not measure it has no value."""

    subject: Subject
    panel: str
    anchor: str
    values: tuple[RunValue, ...]


def rows(report: Report) -> list[SubjectRow]:
    """The rows in the order of the curves: page, panel, file system, cores."""
    place = report.place
    by_subject: dict[Subject, dict[str | None, Point]] = {}
    where: dict[Subject, tuple[str, str]] = {}
    for page in report.pages:
        for panel in page.panels:
            points = sorted(panel.points, key=lambda p: p.key.cores)
            names = list(dict.fromkeys(c.filesystem for c in panel.curves))
            for point in sorted(points, key=lambda p: names.index(p.key.filesystem)):
                subject = subject_of(point.key, report.common)
                where.setdefault(subject, (panel.name, report.anchor(page, panel)))
                by_subject.setdefault(subject, {})[point.run] = point
    if place:  # several file systems share a row
        by_subject = dict(sorted(by_subject.items(), key=lambda item: list(where).index(item[0])))
    return [
        SubjectRow(subject, *where[subject], tuple(_values(report, subject, by_run)))
        for subject, by_run in by_subject.items()
    ]


def _values(report: Report, subject: Subject, by_run: dict[str | None, Point]) -> list[RunValue]:
    first, *others = report.members
    base = by_run.get(first.label)
    values = [RunValue(base)]
    for member in others:
        against = report.against[str(member.label)]
        values.append(_value(against, subject, base, by_run.get(member.label)))
    return values


def _value(against: Against, subject: Subject, base: Point | None, point: Point | None) -> RunValue:
    judged = against.comparison
    health = next((h.kind for h in judged.health if h.subject == subject), None) if judged else None
    if judged is None or base is None or point is None:
        return RunValue(point, health=health)
    judgement = against.rates.get(subject)
    ratio = point.median / base.median
    if judgement is not None and judgement.ratio is not None:
        ratio = judgement.ratio
    return RunValue(point, ratio, judgement, health)


def _sums(subject_rows: list[SubjectRow], column: int) -> str:
    """The number of rows of a column with each verdict."""
    counts = Counter(
        row.values[column].verdict for row in subject_rows if row.values[column].verdict
    )
    return ", ".join(
        f"{counts[verdict]} {verdict}" for verdict in wording.ORDERS["noisy"] if counts[verdict]
    )


def _build(report: Report) -> str | None:
    table = rows(report)
    if not table:
        return None
    place = report.place
    settings = next((a.comparison.settings for a in report.against.values() if a.comparison), None)
    return render(
        "sections/sidebyside.html.j2",
        rows=table,
        once=all(p.n == 1 for p in report.points),
        first=report.members[0].label,
        columns=[
            (m.label, next(p.key.filesystem for p in report.points if p.run == m.label))
            if place
            else (m.label, None)
            for m in report.members
        ],
        place=place,
        sums=[_sums(table, i) for i in range(len(report.members))],
        several=len(report.pages) > 1,
        judged=[a.label for a in report.against.values() if a.judged],
        too_few=[a.label for a in report.against.values() if a.comparison and not a.judged],
        refused=[a.label for a in report.against.values() if a.refused],
        settings=settings,
        needed=max(a.needed for a in report.against.values()),
    )


SECTION = Section("Side by side", "side-by-side", _build)
