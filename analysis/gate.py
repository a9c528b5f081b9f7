# SPDX-License-Identifier: GPL-2.0-only
"""Is more done, or more shared, for an operation? Simulated counts of two sides, judged.

A count hardly varies from boot to boot, so that few repetitions do and no test of significance is
needed: a side is worse where all of its boots lie beyond all of the other's, by a margin and by
twice what boots of one side differ. docs/simulator.md says how often that errs.
"""

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from fscale.model.errors import FscaleError
from fscale.model.results import Cell
from fscale.model.simulation import SHARED, HotLine, SimulatedWindow

Verdict = Literal["more", "newly shared", "broken", "same", "less", "not judged"]
Subject = tuple[str, str, int]
"""workload, file system, cores"""
Takers = Mapping[str, float]
"""what takes cache lines, and how many for an operation"""

# Up to so many lines an operation a workload shares nothing: timer ticks move some.
UNSHARED = 0.2
# An operation that begins to take one line on four cores moves it three times in four.
NEWLY = 0.5
# Of the lines that new names take, at least this part must be more than what other names take
# less: a function that is only called otherwise takes none more.
GAINED = 0.5
SPREADS = 2.0
LEAST_SEEDS = 3
LINES = 3
USERS = 3
FUNCTIONS = 5
# What moves by less than this more for an operation explains nothing.
TOLD = 0.1


@dataclass(frozen=True)
class Metric:
    """What is judged, with the change that is no finding: a part of it, and an absolute one."""

    name: str
    of: Callable[[SimulatedWindow], float]
    part: float
    least: float


METRICS = (
    Metric("instructions", lambda window: window.instructions, 0.01, 20.0),
    Metric(
        "shared lines",
        lambda window: sum(window.transfers.get(kind, 0) for kind in SHARED),
        0.1,
        0.25,
    ),
)


@dataclass(frozen=True)
class Side:
    """A metric an operation: the median of the windows of each boot."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """Of the boots."""
        return statistics.median(self.values)

    @property
    def spread(self) -> float:
        """From the least boot to the most."""
        return max(self.values) - min(self.values)


@dataclass(frozen=True)
class Judgement:
    """A metric of a point on both sides; a broken point has no sides."""

    subject: Subject
    metric: str
    verdict: Verdict
    base: Side | None = None
    new: Side | None = None
    bound: float = 0.0
    """how far all boots must lie beyond the other side's"""
    lines: tuple[str, ...] = ()
    reason: str = ""

    @property
    def name(self) -> str:
        """The point."""
        return point_name(self.subject)

    @property
    def bad(self) -> bool:
        """Whether it fails the gate."""
        return self.verdict in ("more", "newly shared", "broken")

    def __str__(self) -> str:
        if self.base is None or self.new is None:
            return f"{self.name}: {self.verdict}: {self.reason}"
        change = f"{self.base.median:.4g} -> {self.new.median:.4g} an operation"
        text = f"{self.name}: {self.metric} {change}: {self.verdict}"
        return f"{text}; {'; '.join(self.lines)}" if self.lines else text


def point_name(subject: Subject) -> str:
    """A point for people."""
    workload, filesystem, cores = subject
    return f"{workload} {filesystem} x{cores} (simulated)"


def judge(base: Iterable[Cell], new: Iterable[Cell]) -> list[Judgement]:
    """All points of both sides; FscaleError where one has too few boots."""
    sides = _points(base), _points(new)
    names = [{subject[1] for subject in side} for side in sides]
    if names[0] != names[1] and len(names[0]) == len(names[1]) == 1:
        # One file system against another: that is what is judged.
        (only,) = names[0]
        sides = sides[0], {(w, only, n): cells for (w, _, n), cells in sides[1].items()}
    found: list[Judgement] = []
    for subject in sorted(sides[0].keys() | sides[1].keys()):
        found += _point(subject, sides[0].get(subject, []), sides[1].get(subject, []))
    return found


def _points(cells: Iterable[Cell]) -> dict[Subject, list[Cell]]:
    found: dict[Subject, list[Cell]] = defaultdict(list)
    for cell in cells:
        if cell.key.side is None and cell.key.profile is None:
            found[cell.key.workload, cell.key.filesystem, cell.key.cores].append(cell)
    return found


def _point(subject: Subject, base: Sequence[Cell], new: Sequence[Cell]) -> list[Judgement]:
    bad = [[c for c in side if c.status not in ("ok", "skipped")] for side in (base, new)]
    if bad[0]:
        reason = f"it is broken on BASE: {_reason(bad[0][0])}"
        return [Judgement(subject, "health", "not judged", reason=reason)]
    if bad[1]:
        return [Judgement(subject, "health", "broken", reason=_reason(bad[1][0]))]
    good = [[c for c in side if c.status == "ok" and c.simulation] for side in (base, new)]
    if fewest := min(map(len, good)):
        if fewest < LEAST_SEEDS:
            raise FscaleError(
                f"{point_name(subject)} has {fewest} good boots on one side; the gate needs "
                f"{LEAST_SEEDS}: give --seeds {LEAST_SEEDS} or more"
            )
        return [_metric(subject, metric, *good) for metric in METRICS]
    return []


def _reason(cell: Cell) -> str:
    return cell.reason or cell.status


def _metric(
    subject: Subject, metric: Metric, base: Sequence[Cell], new: Sequence[Cell]
) -> Judgement:
    one, other = _side(metric, base), _side(metric, new)
    bound = max(metric.part * one.median, metric.least, SPREADS * max(one.spread, other.spread))
    verdict: Verdict = "same"
    if _apart(one, other) > bound:
        verdict = "more"
    elif _apart(other, one) > bound:
        verdict = "less"
    lines: tuple[str, ...] = ()
    if metric.name == "instructions" and verdict != "same":
        lines = tuple(_changed(base, new))
    if metric.name == "shared lines":
        newly = _newly(base, new)
        if newly or max(one.values) <= UNSHARED <= NEWLY <= min(other.values):
            verdict = "newly shared"
        if verdict in ("more", "newly shared"):
            lines = tuple(_grown(base, new, newly))
    return Judgement(subject, metric.name, verdict, one, other, bound, lines)


def _apart(less: Side, more: Side) -> float:
    """By how much all boots of one side lie above all of the other's."""
    return min(more.values) - max(less.values)


def _newly(base: Sequence[Cell], new: Sequence[Cell]) -> list[str]:
    """Static objects and functions that took no lines and take some now, the most first.

    Where an operation shares many lines already, one more is lost in their sum, but not here.
    """
    found: dict[str, float] = {}
    for takers in (_objects, _functions):
        before, after = [takers(c) for c in base], [takers(c) for c in new]
        gained = _appeared(before, after)
        if sum(gained.values()) - _lost(before, after) >= GAINED * sum(gained.values()):
            found |= gained
    return sorted(found, key=lambda name: -found[name])


def _appeared(before: Sequence[Takers], after: Sequence[Takers]) -> dict[str, float]:
    """The names that took no lines in any boot before and do in all after: lines an operation."""
    return {
        name: other.median
        for name, one, other in _compared(before, after)
        if max(one.values) <= UNSHARED <= NEWLY <= min(other.values)
        and _apart(one, other) > SPREADS * max(one.spread, other.spread)
    }


def _lost(before: Sequence[Takers], after: Sequence[Takers]) -> float:
    """Lines an operation that names took before and surely do not any more."""
    return sum(
        one.median - other.median
        for _, one, other in _compared(before, after)
        if _apart(other, one) > SPREADS * max(one.spread, other.spread)
    )


def _compared(
    before: Sequence[Takers], after: Sequence[Takers]
) -> Iterator[tuple[str, Side, Side]]:
    """What each name takes on both sides, of all boots."""
    for name in {name for boot in (*before, *after) for name in boot}:
        one, other = (
            Side(tuple(boot.get(name, 0.0) for boot in boots)) for boots in (before, after)
        )
        yield name, one, other


def _objects(cell: Cell) -> Takers:
    """How many lines that a static object is on move for an operation."""
    return _an_operation(cell, lambda line: [(name, line.moves()) for name in line.names])


def _functions(cell: Cell) -> Takers:
    """How many lines a function takes for an operation."""
    return _an_operation(cell, lambda line: [(u.function, u.reads + u.writes) for u in line.users])


def _an_operation(cell: Cell, of: Callable[[HotLine], Iterable[tuple[str, int]]]) -> Takers:
    assert cell.simulation is not None
    found: Counter[str] = Counter()
    for line in cell.simulation.lines:
        for name, moves in of(line):
            found[name] += moves
    ops = cell.simulation.total("ops")
    return {name: moves / ops for name, moves in found.items()}


def _changed(base: Sequence[Cell], new: Sequence[Cell]) -> list[str]:
    """The functions whose own instructions changed most, in words; what is renamed shows as two."""
    before, after = _work(base), _work(new)
    names = before.keys() | after.keys()
    changes = {name: after.get(name, 0.0) - before.get(name, 0.0) for name in names}
    first = sorted(changes, key=lambda name: (-abs(changes[name]), name))[:FUNCTIONS]
    told = ", ".join(f"{name} {changes[name]:+.0f}" for name in first if round(changes[name]))
    return [told] if told else []


def _work(cells: Sequence[Cell]) -> dict[str, float]:
    """Instructions of each function for an operation, over all boots."""
    found: Counter[str] = Counter()
    simulations = [cell.simulation for cell in cells if cell.simulation]
    for one in (one for simulation in simulations for one in simulation.code):
        found[one.function] += one.instructions
    ops = sum(simulation.total("ops") for simulation in simulations)
    return {name: n / ops for name, n in found.items()}


def _side(metric: Metric, cells: Sequence[Cell]) -> Side:
    return Side(
        tuple(
            statistics.median(metric.of(window) / window.ops for window in cell.simulation.windows)
            for cell in cells
            if cell.simulation is not None
        )
    )


def _grown(base: Sequence[Cell], new: Sequence[Cell], newly: Sequence[str]) -> list[str]:
    """Lines in words, with the functions that take them: the new ones, then what moves more."""
    before, after = _moves(base), _moves(new)
    gains = {name: moves - before.get(name, (0.0, None))[0] for name, (moves, _) in after.items()}

    def rank(name: str) -> tuple[bool, float]:
        line = after[name][1]
        fresh = {*line.names, *(user.function for user in line.users)} & set(newly)
        return not fresh, -gains[name]

    found = []
    for name in sorted(gains, key=rank)[:LINES]:
        if gains[name] < TOLD:
            continue
        line = after[name][1]
        # Who is new comes first.
        users = sorted(line.users, key=lambda user: user.function not in newly)[:USERS]
        told = ", ".join(f"{u.function} ({'writes' if u.writes else 'reads'})" for u in users)
        found.append(f"{line.object}, {gains[name]:.2f} more an operation, by {told}")
    return found


def _moves(cells: Sequence[Cell]) -> Mapping[str, tuple[float, HotLine]]:
    """Transfers an operation of each object, and one of its lines.

    What has no name is known by who takes it: its address is that of one boot.
    """
    simulations = [cell.simulation for cell in cells if cell.simulation]
    ops = sum(simulation.total("ops") for simulation in simulations)
    found: dict[str, tuple[float, HotLine]] = {}
    for line in (line for simulation in simulations for line in simulation.lines):
        known = ", ".join(line.names) or line.members
        name = known or next((user.function for user in line.users), "?")
        moved = line.moves() / ops
        found[name] = (found.get(name, (0.0, line))[0] + moved, line)
    return found
