# SPDX-License-Identifier: GPL-2.0-only
"""Judges simulated counts: whether an operation executes more, or shares more cache lines.

A count hardly varies from boot to boot, so a few repetitions are enough and no significance test is
needed: a side is worse if all of its boots lie beyond all boots of the other side, by a margin and
by twice the spread of the boots of one side. docs/design/simulator-gate.md has the error rate
of this rule.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fscale.analysis.compare.health import health
from fscale.analysis.compare.model import (
    Comparison,
    Judgement,
    Sample,
    Sharing,
    Subject,
    Verdict,
)
from fscale.analysis.compare.pairs import Points, match_cells
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sharing import SPREADS, Boots, boots, gap, judge_lines
from fscale.analysis.compare.sides import Sides
from fscale.analysis.compare.warnings import IDENTICAL
from fscale.analysis.metrics import COUNT, INSTRUCTIONS
from fscale.model.errors import FscaleError
from fscale.model.files import printable
from fscale.model.results import Cell
from fscale.model.simulation import SHARED, SimulatedWindow

SHARED_LINES = COUNT + "shared-lines"
MIN_SEEDS = 3
FUNCTIONS = 5


@dataclass(frozen=True)
class CountRule:
    """A judged metric, with the change that is not a finding: `part`, a fraction, and `least`."""

    name: str
    of: Callable[[SimulatedWindow], float]
    part: float
    least: float


METRICS = (
    CountRule(INSTRUCTIONS, lambda window: window.instructions, 0.01, 20.0),
    CountRule(
        SHARED_LINES,
        lambda window: sum(window.transfers.get(kind, 0) for kind in SHARED),
        0.1,
        0.25,
    ),
)


def compare(sides: Sides, matched: Points) -> Comparison:
    """Judge the cost of an operation in NEW against BASE, from their matched cells.

    Raises:
        FscaleError: a point has too few boots, or no point can be judged.
    """
    points = _scored_points(matched)
    judgements = _judge_points(points)
    changes = health(matched, lost_in_new=False)
    not_judged = [
        f"{subject.name} is not judged because it is broken on BASE: {broken[0].reason}"
        for subject, (base, _) in points.items()
        if (broken := _broken_cells(base))
    ]
    if not judgements and not any(point.kind == "broken" for point in changes):
        raise FscaleError(
            f"no point could be judged: {'; '.join(not_judged) or 'the sides have none in common'}"
        )
    lacking = [
        sorted(
            subject.name for subject, both in points.items() if not both[side] and both[1 - side]
        )
        for side in (0, 1)
    ]
    return Comparison(
        policy="counted",
        base=sides.base,
        new=sides.new,
        settings=Settings(metrics=("count",)),
        tests=len(judgements),
        repetitions_needed=MIN_SEEDS,
        judgements=judgements,
        health=changes,
        locks=[],
        missing_in_base=lacking[0],
        missing_in_new=lacking[1],
        warnings=[
            "both sides are simulated: counts per operation are judged, rates are not",
            *([IDENTICAL] if sides.identical else []),
            *(printable(text) for text in not_judged),
        ],
    )


def judge(base: Sequence[Cell], new: Sequence[Cell]) -> list[Judgement]:
    """Judge all points that are good on both sides; FscaleError if one has too few boots."""
    return _judge_points(_scored_points(match_cells(base, new)))


def _judge_points(points: Points) -> list[Judgement]:
    ordered = sorted(points.items(), key=lambda item: item[0].name)
    return [judgement for subject, cells in ordered for judgement in _judge_point(subject, *cells)]


def _scored_points(points: Points) -> Points:
    """The points without profiled cells."""
    scored = {
        subject: (_scored_cells(base), _scored_cells(new))
        for subject, (base, new) in points.items()
    }
    return {subject: cells for subject, cells in scored.items() if any(cells)}


def _scored_cells(cells: Iterable[Cell]) -> list[Cell]:
    return [c for c in cells if c.key.profile is None]


def _judge_point(subject: Subject, base: Sequence[Cell], new: Sequence[Cell]) -> list[Judgement]:
    if _broken_cells(base) or _broken_cells(new):
        return []
    good = [[c for c in side if c.status == "ok" and c.simulation] for side in (base, new)]
    fewest = min(map(len, good))
    if fewest and fewest < MIN_SEEDS:
        raise FscaleError(
            f"{subject.name} has {fewest} good boots on one side, but the gate needs "
            f"{MIN_SEEDS}; give --seeds {MIN_SEEDS} or more"
        )
    return [_judge_rule(subject, metric, *good) for metric in METRICS] if fewest else []


def _broken_cells(cells: Iterable[Cell]) -> list[Cell]:
    return [cell for cell in cells if cell.status not in ("ok", "skipped")]


def _judge_rule(
    subject: Subject, metric: CountRule, base: Sequence[Cell], new: Sequence[Cell]
) -> Judgement:
    one, other = boots(metric.of, base), boots(metric.of, new)
    bound = max(metric.part * one.median, metric.least, SPREADS * max(one.spread, other.spread))
    verdict: Verdict = "same"
    if gap(one, other) > bound:
        verdict = "more"
    elif gap(other, one) > bound:
        verdict = "less"
    lines: list[str] = []
    sharing: Sharing | None = None
    if metric.name == INSTRUCTIONS and verdict != "same":
        lines = _describe_instructions(base, new)
    if metric.name == SHARED_LINES:
        found = judge_lines(verdict, one, other, base, new)
        verdict, sharing, lines = found.verdict, found.sharing, found.reasons
        if verdict == "newly shared" and gap(one, other) <= bound:
            lines.append("all lines together grew by less than the boots of a side differ")
    return Judgement(
        subject=subject,
        metric=metric.name,
        base=_sample(base, one),
        new=_sample(new, other),
        interleaved=False,
        margin=metric.part,
        bound=bound,
        verdict=verdict,
        ratio=other.median / one.median if one.median else None,
        reason=printable("; ".join(lines)),
        sharing=sharing,
    )


def _sample(cells: Sequence[Cell], side: Boots) -> Sample:
    numbers = [cell.key.repetition for cell in cells]
    return Sample(
        filesystem=cells[0].key.filesystem,
        values=dict(zip(numbers, side.values, strict=True)),
        median=side.median,
        cv=None,
        outliers=[],
    )


def _describe_instructions(base: Sequence[Cell], new: Sequence[Cell]) -> list[str]:
    """The functions whose own instructions changed most; a renamed function appears twice."""
    before, after = _instructions(base), _instructions(new)
    names = before.keys() | after.keys()
    changes = {name: after.get(name, 0.0) - before.get(name, 0.0) for name in names}
    first = sorted(changes, key=lambda name: (-abs(changes[name]), name))[:FUNCTIONS]
    text = ", ".join(f"{name} {changes[name]:+.0f}" for name in first if round(changes[name]))
    return [text] if text else []


def _instructions(cells: Sequence[Cell]) -> dict[str, float]:
    """Instructions of each function per operation, over all boots."""
    executed: Counter[str] = Counter()
    simulations = [cell.simulation for cell in cells if cell.simulation]
    for one in (one for simulation in simulations for one in simulation.code):
        executed[one.function] += one.instructions
    ops = sum(simulation.total("ops") for simulation in simulations)
    return {name: n / ops for name, n in executed.items()}
