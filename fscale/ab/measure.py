# SPDX-License-Identifier: GPL-2.0-only
"""Measures a paired run: rounds of each point, until it is decided or the time is spent."""

import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from analysis.compare.judge import judge
from analysis.compare.pairs import RATES, pair, subject_of
from analysis.compare.sequential import ended
from analysis.compare.settings import SETTLED, Judgement, Settings, Subject
from analysis.compare.sliced import LEAST_PAIRS
from fscale.ab.plan import Pair, Plan
from fscale.ab.slices import SIDES, measure_pair
from fscale.model.errors import FscaleError
from fscale.model.results import Cell
from fscale.runner.session import Session

PAIRS_TO_FAIL = 2


@dataclass
class Progress:
    """What has been measured, and which points are still open."""

    cells: list[Cell] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    """repetitions a side (in slices: pairs) of each point, by the name of its side A"""
    open: list[Pair] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)
    """rounds in a row of a point in which a side had no good cell"""
    uncut: dict[str, str] = field(default_factory=dict)
    """points that go on in whole repetitions, and why"""
    given_up: dict[str, str] = field(default_factory=dict)
    out_of_time: bool = False
    pair_looks: tuple[int, ...] = ()
    """where the time was spent: the looks at pairs, with one more at the end"""


class Watcher(Protocol):
    """Who is told how it goes."""

    def measured(self, progress: Progress, point: Pair, left: float) -> None:
        """Another round of a point has been measured; `left` seconds are left."""
        ...

    def looked(self, progress: Progress, judgements: Sequence[Judgement], left: float) -> None:
        """All points were judged; those that were decided are closed."""
        ...


def measure(plan: Plan, session: Session, seconds: float, watcher: Watcher) -> Progress:
    """Measure until all points are decided, `plan.repetitions` are done, or time is up.

    A point of whose round not one cell of a side is good is given up; one whose first pair fails
    goes on in whole repetitions, one with good pairs is given up when two fail in a row. When time
    is up, it looks once more at the pairs that there are. What is finished already (of an
    interrupted run) is not measured again.

    Raises:
        FscaleError: not one point can be measured on side A; the reason of the first. Where only
            B fails, that is what the comparison is to say.
        Interrupted, Stopped: from the session.
    """
    progress = Progress(open=list(plan.pairs))
    end = time.monotonic() + seconds
    slowest: dict[bool, float] = defaultdict(float)
    rounds = 0
    while not progress.out_of_time:
        turn = [p for p in progress.open if progress.done[p.base.point] < plan.last(p)]
        if not turn:
            break
        random.Random(f"{plan.run.seed} {rounds}").shuffle(turn)
        for point in turn:
            started = time.monotonic()
            sliced = point.slicing is not None
            if started + slowest[sliced] > end:
                progress.out_of_time = True
                break
            _round(plan, session, point, progress)
            slowest[sliced] = max(slowest[sliced], time.monotonic() - started)
            watcher.measured(progress, point, end - time.monotonic())
        rounds += 1
        _close(plan, progress, turn, watcher, end)
    if progress.out_of_time:
        _look_once_more(plan, progress, watcher)
    measurable = any(c.status == "ok" for c in progress.cells if c.key.side == "A")
    if len(progress.given_up) == len(plan.pairs) and not measurable:
        raise FscaleError(f"nothing could be measured: {next(iter(progress.given_up.values()))}")
    return progress


def _close(
    plan: Plan, progress: Progress, turn: Sequence[Pair], watcher: Watcher, end: float
) -> None:
    """Close the points of a turn that are at one of their looks and decided."""
    names = {p.base.point for p in turn}
    due = [
        p
        for p in progress.open
        if p.base.point in names and progress.done[p.base.point] in plan.looks_of(p)
    ]
    if not due:
        return
    every = judged(progress.cells, plan.settings, plan.looks, plan.pair_looks)
    watcher.looked(progress, _decide(progress, due, every), end - time.monotonic())


def _look_once_more(plan: Plan, progress: Progress, watcher: Watcher) -> None:
    """Look at all pairs that there are, when the time is spent.

    Not beside a planned look: the last round may have been cut short between two points.
    """
    due = [p for p in progress.open if p.slicing]
    last = min((progress.done[p.base.point] for p in due), default=0)
    if last < LEAST_PAIRS or not plan.pair_looks or {last, last + 1} & set(plan.pair_looks):
        return
    progress.pair_looks = ended(plan.pair_looks, last)
    every = judged(progress.cells, plan.settings, plan.looks, progress.pair_looks)
    watcher.looked(progress, _decide(progress, due, every), 0)


def _decide(progress: Progress, due: Sequence[Pair], every: Sequence[Judgement]) -> list[Judgement]:
    """Close those of the points that are decided; the judgements of all rates.

    What was put off is written out by threads that differ far more from pair to pair than what the
    workers do, so it is waited for only where nothing else is judged.
    """
    judgements = [j for j in every if j.metric in RATES]
    still = undecided([j for j in judgements if j.metric != SETTLED] or judgements)
    # The tests bear the name of side A, whatever side B is.
    progress.open = [p for p in progress.open if p not in due or subject_of(p.base) in still]
    return judgements


def undecided(judgements: Sequence[Judgement]) -> set[Subject]:
    """What has to be measured on: nothing says that it is slower, and not all is decided.

    A point that is slower by one of its rates has been found: to know the others as well would
    take pairs from points that may still hide something.
    """
    slower = {j.subject for j in judgements if j.verdict == "slower"}
    return {j.subject for j in judgements if j.verdict == "undecided"} - slower


def _round(plan: Plan, session: Session, point: Pair, progress: Progress) -> None:
    good = {"A": 0, "B": 0}
    reason = ""
    measured = _pair if point.slicing else _four
    for cell in measured(plan, session, point, progress.done[point.base.point] + 1):
        assert cell.key.side is not None
        progress.cells.append(cell)
        good[cell.key.side] += cell.status == "ok"
        if cell.status != "ok":
            reason = f"{cell.id}: {cell.status}: {cell.reason}"
    name = point.base.point
    if point.slicing and not all(good.values()) and not progress.done[name]:
        # Whole repetitions tell which side fails, and may do where two at once do not.
        progress.open[progress.open.index(point)] = replace(point, slicing=None)
        progress.uncut[name] = reason
        del progress.cells[-len(SIDES) :]
        return
    progress.done[name] += point.step
    progress.failed[name] = 0 if all(good.values()) else progress.failed[name] + 1
    if progress.failed[name] == (PAIRS_TO_FAIL if point.slicing else 1):
        progress.open.remove(point)
        progress.given_up[name] = reason


def _four(plan: Plan, session: Session, point: Pair, first: int) -> Iterator[Cell]:
    """Two repetitions of each side, one after the other."""
    for key in plan.order(point, first):
        assert key.side is not None
        cell = plan.store.load_cell(key) if plan.store.finished(key) else None
        if cell is None:
            session.setup = plan.setups[key.side]
            cell = session.cell(key)
        yield cell


def _pair(plan: Plan, session: Session, point: Pair, number: int) -> Iterator[Cell]:
    """One repetition of both sides, in slices."""
    assert point.slicing
    keys = {side: point.key(side, number) for side in "AB"}
    cells = [plan.store.load_cell(key) for key in keys.values() if plan.store.finished(key)]
    if len(cells) == len(keys):
        yield from (cell for cell in cells if cell)
    else:
        yield from measure_pair(session, plan.setups, keys, point.slicing, plan.run.seed)


def judged(
    cells: Sequence[Cell],
    settings: Settings,
    looks: tuple[int, ...] = (),
    pair_looks: tuple[int, ...] = (),
) -> list[Judgement]:
    """What the cells of both sides say so far; undecided where they are too few."""
    base, new = ([c for c in cells if c.key.side == side] for side in SIDES)
    pairing = pair(
        base,
        new,
        interleaved=True,
        looks=looks,
        pair_looks=pair_looks,
        metrics=settings.metrics,
    )
    return judge(pairing.tests, settings, refuse=False)
