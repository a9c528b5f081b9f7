# SPDX-License-Identifier: GPL-2.0-only
"""The loop of a paired run, for any source: measures rounds of each point until the point is
decided or the time limit is reached.
"""

import math
import random
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from fscale.ab.point import SIDES, PairedPoint
from fscale.ab.record import Looks
from fscale.analysis.compare.judge import judge
from fscale.analysis.compare.model import Judgement, Subject
from fscale.analysis.compare.pairs import JUDGED, match_cells, pair, subject_of
from fscale.analysis.compare.repetitions import repetitions_to_reach
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sliced import MIN_PAIRS
from fscale.analysis.metrics import NAMED, SETTLED, why_missing
from fscale.model.errors import FscaleError
from fscale.model.results import Cell


class Source(Protocol):
    """Measures both sides: on this machine, in guests, or in simulated guests."""

    @property
    def points(self) -> list[PairedPoint]:
        """The known points; guests report theirs in the first round."""
        ...

    @property
    def looks(self) -> Looks:
        """When to look at the data, once the points are known."""
        ...

    def batches(self, turn: Sequence[PairedPoint]) -> list[list[PairedPoint]]:
        """The points of a turn, split into batches that are measured together."""
        ...

    def otherwise(self, point: PairedPoint) -> PairedPoint | None:
        """How to continue a point whose first pair failed; None if there is no other way."""
        ...

    def add_work(self, point: PairedPoint) -> PairedPoint | None:
        """How to continue with more work a pair if only rare operations are left to be judged.

        None: a pair has no room for more.
        """
        ...

    def patience(self, point: PairedPoint) -> int:
        """The number of consecutive failed rounds after which a point is given up; 0: now."""
        ...

    def measure(self, batch: Sequence[PairedPoint], first: int) -> list[tuple[PairedPoint, Cell]]:
        """Measure the round that begins with repetition `first`, on both sides of each point.

        Cells that an interrupted call finished are not measured again. Raises Interrupted, and
        FscaleError if nothing can be measured any more.
        """
        ...

    def save(self, progress: "Progress") -> None:
        """Store the results after each round."""
        ...


class EveryPointAtOnce:
    """The part that sources which boot guests share: a boot takes minutes and measures every
    point in the same way.
    """

    def batches(self, turn: Sequence[PairedPoint]) -> list[list[PairedPoint]]:
        """All points together."""
        return [list(turn)]

    def otherwise(self, point: PairedPoint) -> PairedPoint | None:
        """There is no other way."""
        del point
        return None

    def add_work(self, point: PairedPoint) -> PairedPoint | None:
        """Continue as it is: each boot adds work."""
        return point

    def patience(self, point: PairedPoint) -> int:
        """Give up a point after its first failed round."""
        del point
        return 1


@dataclass(frozen=True)
class Aim:
    """When a run ends: after `repetitions` per side, or, if 0, when every point is decided."""

    settings: Settings
    seed: int
    repetitions: int = 0
    one_is_enough: bool = False
    """end as soon as one point is slower, as in a bisection"""

    def last(self, point: PairedPoint, looks: Looks) -> int:
        """The number of repetitions after which a point is closed, decided or not."""
        if self.repetitions:
            return math.ceil(self.repetitions / point.step) * point.step
        return looks.of(sliced=point.slicing is not None)[-1]


@dataclass
class Progress:
    """What has been measured, and which points are still open."""

    cells: list[Cell] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    """repetitions per side (in slices: pairs) of each point, by its name"""
    open: list[PairedPoint] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)
    """consecutive rounds of a point in which a side had no good cell"""
    not_sliced: dict[str, str] = field(default_factory=dict)
    """points that continue in whole repetitions, and why"""
    given_up: dict[str, str] = field(default_factory=dict)
    out_of_time: bool = False
    looks: Looks = field(default_factory=Looks)
    """the planned looks, and one more if the time limit was reached"""
    slower: bool = False


class Watcher(Protocol):
    """Is notified of the progress."""

    def measured(self, progress: Progress, batch: Sequence[PairedPoint], left: float) -> None:
        """Another round of some points has been measured; `left` seconds are left."""
        ...

    def looked(self, progress: Progress, judgements: Sequence[Judgement], left: float) -> None:
        """All points were judged; those that were decided are closed."""
        ...


class Quiet:
    """A Watcher that prints nothing."""

    def measured(self, progress: Progress, batch: Sequence[PairedPoint], left: float) -> None:
        """See Watcher."""

    def looked(self, progress: Progress, judgements: Sequence[Judgement], left: float) -> None:
        """See Watcher."""


def measure(source: Source, aim: Aim, seconds: float, watcher: Watcher) -> Progress:
    """Measure until all points are decided, the repetitions are done, or the time limit is reached.

    A point that fails in several consecutive rounds is given up. A point whose first pair in slices
    fails continues in whole repetitions if its source supports them. A point whose typical turns
    are decided waits for all others, and continues then, in longer turns where it can. When the
    time limit is reached, the existing repetitions and pairs are looked at once more.

    Raises:
        FscaleError: no point can be measured on side A; the message has the reason of the first.
            If only B fails, the comparison reports that.
        Interrupted, Stopped: from the source.
    """
    progress = Progress(open=list(source.points), looks=source.looks)
    end = time.monotonic() + seconds
    slowest: dict[tuple[bool, bool], float] = defaultdict(float)
    rounds = 0
    while not progress.out_of_time and not progress.slower:
        turn = [p for p in progress.open if progress.done[p.name] < aim.last(p, progress.looks)]
        if not turn and (source.points or rounds):
            break
        turn = [p for p in turn if not p.waits] or turn
        random.Random(f"{aim.seed} {rounds}").shuffle(turn)
        for batch in source.batches(turn):
            started = time.monotonic()
            kind = any(point.slicing for point in batch), any(point.waits for point in batch)
            if started + slowest[kind] > end:
                progress.out_of_time = True
                break
            met = _round(source, progress, batch, aim.settings)
            slowest[kind] = max(slowest[kind], time.monotonic() - started)
            watcher.measured(progress, met, end - time.monotonic())
        rounds += 1
        _close(source, aim, progress, turn or source.points, watcher, end)
    if progress.out_of_time:
        _look_once_more(aim, progress, watcher)
    measurable = any(c.status == "ok" for c in progress.cells if c.key.side == "A")
    if not measurable and len(progress.given_up) == len(source.points):
        reason = next(iter(progress.given_up.values()), "there was no cell to measure")
        raise FscaleError(f"nothing could be measured: {reason}")
    return progress


def _round(
    source: Source, progress: Progress, batch: Sequence[PairedPoint], settings: Settings
) -> Sequence[PairedPoint]:
    """Measure a round of `batch`, or of all points if none is known yet; return its points."""
    known = {point.name for point in source.points}
    measured = source.measure(batch, min((progress.done[p.name] for p in batch), default=0) + 1)
    fresh = [point for point in source.points if point.name not in known]
    if fresh:
        progress.open += fresh
        progress.looks = source.looks
    met = batch or fresh
    _enter(source, progress, met, measured, settings)
    source.save(progress)
    return met


def _enter(
    source: Source,
    progress: Progress,
    batch: Sequence[PairedPoint],
    measured: Sequence[tuple[PairedPoint, Cell]],
    settings: Settings,
) -> None:
    """Add a round to the progress; continue points that fail in another way, or give them up."""
    for point in batch:
        cells = [cell for its_point, cell in measured if its_point.name == point.name]
        good = dict.fromkeys(SIDES, 0)
        for cell in cells:
            assert cell.key.side is not None
            good[cell.key.side] += cell.status == "ok"
        # If one side of a pair failed, the other is invalid: report the failed one first.
        bad = sorted((c for c in cells if c.status != "ok"), key=lambda c: c.status == "invalid")
        reason = f"{bad[0].id}: {bad[0].status}: {bad[0].reason}" if bad else ""
        failed = bool(cells) and not all(good.values())
        if not failed and (why := _without_value(cells, settings)):
            reason, failed = why, True
        other = source.otherwise(point) if failed and not progress.done[point.name] else None
        if other:
            progress.open[progress.open.index(point)] = other
            progress.not_sliced[point.name] = reason
            continue
        progress.cells += cells
        progress.done[point.name] += point.step
        progress.failed[point.name] = progress.failed[point.name] + 1 if failed else 0
        if progress.failed[point.name] >= source.patience(point):
            progress.open.remove(point)
            progress.given_up[point.name] = reason or f"{point.name}: its side was given up"


def _without_value(cells: Sequence[Cell], settings: Settings) -> str:
    """Why no good cell has a metric that is judged; empty if one has, or if a rate is judged."""
    if not set(settings.metrics) <= set(NAMED):
        return ""
    good = [cell for cell in cells if cell.status == "ok"]
    reasons = [why_missing(cell, metric) for cell in good for metric in settings.metrics]
    return f"{good[0].id}: {reasons[0]}" if reasons and all(reasons) else ""


def _close(
    source: Source,
    aim: Aim,
    progress: Progress,
    turn: Sequence[PairedPoint],
    watcher: Watcher,
    end: float,
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
        judgements = _look(aim, progress, due, watcher, end - time.monotonic())
        for point in due:
            if point in progress.open:
                _add_work(source, aim, progress, point, judgements)


def _add_work(
    source: Source,
    aim: Aim,
    progress: Progress,
    point: PairedPoint,
    judgements: Sequence[Judgement],
) -> None:
    """Let an open point of which only rare operations are left wait for all others.

    It continues in longer turns, or in more pairs; it is closed if it lacks more than may be made.
    """
    left = [
        j
        for j in judgements
        if j.subject == subject_of(point.base) and j.verdict == "undecided" and j.metric != SETTLED
    ]
    if not left or not all(j.rare_operations for j in left):
        return
    index = progress.open.index(point)
    room = aim.last(point, progress.looks) - progress.done[point.name]
    if longer := source.add_work(point):
        progress.open[index] = longer
    elif all(j.lacks_only_work and (j.more_repetitions or 0) > room for j in left):
        del progress.open[index]
    else:
        progress.open[index] = replace(point, waits=True)


def _look_once_more(aim: Aim, progress: Progress, watcher: Watcher) -> None:
    """Look at all existing repetitions and pairs when the time limit is reached.

    Skip this next to a planned look: the last round may have stopped between two points.
    """
    due: list[PairedPoint] = []
    whole = repetitions_to_reach(aim.settings.fdr, blocked=True)
    for sliced, least in ((True, MIN_PAIRS), (False, whole)):
        points = [p for p in progress.open if (p.slicing is not None) is sliced]
        # What waits for longer turns has fewer pairs than the rest.
        points = [p for p in points if not p.waits] or points
        last = min((progress.done[p.name] for p in points), default=0)
        planned = progress.looks.of(sliced=sliced)
        if last < least or not planned or {last, last + points[0].step} & set(planned):
            continue
        progress.looks = progress.looks.ended(last, sliced=sliced)
        due += points
    if due:
        _look(aim, progress, due, watcher, 0)


def _look(
    aim: Aim, progress: Progress, due: Sequence[PairedPoint], watcher: Watcher, left: float
) -> list[Judgement]:
    """Judge all points, close the points in `due` that are decided, and return the judgements.

    Deferred work (the metric settled) is written out by kernel threads and varies far more between
    pairs than the work of the workers. So a point stays open for it only if nothing else is judged.
    """
    every = judge_cells(progress.cells, aim.settings, progress.looks)
    judgements = [j for j in every if j.metric in JUDGED]
    still = undecided([j for j in judgements if j.metric != SETTLED] or judgements)
    # Tests are named after side A.
    progress.open = [p for p in progress.open if p not in due or subject_of(p.base) in still]
    progress.slower = aim.one_is_enough and any(j.worse for j in judgements)
    watcher.looked(progress, judgements, left)
    return judgements


def undecided(judgements: Sequence[Judgement]) -> set[Subject]:
    """The subjects to measure further: not slower by any metric, and undecided by at least one.

    A point that is slower by one of its rates needs no more data: deciding its other rates would
    take time from points that may still hide a change.
    """
    slower = {j.subject for j in judgements if j.verdict == "slower"}
    return {j.subject for j in judgements if j.verdict == "undecided"} - slower


def judge_cells(cells: Sequence[Cell], settings: Settings, looks: Looks) -> list[Judgement]:
    """The verdicts on the cells of both sides so far; undecided if there are too few cells."""
    base, new = ([c for c in cells if c.key.side == side] for side in SIDES)
    pairing = pair(
        match_cells(base, new),
        interleaved=True,
        looks=looks.whole,
        pair_looks=looks.pairs,
        metrics=settings.metrics,
    )
    return judge(pairing.tests, settings, refuse=False)
