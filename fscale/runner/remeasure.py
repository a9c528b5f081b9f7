# SPDX-License-Identifier: GPL-2.0-only
"""Measures cells of a run again, for a time that is said before the run begins."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from fscale.model.results import Cell, CellKey, Run
from fscale.model.store import Replacing, Store
from fscale.runner.progress import Reporter, duration, estimate_seconds

Choice = Callable[[Path, float], Mapping[str, str]]
"""Chooses good cells of a results directory that can be measured in so many seconds: their ids ->
why they are measured again. None of them has replaced another."""
Choices = Callable[[], Sequence[Choice]]
"""Returns the choices in their order; called after the last cell, because they import much."""


class Budget:
    """The time for which cells of a results directory may be measured again, over all calls."""

    def __init__(self, run: Run, store: Store, cells: Sequence[CellKey]) -> None:
        estimate = estimate_seconds(cells, run.suite["warmup"])
        self._seconds: float = run.suite["remeasure"] * estimate
        self._store = store
        self._cells = cells

    @property
    def left(self) -> float:
        """Seconds that are left, after what the cells took that replaced others."""
        stored = (self._store.load_cell(key) for key in self._cells)
        spent = sum(cell.wall_seconds or 0.0 for cell in stored if cell and cell.replaces)
        return self._seconds - spent

    def __str__(self) -> str:
        """What is said after an estimate; nothing if less than a second is left."""
        left = self.left
        more = f"; up to {duration(left)} more to measure disturbed cells again"
        return more if left >= 1 else ""

    def spend(
        self, choices: Choices, reporter: Reporter
    ) -> Iterator[tuple[Replacing, list[CellKey]]]:
        """Yield, for each choice, where its cells are stored, and the cells in the run's order."""
        for choose in choices() if self._seconds else ():
            reasons = choose(self._store.directory, self.left)
            if keys := [key for key in self._cells if key.id in reasons]:
                reporter.again(keys)
                yield Replacing(self._store.directory, reasons), keys


def warn_of_failure(run: Run, cell: Cell) -> None:
    """Record that a cell that was good at first failed when it was measured again."""
    if cell.status != "ok":
        run.warnings.append(
            f"{cell.id} was measured again and ended as {cell.end}: {cell.reason}; its earlier "
            "figure counts"
        )
