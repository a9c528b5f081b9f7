# SPDX-License-Identifier: GPL-2.0-only
"""Judges simulated counts: whether an operation executes more, or shares more cache lines.

A count hardly varies from boot to boot, so a few repetitions are enough and no significance test is
needed: a side is worse if all of its boots lie beyond all boots of the other side, by a margin and
by twice the spread of the boots of one side. docs/design/simulator-gate.md has the error rate
of this rule.
"""

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fscale.analysis.compare.health import health
from fscale.analysis.compare.model import Comparison, Judgement, Sample, Subject, Verdict
from fscale.analysis.compare.pairs import Points, match_cells
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import Sides
from fscale.analysis.compare.warnings import IDENTICAL
from fscale.analysis.metrics import COUNT, INSTRUCTIONS
from fscale.model.errors import FscaleError
from fscale.model.files import printable
from fscale.model.results import Cell
from fscale.model.simulation import SHARED, HotLine, SimulatedWindow

SHARED_LINES = COUNT + "shared-lines"
Takers = Mapping[str, float]
"""what takes cache lines -> lines per operation"""

# A workload with up to this many lines per operation shares nothing: timer ticks move some.
UNSHARED = 0.2
# An operation that begins to take one line on four cores moves it three times out of four.
NEWLY = 0.5
# The lines that new names take, less those that other names no longer take, must be at least this
# part of the former: a renamed function takes no additional lines.
GAINED = 0.5
SPREADS = 2.0
MIN_SEEDS = 3
# An object of the heap lies elsewhere in each boot. If its size is no multiple of a cache line, its
# members share a line in some boots and not in others, so that a function takes one line more in,
# say, every other boot. Three such boots against three others are 1 in 64, five are 1 in 1,024, so
# that with fewer than HEAP_SEEDS boots less than PLACED lines per operation are no finding there.
HEAP_SEEDS = 5
PLACED = 2.0
LINES = 3
USERS = 3
FUNCTIONS = 5
# A line is reported if it moves at least this many times more per operation.
MIN_GAIN = 0.1


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


@dataclass(frozen=True)
class Boots:
    """The values of a metric per operation: the median of the windows, for each boot."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median of the boots."""
        return statistics.median(self.values)

    @property
    def spread(self) -> float:
        """The difference between the largest and the smallest boot."""
        return max(self.values) - min(self.values)


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
    one, other = _boots(metric, base), _boots(metric, new)
    bound = max(metric.part * one.median, metric.least, SPREADS * max(one.spread, other.spread))
    verdict: Verdict = "same"
    if _gap(one, other) > bound:
        verdict = "more"
    elif _gap(other, one) > bound:
        verdict = "less"
    lines: list[str] = []
    if metric.name == INSTRUCTIONS and verdict != "same":
        lines = _describe_instructions(base, new)
    if metric.name == SHARED_LINES:
        newly = _new_takers(base, new)
        if newly or max(one.values) <= UNSHARED <= NEWLY <= min(other.values):
            verdict = "newly shared"
        if verdict in ("more", "newly shared"):
            lines = _describe_growth(base, new, newly)
        if verdict == "newly shared" and _gap(one, other) <= bound:
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


def _gap(less: Boots, more: Boots) -> float:
    """The gap between the largest boot of one side and the smallest of the other."""
    return min(more.values) - max(less.values)


def _new_takers(base: Sequence[Cell], new: Sequence[Cell]) -> list[str]:
    """Static objects and functions that took no lines before and do now, the most first.

    If an operation already shares many lines, one more does not show in their sum, but it does
    here.
    """
    new_takers: dict[str, float] = {}
    few = min(len(base), len(new)) < HEAP_SEEDS
    for takers, least in (
        (_objects, 0.0),
        (_functions_on_static, 0.0),
        (_functions, PLACED if few else 0.0),
    ):
        before, after = [takers(c) for c in base], [takers(c) for c in new]
        gained = _find_appeared(before, after)
        total = sum(gained.values())
        if total >= least and total - _lost_lines(before, after) >= GAINED * total:
            new_takers |= gained
    return sorted(new_takers, key=lambda name: -new_takers[name])


def _find_appeared(before: Sequence[Takers], after: Sequence[Takers]) -> dict[str, float]:
    """The names that took no lines in any boot before, but do in all after: lines per operation."""
    return {
        name: other.median
        for name, one, other in _pair_takers(before, after)
        if max(one.values) <= UNSHARED <= NEWLY <= min(other.values)
        and _gap(one, other) > SPREADS * max(one.spread, other.spread)
    }


def _lost_lines(before: Sequence[Takers], after: Sequence[Takers]) -> float:
    """The lines per operation that names took before and clearly no longer take."""
    return sum(
        one.median - other.median
        for _, one, other in _pair_takers(before, after)
        if _gap(other, one) > SPREADS * max(one.spread, other.spread)
    )


def _pair_takers(
    before: Sequence[Takers], after: Sequence[Takers]
) -> Iterator[tuple[str, Boots, Boots]]:
    """The lines that each name takes in all boots of both sides."""
    for name in {name for boot in (*before, *after) for name in boot}:
        one, other = (
            Boots(tuple(boot.get(name, 0.0) for boot in boots)) for boots in (before, after)
        )
        yield name, one, other


def _objects(cell: Cell) -> Takers:
    """How often the lines of each static object move per operation."""
    return _per_operation(cell, lambda line: [(name, line.moves()) for name in line.names])


def _functions(cell: Cell) -> Takers:
    """How many lines each function takes per operation."""
    return _per_operation(cell, lambda line: [(u.function, u.reads + u.writes) for u in line.users])


def _functions_on_static(cell: Cell) -> Takers:
    """How many lines of static objects each function takes per operation."""
    return _per_operation(
        cell,
        lambda line: [(u.function, u.reads + u.writes) for u in line.users if line.names],
    )


def _per_operation(cell: Cell, of: Callable[[HotLine], Iterable[tuple[str, int]]]) -> Takers:
    assert cell.simulation is not None
    totals: Counter[str] = Counter()
    for line in cell.simulation.lines:
        for name, moves in of(line):
            totals[name] += moves
    ops = cell.simulation.total("ops")
    return {name: moves / ops for name, moves in totals.items()}


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


def _boots(metric: CountRule, cells: Sequence[Cell]) -> Boots:
    return Boots(
        tuple(
            statistics.median(metric.of(window) / window.ops for window in cell.simulation.windows)
            for cell in cells
            if cell.simulation is not None
        )
    )


def _describe_growth(base: Sequence[Cell], new: Sequence[Cell], newly: Sequence[str]) -> list[str]:
    """Describe lines and the functions that take them: new ones first, then by gain."""
    before, after = _moves(base), _moves(new)
    gains = {name: moves - before.get(name, (0.0, None))[0] for name, (moves, _) in after.items()}

    def rank(name: str) -> tuple[bool, float]:
        line = after[name][1]
        fresh = {*line.names, *(user.function for user in line.users)} & set(newly)
        return not fresh, -gains[name]

    descriptions = []
    for name in sorted(gains, key=rank)[:LINES]:
        if gains[name] < MIN_GAIN:
            continue
        line = after[name][1]
        # New functions come first.
        users = sorted(line.users, key=lambda user: user.function not in newly)[:USERS]
        shown = ", ".join(f"{u.function} ({'writes' if u.writes else 'reads'})" for u in users)
        descriptions.append(f"{line.object}, {gains[name]:.2f} more per operation, by {shown}")
    return descriptions


def _moves(cells: Sequence[Cell]) -> Mapping[str, tuple[float, HotLine]]:
    """Transfers per operation of each object, and one of its lines.

    An object without a name is identified by the function that takes it, because its address is
    valid in one boot only.
    """
    simulations = [cell.simulation for cell in cells if cell.simulation]
    ops = sum(simulation.total("ops") for simulation in simulations)
    transfers: dict[str, tuple[float, HotLine]] = {}
    for line in (line for simulation in simulations for line in simulation.lines):
        known = ", ".join(line.names) or line.members
        name = known or next((user.function for user in line.users), "?")
        moved = line.moves() / ops
        transfers[name] = (transfers.get(name, (0.0, line))[0] + moved, line)
    return transfers
