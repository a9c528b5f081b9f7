# SPDX-License-Identifier: GPL-2.0-only
"""Both sides measured on this machine: whole repetitions in turn, or pairs in slices."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fscale.ab.loop import Progress
from fscale.ab.plan import Plan
from fscale.ab.point import PairedPoint
from fscale.ab.record import Looks
from fscale.ab.slices import measure_pair
from fscale.ab.slicing import LARGER_STOCK, Slicing, lengthen
from fscale.model.results import Cell, CellKey
from fscale.model.store import Store
from fscale.runner.session import Session
from fscale.runner.setup import Setup

PAIRS_TO_FAIL = 2


class LocalSource:
    """See fscale.ab.loop.Source."""

    def __init__(self, plan: Plan, session: Session) -> None:
        self._session = session
        self._setups: Mapping[str, Setup] = plan.setups
        self._store: Store = plan.store
        self._seed: int = plan.run.seed
        self._metrics = plan.settings.metrics
        self.points: list[PairedPoint] = plan.points
        self.looks: Looks = plan.looks

    def batches(self, turn: Sequence[PairedPoint]) -> list[list[PairedPoint]]:
        """One point after another."""
        return [[point] for point in turn]

    def otherwise(self, point: PairedPoint) -> PairedPoint | None:
        """Fall back to whole repetitions, which show which side fails.

        They may also succeed where two mounted file systems at once do not.
        """
        return replace(point, slicing=None) if point.slicing else None

    def add_work(self, point: PairedPoint) -> PairedPoint | None:
        """Continue in longer turns; a medium has room for no more of what uses up a stock."""
        longer = lengthen(point.slicing) if point.slicing else None
        return replace(point, slicing=longer, waits=True) if longer else None

    def patience(self, point: PairedPoint) -> int:
        """Give a pair, which has two cells, a second try; whole repetitions have four cells."""
        return PAIRS_TO_FAIL if point.slicing else 1

    def measure(self, batch: Sequence[PairedPoint], first: int) -> list[tuple[PairedPoint, Cell]]:
        """Measure the next pair, or the next two repetitions of each side."""
        (point,) = batch
        cells = self._pair(point, first) if point.slicing else self._four(point, first)
        return [(point, cell) for cell in cells]

    def save(self, progress: Progress) -> None:
        """Do nothing: the session has stored each cell."""

    def _four(self, point: PairedPoint, first: int) -> Iterator[Cell]:
        for key in order(point, first, self._seed):
            assert key.side is not None
            cell = self._store.load_cell(key) if self._store.finished(key) else None
            if cell is None:
                self._session.setup = self._setups[key.side]
                cell = self._session.cell(key)
            yield cell

    def _pair(self, point: PairedPoint, number: int) -> Iterator[Cell]:
        assert point.slicing
        keys = {side: point.key(side, number) for side in "AB"}
        cells = [self._store.load_cell(k) for k in keys.values() if self._store.finished(k)]
        if len(cells) == len(keys):
            yield from (cell for cell in cells if cell)
        else:
            yield from self._measured(keys, point.slicing)

    def _measured(self, keys: Mapping[str, CellKey], slicing: Slicing) -> list[Cell]:
        """Measure a pair, and once more, with a larger stock, if it failed by nobody's fault."""

        def measure(slicing: Slicing) -> list[Cell]:
            return measure_pair(
                self._session, self._setups, keys, slicing, self._seed, self._metrics
            )

        cells = measure(slicing)
        if any(cell.status != "ok" and cell.fault == "machine" for cell in cells):
            return measure(replace(slicing, stock=LARGER_STOCK))
        return cells


def order(point: PairedPoint, first: int, seed: int) -> Iterator[CellKey]:
    """The four cells of repetitions `first` and `first` + 1: A B B A or B A A B.

    The random choice depends on the seed, the point and the repetition, so that a resumed run keeps
    its order.
    """
    for side, repetition in turns(f"{seed} {point.name} {first}", first):
        yield point.key(side, repetition)


def turns(seed: str, first: int) -> list[tuple[str, int]]:
    """A B B A or B A A B at random: (side, repetition) for two repetitions of each side."""
    outer, inner = ("A", "B") if random.Random(seed).random() < 0.5 else ("B", "A")
    return [(outer, first), (inner, first), (inner, first + 1), (outer, first + 1)]
