# SPDX-License-Identifier: GPL-2.0-only
"""Measures a paired run: A B B A a point in turn, until it is decided or the time is spent."""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from analysis.compare.judge import judge
from analysis.compare.pairs import RATES, pair, subject_of
from analysis.compare.settings import Subject
from fscale.ab.plan import Pair, Plan
from fscale.ab.slices import measure_pair
from fscale.model.errors import FscaleError
from fscale.model.results import Cell
from fscale.runner.progress import duration
from fscale.runner.session import Session


@dataclass
class Progress:
    """What has been measured, and which points are still open."""

    cells: list[Cell] = field(default_factory=list)
    repetitions: int = 0
    open: list[Pair] = field(default_factory=list)
    given_up: dict[str, str] = field(default_factory=dict)
    out_of_time: bool = False


def measure(plan: Plan, session: Session, seconds: float, say: Callable[[str], None]) -> Progress:
    """Measure until all points are decided, `plan.repetitions` are done, or time is up.

    A point whose four cells of one round all fail on one side is given up. What is finished
    already (of an interrupted run) is not measured again.

    Raises:
        FscaleError: not one point can be measured on side A; the reason of the first. Where only
            B fails, that is what the comparison is to say.
        Interrupted, Stopped: from the session.
    """
    progress = Progress(open=list(plan.pairs))
    end = time.monotonic() + seconds
    slowest = 0.0
    while progress.open and not _done(plan, progress):
        turn = list(progress.open)
        random.Random(f"{plan.run.seed} {progress.repetitions}").shuffle(turn)
        for point in turn:
            started = time.monotonic()
            if started + slowest > end:
                progress.out_of_time = True
                break
            _round(plan, session, point, progress)
            slowest = max(slowest, time.monotonic() - started)
        if progress.out_of_time:
            break
        progress.repetitions += plan.step
        if progress.repetitions in plan.looks:
            _look(plan, progress)
            left = duration(max(0.0, end - time.monotonic()))
            say(
                f"after {progress.repetitions} repetitions a side {len(progress.open)} of "
                f"{len(plan.pairs)} points are undecided, {left} left"
            )
    measurable = any(c.status == "ok" for c in progress.cells if c.key.side == "A")
    if len(progress.given_up) == len(plan.pairs) and not measurable:
        raise FscaleError(f"nothing could be measured: {next(iter(progress.given_up.values()))}")
    return progress


def _done(plan: Plan, progress: Progress) -> bool:
    last = plan.repetitions or (plan.looks[-1] if plan.looks else 0)
    return progress.repetitions >= last


def _round(plan: Plan, session: Session, point: Pair, progress: Progress) -> None:
    good = {"A": 0, "B": 0}
    reason = ""
    measured = _pair if plan.slicing else _four
    for cell in measured(plan, session, point, progress.repetitions + 1):
        assert cell.key.side is not None
        progress.cells.append(cell)
        good[cell.key.side] += cell.status == "ok"
        if cell.status != "ok":
            reason = f"{cell.id}: {cell.status}: {cell.reason}"
    if not all(good.values()):
        progress.open.remove(point)
        progress.given_up[point.base.point] = reason


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
    assert plan.slicing
    keys = {side: point.key(side, number) for side in "AB"}
    cells = [plan.store.load_cell(key) for key in keys.values() if plan.store.finished(key)]
    if len(cells) == len(keys):
        yield from (cell for cell in cells if cell)
    else:
        yield from measure_pair(session, plan.setups, keys, plan.slicing, plan.run.seed)


def _look(plan: Plan, progress: Progress) -> None:
    """Close the points of which every rate is decided."""
    sides = [[c for c in progress.cells if c.key.side == s] for s in "AB"]
    pairing = pair(
        sides[0], sides[1], interleaved=True, looks=plan.looks, metrics=plan.settings.metrics
    )
    undecided: set[Subject] = {
        j.subject
        for j in judge(pairing.tests, plan.settings)
        if j.metric in RATES and j.verdict == "undecided"
    }
    # The tests bear the name of side A, whatever side B is.
    progress.open = [p for p in progress.open if subject_of(p.base) in undecided]
