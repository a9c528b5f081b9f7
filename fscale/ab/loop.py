# SPDX-License-Identifier: GPL-2.0-only
"""Measures a paired run, whatever measures it: rounds of each point, until it is decided or the
time is spent.
"""

import math
import random
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from analysis.compare.judge import judge
from analysis.compare.pairs import SLICED, pair, subject_of
from analysis.compare.sequential import ended
from analysis.compare.settings import SETTLED, Judgement, Settings, Subject
from analysis.compare.sliced import LEAST_PAIRS
from fscale.ab.point import SIDES, Point
from fscale.ab.record import Looks
from fscale.model.errors import FscaleError
from fscale.model.results import Cell


class Source(Protocol):
    """What measures both sides: this machine, guests, simulated ones."""

    @property
    def points(self) -> list[Point]:
        """Those that are known; guests tell theirs in the first round."""
        ...

    @property
    def looks(self) -> Looks:
        """When to look, once the points are known."""
        ...

    def batches(self, turn: Sequence[Point]) -> list[list[Point]]:
        """The points of a turn in the parts in which they are measured."""
        ...

    def otherwise(self, point: Point) -> Point | None:
        """How a point goes on whose first pair failed; None where there is no other way."""
        ...

    def patience(self, point: Point) -> int:
        """After how many bad rounds in a row a point is given up."""
        ...

    def measure(self, batch: Sequence[Point], first: int) -> list[tuple[Point, Cell]]:
        """The round of some points that begins with repetition `first`, both sides of each.

        What an interrupted call finished is not measured again. Raises Interrupted, and FscaleError
        where nothing can be measured any more.
        """
        ...

    def keep(self, progress: "Progress") -> None:
        """Store what was measured, after each round."""
        ...


class EveryPointAtOnce:
    """How a Source does that boots guests: a boot measures every point, in one way, and takes
    minutes.
    """

    def batches(self, turn: Sequence[Point]) -> list[list[Point]]:
        """All points together."""
        return [list(turn)]

    def otherwise(self, point: Point) -> Point | None:
        """There is no other way."""
        del point
        return None

    def patience(self, point: Point) -> int:
        """A point that failed once is given up."""
        del point
        return 1


@dataclass(frozen=True)
class Aim:
    """When it ends: `repetitions` a side, or where it is 0 when the data decide."""

    settings: Settings
    seed: int
    repetitions: int = 0
    one_is_enough: bool = False
    """end as soon as something is slower, as a bisection may"""

    def last(self, point: Point, looks: Looks) -> int:
        """After how many repetitions a point is not measured any more, decided or not."""
        if self.repetitions:
            return math.ceil(self.repetitions / point.step) * point.step
        return looks.of(sliced=point.slicing is not None)[-1]


@dataclass
class Progress:
    """What has been measured, and which points are still open."""

    cells: list[Cell] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    """repetitions a side (in slices: pairs) of each point, by its name"""
    open: list[Point] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)
    """rounds in a row of a point in which a side had no good cell"""
    uncut: dict[str, str] = field(default_factory=dict)
    """points that go on in whole repetitions, and why"""
    given_up: dict[str, str] = field(default_factory=dict)
    out_of_time: bool = False
    looks: Looks = field(default_factory=Looks)
    """those that were planned, and where the time was spent one more"""
    slower: bool = False


class Watcher(Protocol):
    """Who is told how it goes."""

    def measured(self, progress: Progress, batch: Sequence[Point], left: float) -> None:
        """Another round of some points has been measured; `left` seconds are left."""
        ...

    def looked(self, progress: Progress, judgements: Sequence[Judgement], left: float) -> None:
        """All points were judged; those that were decided are closed."""
        ...


class Quiet:
    """A Watcher that says nothing."""

    def measured(self, progress: Progress, batch: Sequence[Point], left: float) -> None:
        """See Watcher."""

    def looked(self, progress: Progress, judgements: Sequence[Judgement], left: float) -> None:
        """See Watcher."""


def measure(source: Source, aim: Aim, seconds: float, watcher: Watcher) -> Progress:
    """Measure until all points are decided, the repetitions are done, or time is up.

    A point that fails round after round is given up; one whose first pair in slices fails goes on
    in whole repetitions where its source has them. When time is up, it looks once more at the pairs
    that there are.

    Raises:
        FscaleError: not one point can be measured on side A; the reason of the first. Where only
            B fails, that is what the comparison is to say.
        Interrupted, Stopped: from the source.
    """
    progress = Progress(open=list(source.points), looks=source.looks)
    end = time.monotonic() + seconds
    slowest: dict[bool, float] = defaultdict(float)
    rounds = 0
    while not progress.out_of_time and not progress.slower:
        turn = [p for p in progress.open if progress.done[p.name] < aim.last(p, progress.looks)]
        if not turn and (source.points or rounds):
            break
        random.Random(f"{aim.seed} {rounds}").shuffle(turn)
        for batch in source.batches(turn):
            started = time.monotonic()
            sliced = any(point.slicing for point in batch)
            if started + slowest[sliced] > end:
                progress.out_of_time = True
                break
            met = _round(source, progress, batch)
            slowest[sliced] = max(slowest[sliced], time.monotonic() - started)
            watcher.measured(progress, met, end - time.monotonic())
        rounds += 1
        _close(aim, progress, turn or source.points, watcher, end)
    if progress.out_of_time:
        _look_once_more(aim, progress, watcher)
    measurable = any(c.status == "ok" for c in progress.cells if c.key.side == "A")
    if not measurable and len(progress.given_up) == len(source.points):
        reason = next(iter(progress.given_up.values()), "no cell was offered")
        raise FscaleError(f"nothing could be measured: {reason}")
    return progress


def _round(source: Source, progress: Progress, batch: Sequence[Point]) -> Sequence[Point]:
    """Measure a round of some points, or of all where none is known yet; those it was of."""
    known = {point.name for point in source.points}
    found = source.measure(batch, min((progress.done[p.name] for p in batch), default=0) + 1)
    fresh = [point for point in source.points if point.name not in known]
    if fresh:
        progress.open += fresh
        progress.looks = source.looks
    met = batch or fresh
    _enter(source, progress, met, found)
    source.keep(progress)
    return met


def _enter(
    source: Source,
    progress: Progress,
    batch: Sequence[Point],
    found: Sequence[tuple[Point, Cell]],
) -> None:
    """Add a round to what was measured; points that fail go on otherwise, or not at all."""
    for point in batch:
        cells = [cell for own, cell in found if own.name == point.name]
        good = dict.fromkeys(SIDES, 0)
        for cell in cells:
            assert cell.key.side is not None
            good[cell.key.side] += cell.status == "ok"
        # Of a pair in which one side failed, the other one is invalid.
        bad = sorted((c for c in cells if c.status != "ok"), key=lambda c: c.status == "invalid")
        reason = f"{bad[0].id}: {bad[0].status}: {bad[0].reason}" if bad else ""
        failed = bool(cells) and not all(good.values())
        other = source.otherwise(point) if failed and not progress.done[point.name] else None
        if other:
            progress.open[progress.open.index(point)] = other
            progress.uncut[point.name] = reason
            continue
        progress.cells += cells
        progress.done[point.name] += point.step
        progress.failed[point.name] = progress.failed[point.name] + 1 if failed else 0
        if progress.failed[point.name] == source.patience(point):
            progress.open.remove(point)
            progress.given_up[point.name] = reason


def _close(
    aim: Aim, progress: Progress, turn: Sequence[Point], watcher: Watcher, end: float
) -> None:
    """Close the points of a turn that are at one of their looks and decided."""
    names = {point.name for point in turn}
    due = [
        p
        for p in progress.open
        if p.name in names
        and progress.done[p.name] in progress.looks.of(sliced=p.slicing is not None)
    ]
    if due:
        _look(aim, progress, due, watcher, end - time.monotonic())


def _look_once_more(aim: Aim, progress: Progress, watcher: Watcher) -> None:
    """Look at all pairs that there are, when the time is spent.

    Not beside a planned look: the last round may have been cut short between two points.
    """
    due = [p for p in progress.open if p.slicing]
    last = min((progress.done[p.name] for p in due), default=0)
    planned = progress.looks.pairs
    if last < LEAST_PAIRS or not planned or {last, last + 1} & set(planned):
        return
    progress.looks = replace(progress.looks, pairs=ended(planned, last))
    _look(aim, progress, due, watcher, 0)


def _look(
    aim: Aim, progress: Progress, due: Sequence[Point], watcher: Watcher, left: float
) -> None:
    """Judge, and close those of the points that are decided.

    What was put off is written out by threads that differ far more from pair to pair than what the
    workers do, so it is waited for only where nothing else is judged.
    """
    every = judged(progress.cells, aim.settings, progress.looks)
    judgements = [j for j in every if j.metric in SLICED]
    still = undecided([j for j in judgements if j.metric != SETTLED] or judgements)
    # The tests bear the name of side A, whatever side B is.
    progress.open = [p for p in progress.open if p not in due or subject_of(p.base) in still]
    progress.slower = aim.one_is_enough and any(j.worse for j in judgements)
    watcher.looked(progress, judgements, left)


def undecided(judgements: Sequence[Judgement]) -> set[Subject]:
    """What has to be measured on: nothing says that it is slower, and not all is decided.

    A point that is slower by one of its rates has been found: to know the others as well would
    take pairs from points that may still hide something.
    """
    slower = {j.subject for j in judgements if j.verdict == "slower"}
    return {j.subject for j in judgements if j.verdict == "undecided"} - slower


def judged(cells: Sequence[Cell], settings: Settings, looks: Looks) -> list[Judgement]:
    """What the cells of both sides say so far; undecided where they are too few."""
    base, new = ([c for c in cells if c.key.side == side] for side in SIDES)
    pairing = pair(
        base,
        new,
        interleaved=True,
        looks=looks.whole,
        pair_looks=looks.pairs,
        metrics=settings.metrics,
    )
    return judge(pairing.tests, settings, refuse=False)
