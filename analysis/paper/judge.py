# SPDX-License-Identifier: GPL-2.0-only
"""Answers the claims of a paper from a run: whether each holds here, or why it cannot be asked."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from fscale.analysis.conclusion import pages_of
from fscale.analysis.curves import Page
from fscale.analysis.numbers import interval, times
from fscale.analysis.paper.agreement import DOES_NOT, SCALES, Agreement, measured_shape
from fscale.analysis.reader import Results
from fscale.analysis.summary import Point, Ratio, summarise
from fscale.model.paper import Claim, Paper, Question, questions
from fscale.model.results import Cell

Verdict = Literal["holds", "does not hold", "undecided", "cannot be asked here"]
CANNOT: Verdict = "cannot be asked here"


@dataclass(frozen=True)
class Answer:
    """The answer to a question; `cores` is the highest core count of ours."""

    question: Question
    verdict: Verdict
    why: str
    ours: str = ""
    cores: int | None = None
    theirs: str = ""
    asked_of: str = ""
    """a workload, and the file systems with the systems of the paper that they stand for"""

    @property
    def row(self) -> dict[str, Any]:
        """Its row in JSON."""
        claim = self.question.claim
        return {
            "claim": claim.name,
            "where": claim.where,
            "says": claim.says,
            "workload": self.question.workload,
            "filesystem": self.question.filesystem,
            "asked_of": self.asked_of,
            "theirs": self.theirs,
            "ours": self.ours,
            "cores": self.cores,
            "verdict": self.verdict,
            "why": self.why,
        }


def answers(
    paper: Paper, claims: Sequence[Claim], results: Results | None, why: str = ""
) -> list[Answer]:
    """The answers, in the order of the claims; without results `why` is the reason of each."""
    pages = pages_of(results) if results else []
    metrics = {one.metric for one in claims if one.ratio is not None}
    points = {m: summarise(results.scored, metric=m) if results else [] for m in metrics}
    cells = results.cells if results else ()

    def answer(asked: Question) -> Answer:
        if asked.claim.cannot:
            return Answer(asked, CANNOT, asked.claim.cannot)
        judged = (
            _of_shape(asked, pages)
            if asked.claim.shape
            else _of_ratio(asked, points[asked.claim.metric])
        )
        return judged or _unmeasured(asked, cells, why)

    def told(one: Answer) -> Answer:
        differs = "" if one.question.claim.cannot else one.question.claim.differs
        return replace(
            one,
            why="; ".join(filter(None, (one.why, differs))),
            theirs=paper.theirs(one.question.claim),
            asked_of=_asked_of(one.question, paper),
        )

    return [told(answer(one)) for one in questions(claims)]


def asked_first(found: Sequence[Answer]) -> tuple[list[Answer], list[Answer]]:
    """The answers of what could be asked, and the others."""
    asked = [one for one in found if one.verdict != CANNOT]
    return asked, [one for one in found if one.verdict == CANNOT]


def _asked_of(asked: Question, paper: Paper) -> str:
    told = [
        f"{side} for {paper.system(side)}" if side in paper.stand_ins else side
        for side in asked.sides
    ]
    return " on ".join(filter(None, (asked.workload, " / ".join(told))))


def _unmeasured(asked: Question, cells: Collection[Cell], why: str) -> Answer:
    """The answer without figures, for the reason that the cells give."""
    reasons = [cell.reason for cell in cells if asked.about(cell.key) and cell.reason]
    return Answer(asked, CANNOT, why or (reasons[0] if reasons else "it was not measured"))


def _of_shape(asked: Question, pages: Sequence[Page]) -> Answer | None:
    for panel, curve in (one for page in pages for one in page.curves):
        if asked.about(curve.top.key) and not curve.side:
            if mine := measured_shape(curve):
                return _judged(asked, Agreement(panel, curve, asked.claim, mine))
            return Answer(asked, CANNOT, "there are no figures both at one core and at more")
    return None


def _judged(asked: Question, one: Agreement) -> Answer:
    mine = one.ours
    behind = f", then {mine.behind}" if mine.behind else ""
    ours = (
        f"{times(mine.speedup.value)} at {mine.cores} cores, {mine.part:.2f} of linear; "
        f"rises to {mine.rises_to}{behind}{_marks(one.curve.points)}"
    )
    parts = {"scaling": one.verdict, "turn": one.turn, "slope": one.slope}
    if differs := [name for name, verdict in parts.items() if verdict == "differs"]:
        return Answer(asked, "does not hold", f"{', '.join(differs)} differs", ours, mine.cores)
    if {"too few cores", "agrees so far"} & {*parts.values()}:
        so_far = "; so far it agrees" if one.verdict == "agrees so far" else ""
        return Answer(asked, CANNOT, f"needs {one.enough} cores{so_far}", ours, mine.cores)
    if one.verdict == "neither":
        between = f"it neither scales ({SCALES} of linear) nor does not ({DOES_NOT})"
        return Answer(asked, "undecided", between, ours, mine.cores)
    return Answer(asked, "holds", "", ours, mine.cores)


def _of_ratio(asked: Question, points: Sequence[Point]) -> Answer | None:
    claim = asked.claim
    of_new, of_base = (_by_cores(asked, label, points) for label in asked.labels)
    if claim.base_cores is None:
        common = of_new.keys() & of_base.keys()
        of_new, of_base = ({n: side[n] for n in common} for side in (of_new, of_base))
    wanted, wanted_base = claim.counts
    new, base = _nearest(of_new, wanted), _nearest(of_base, wanted_base)
    if new is None or base is None or new is base:
        return None
    ratio = Ratio.of(new, base)
    spread = f" ({interval(ratio)})" if ratio.low < ratio.high else ""
    ours = f"{times(ratio.value)}{spread}{_marks([new, base])}"
    if (new.key.cores, base.key.cores) != claim.counts:
        return Answer(asked, CANNOT, f"needs {max(claim.counts)} cores", ours, new.key.cores)
    assert claim.ratio is not None
    low, high = claim.ratio / (1 + claim.tolerance), claim.ratio * (1 + claim.tolerance)
    why = f"holds from {times(low)} to {times(high)}"
    verdict: Verdict = "undecided"
    if low <= ratio.low and ratio.high <= high:
        verdict = "holds"
    elif ratio.high < low or ratio.low > high:
        verdict = "does not hold"
        why += ", the direction is the same" * ((ratio.value > 1) == (claim.ratio > 1))
    return Answer(asked, verdict, why, ours, new.key.cores)


def _by_cores(asked: Question, label: str, points: Sequence[Point]) -> dict[int, Point]:
    return {
        point.key.cores: point
        for point in points
        if point.key.filesystem == label and asked.about(point.key)
    }


def _nearest(points: dict[int, Point], cores: int) -> Point | None:
    """The point of the most cores up to those that the paper had."""
    return points.get(max((n for n in points if n <= cores), default=0))


def _marks(points: Sequence[Point]) -> str:
    """What to know of figures: they are simulated, of single repetitions, or disturbed."""
    disturbed, every = sum(p.disturbed for p in points), sum(p.n for p in points)
    simulated = any(p.simulated for p in points)
    marks = ["simulated"] if simulated else []
    marks += ["one repetition"] if not simulated and any(p.n == 1 for p in points) else []
    marks += [f"other load disturbed {disturbed} of {every} repetitions"] if disturbed else []
    return f" ({'; '.join(marks)})" if marks else ""
