# SPDX-License-Identifier: GPL-2.0-only
"""Judges growth of shared cache lines: which names it has, and whether the layout alone made it.

A line moves because a word of it is shared, or because different words of it lie together. Which
words are shared does not depend on where objects lie (docs/design/simulator.md).
"""

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fscale.analysis.compare.model import Sharing, Verdict
from fscale.model.results import Cell
from fscale.model.simulation import ANOTHER, HotLine, SimulatedWindow

Takers = Mapping[str, float]
"""what takes cache lines, or words of them -> how many per operation"""
Places = Callable[[HotLine], Iterable[tuple[str, int]]]
"""what takes a line, with how often"""

# A workload with up to this many lines per operation shares nothing: timer ticks move some.
UNSHARED = 0.2
# An operation that begins to take one line on four cores moves it three times out of four.
NEWLY = 0.5
# The lines that new names take, less those that other names no longer take, must be at least this
# part of the former: a renamed function takes no additional lines. Of lines that grew by their sum,
# so large a part must be words for these to be the reason.
GAINED = 0.5
SPREADS = 2.0
# An object of the heap lies elsewhere in each boot, so that its members, or it and its neighbour,
# share a line in, say, every other boot. Three such boots against three others are 1 in 64, five
# are 1 in 1,024: with fewer boots what only a layout of the heap shares is not a finding.
LAYOUT_SEEDS = 5
# In results without words, new functions that gain so many lines together are more than that.
PLACED = 2.0
LINES = 3
USERS = 3
# A line is reported if it moves at least this many times more per operation.
MIN_GAIN = 0.1
_LAYOUT: Sharing = "only this layout"


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


def gap(less: Boots, more: Boots) -> float:
    """The gap between the largest boot of one side and the smallest of the other."""
    return min(more.values) - max(less.values)


def boots(of: Callable[[SimulatedWindow], float], cells: Sequence[Cell]) -> Boots:
    """A count of a window, per operation, in each boot."""
    return Boots(
        tuple(
            statistics.median(of(window) / window.ops for window in cell.simulation.windows)
            for cell in cells
            if cell.simulation is not None
        )
    )


@dataclass(frozen=True)
class Growth:
    """More shared lines on NEW."""

    verdict: Verdict
    names: Sequence[str]
    """static objects and functions that took no lines before, the most first"""
    lines: float
    """lines per operation that such functions, or all, gained"""
    sharing: Sharing | None
    """None: words were not counted"""
    static: bool
    """whether it is, for the most part, in lines of static objects, which each boot has alike"""

    @property
    def by_chance(self) -> bool:
        """Whether the places that objects of the heap got in some boots may have made it."""
        unknown = self.sharing is None and bool(self.names) and self.lines < PLACED
        return (self.sharing == _LAYOUT or unknown) and not self.static


@dataclass(frozen=True)
class Finding:
    """The verdict on shared lines, and what describes it."""

    verdict: Verdict
    sharing: Sharing | None
    reasons: list[str]


def judge_lines(
    verdict: Verdict, one: Boots, other: Boots, base: Sequence[Cell], new: Sequence[Cell]
) -> Finding:
    """Judge the lines by their names, and by their sum, which has a verdict of its own."""
    growths = [growth for growth in [_appeared(base, new)] if growth]
    if max(one.values) <= UNSHARED <= NEWLY <= min(other.values):
        growths.append(_summed("newly shared", one, other, base, new))
    elif verdict == "more":
        growths.append(_summed(verdict, one, other, base, new))
    few = min(len(base), len(new)) < LAYOUT_SEEDS
    for growth in growths:
        if not (few and growth.by_chance):
            return Finding(growth.verdict, growth.sharing, _describe(base, new, growth))
    if not growths:
        return Finding(verdict, None, [])
    remark = f"fewer than {LAYOUT_SEEDS} boots per side do not tell it from chance"
    return Finding("same", growths[0].sharing, [*_describe(base, new, growths[0]), remark])


def _appeared(base: Sequence[Cell], new: Sequence[Cell]) -> Growth | None:
    """Static objects and functions that took no lines before and do now.

    If an operation already shares many lines, one more does not show in their sum, but it does
    here. None where no name is new, or where other names lost as many lines.
    """
    names: dict[str, float] = {}
    words: dict[str, float] = {}
    static, total = False, 0.0
    for on_static, lines, words_of in (
        (True, _object_lines, _object_words),
        (True, _static(_function_lines), _static(_function_words)),
        (False, _function_lines, _function_words),
    ):
        before, after = _takers(lines, base), _takers(lines, new)
        gained = _find_appeared(before, after)
        total = sum(gained.values())
        if not gained or total - _lost_lines(before, after) < GAINED * total:
            continue
        names |= gained
        static |= on_static
        words |= _find_appeared(_takers(words_of, base), _takers(words_of, new))
    if not names:
        return None
    ordered = sorted(names, key=lambda name: -names[name])
    same = bool(words.keys() & names.keys())
    return Growth("newly shared", ordered, total, _sharing(same, base, new), static)


def _summed(
    verdict: Verdict, one: Boots, other: Boots, base: Sequence[Cell], new: Sequence[Cell]
) -> Growth:
    """All lines together grew."""
    lines = other.median - one.median

    def gained(of: Callable[[Sequence[Cell]], float]) -> bool:
        return of(new) - of(base) >= GAINED * lines

    return Growth(
        verdict,
        (),
        lines,
        _sharing(gained(lambda cells: boots(lambda w: w.words or 0, cells).median), base, new),
        gained(
            lambda cells: statistics.median(
                sum(boot.values()) for boot in _takers(_line_of_static, cells)
            )
        ),
    )


def _sharing(same_word: bool, base: Sequence[Cell], new: Sequence[Cell]) -> Sharing | None:
    simulations = [cell.simulation for cell in (*base, *new) if cell.simulation]
    if any(window.words is None for one in simulations for window in one.windows):
        return None
    return "same word" if same_word else _LAYOUT


def _find_appeared(before: Sequence[Takers], after: Sequence[Takers]) -> dict[str, float]:
    """The names that took nothing in any boot before, but do in all after: how much."""
    return {
        name: other.median
        for name, one, other in _pair_takers(before, after)
        if max(one.values) <= UNSHARED <= NEWLY <= min(other.values)
        and gap(one, other) > SPREADS * max(one.spread, other.spread)
    }


def _lost_lines(before: Sequence[Takers], after: Sequence[Takers]) -> float:
    """The lines per operation that names took before and clearly no longer take."""
    return sum(
        one.median - other.median
        for _, one, other in _pair_takers(before, after)
        if gap(other, one) > SPREADS * max(one.spread, other.spread)
    )


def _pair_takers(
    before: Sequence[Takers], after: Sequence[Takers]
) -> Iterator[tuple[str, Boots, Boots]]:
    """What each name takes in all boots of both sides."""
    for name in {name for boot in (*before, *after) for name in boot}:
        one, other = (
            Boots(tuple(boot.get(name, 0.0) for boot in boots)) for boots in (before, after)
        )
        yield name, one, other


def _object_lines(line: HotLine) -> Iterable[tuple[str, int]]:
    """How often the line of each static object moves."""
    return [(name, line.moves()) for name in line.names]


def _object_words(line: HotLine) -> Iterable[tuple[str, int]]:
    return [(name, line.words.get(name, 0)) for name in line.names]


def _function_lines(line: HotLine) -> Iterable[tuple[str, int]]:
    return [(user.function, user.reads + user.writes) for user in line.users]


def _function_words(line: HotLine) -> Iterable[tuple[str, int]]:
    return [(user.function, user.words) for user in line.users]


def _line_of_static(line: HotLine) -> Iterable[tuple[str, int]]:
    return [("", line.moves())] if line.names else []


def _static(places: Places) -> Places:
    """The same in lines of static objects only."""
    return lambda line: places(line) if line.names else []


def _takers(places: Places, cells: Sequence[Cell]) -> list[Takers]:
    """What each name takes per operation, in each boot."""
    return [_per_operation(cell, places) for cell in cells]


def _per_operation(cell: Cell, places: Places) -> Takers:
    assert cell.simulation is not None
    totals: Counter[str] = Counter()
    for line in cell.simulation.lines:
        for name, moves in places(line):
            totals[name] += moves
    ops = cell.simulation.total("ops")
    return {name: moves / ops for name, moves in totals.items()}


def _describe(base: Sequence[Cell], new: Sequence[Cell], growth: Growth) -> list[str]:
    """The lines with the functions that take them, new ones first, then by gain; what is shared."""
    before, after = _moves(base), _moves(new)
    gains = {name: moves - before.get(name, (0.0, None))[0] for name, (moves, _) in after.items()}

    def rank(name: str) -> tuple[bool, float]:
        line = after[name][1]
        fresh = {*line.names, *(user.function for user in line.users)} & set(growth.names)
        return not fresh, -gains[name]

    ordered = [name for name in sorted(gains, key=rank)[:LINES] if gains[name] >= MIN_GAIN]
    descriptions = []
    for name in ordered:
        line = after[name][1]
        # New functions come first.
        takers = [user for user in line.users if user.reads or user.writes]
        users = sorted(takers, key=lambda user: user.function not in growth.names)[:USERS]
        shown = ", ".join(f"{u.function} ({'writes' if u.writes else 'reads'})" for u in users)
        descriptions.append(f"{line.object}, {gains[name]:.2f} more per operation, by {shown}")
    if growth.sharing == "same word":
        descriptions.append("same word: more words are shared, whatever the layout")
    elif growth.sharing == _LAYOUT:
        what = _together(after[ordered[0]][1]) if ordered else "words"
        descriptions.append(
            f"{_LAYOUT}: no further word is shared, so the reason is how {what} lie in cache lines"
        )
    return descriptions


def _together(line: HotLine) -> str:
    """What the layout of a line is about."""
    parts = line.names or (line.members or "").split(", ")
    if any(part.startswith(ANOTHER) for part in parts) or len(line.names) > 1:
        return "different objects"
    if len(parts) > 1:
        return "members of one object"
    return "words of one object" if parts[0] else "words"


def _moves(cells: Sequence[Cell]) -> Mapping[str, tuple[float, HotLine]]:
    """Transfers per operation of each object, and one of its lines.

    An object without a name is identified by the function that takes it, because its address is
    valid in one boot only.
    """
    simulations = [cell.simulation for cell in cells if cell.simulation]
    ops = sum(simulation.total("ops") for simulation in simulations)
    transfers: dict[str, tuple[float, HotLine]] = {}
    for line in (line for simulation in simulations for line in simulation.lines):
        # Which neighbour an object has differs from boot to boot.
        known = ", ".join(line.names) or (line.members or "").partition(f", {ANOTHER}")[0]
        name = known or next((user.function for user in line.users), "?")
        moved = line.moves() / ops
        transfers[name] = (transfers.get(name, (0.0, line))[0] + moved, line)
    return transfers
