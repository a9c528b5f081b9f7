# SPDX-License-Identifier: GPL-2.0-only
"""The tests of a comparison, for formats with passes and failures."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from fscale.analysis.compare import wording
from fscale.analysis.compare.model import Comparison, Judgement, Subject
from fscale.analysis.compare.pairs import match_cells
from fscale.analysis.compare.sides import Sides

Outcome = Literal["passed", "worse", "broken", "lost", "undecided", "missing"]


@dataclass(frozen=True)
class VerdictTest:
    """A test: its subject, what of it was judged, the outcome, and a line that describes it."""

    subject: str
    what: str
    """a metric, broken, lost or mended, the change of a lock, or `all` that a side lacks"""
    outcome: Outcome
    text: str
    remark: str = ""
    judgement: Judgement | None = None
    seconds: float | None = None
    """wall time of the repetitions of both sides, with the first test that they are judged by"""


def measured_seconds(sides: Sides) -> dict[Subject, float]:
    """The wall time of the repetitions of each point, of both sides; points without are absent."""
    matched = match_cells(sides.base_cells, sides.new_cells)
    times = {
        subject: sum(cell.wall_seconds or 0 for side in cells for cell in side)
        for subject, cells in matched.items()
    }
    return {subject: seconds for subject, seconds in times.items() if seconds}


def verdict_tests(
    comparison: Comparison, seconds: Mapping[Subject, float] | None = None
) -> Iterator[VerdictTest]:
    """The tests: points that broke or were mended, judgements, locks, and what a side lacks.

    `seconds` are those of `measured_seconds`. Judgements of a point share its repetitions, so the
    first has the time, and the sum over all tests is the time of the measurement.
    """
    left = dict(seconds or {})
    for point in comparison.health:
        yield VerdictTest(
            point.subject.name,
            point.kind,
            "passed" if point.kind == "mended" else point.kind,
            wording.health(point),
            seconds=left.pop(point.subject, None),
        )
    for judgement in comparison.judgements:
        yield VerdictTest(
            judgement.subject.name,
            judgement.metric,
            _outcome(judgement),
            f"{judgement.verdict}: {wording.judgement_line(judgement)}",
            wording.remark(judgement),
            judgement,
            left.pop(judgement.subject, None),
        )
    for lock in comparison.locks:
        what = f"{lock.kind} {lock.lock}"
        yield VerdictTest(lock.subject.name, what, "passed", wording.lock_change(lock))
    for side, missing in (("BASE", comparison.missing_in_base), ("NEW", comparison.missing_in_new)):
        for name in missing:
            yield VerdictTest(name, "all", "missing", f"missing in {side}")


def _outcome(judgement: Judgement) -> Outcome:
    if judgement.worse:
        return "worse"
    return "undecided" if judgement.verdict == "undecided" else "passed"
