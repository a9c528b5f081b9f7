# SPDX-License-Identifier: GPL-2.0-only
"""Measures cells of a run again, for a time that is said before the run begins."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from fscale.model.results import Cell, CellKey, Run
from fscale.model.store import Replacing, Store
from fscale.runner.progress import Reporter, duration, estimate_seconds

Choice = Callable[[Path, float], Mapping[str, str]]
"""Chooses among the good cells in a results directory: ids -> why they are measured again. The
seconds are the budget of the run, over all its calls."""
Choices = Callable[[], Sequence[Choice]]
"""Returns the choices in their order; called after the last cell, because they import much."""


def budget_of(run: Run, cells: Sequence[CellKey]) -> float:
    """Return the seconds for which cells of a run may be measured again, over all its calls."""
    return float(run.suite["remeasure"] * estimate_seconds(cells, run.suite["warmup"]))


def format_budget(seconds: float) -> str:
    """Format it, to follow an estimate: `; up to 1:47 more to measure disturbed cells again`."""
    more = f"; up to {duration(seconds)} more to measure disturbed cells again"
    return more if seconds else ""


def batches(
    store: Store,
    cells: Sequence[CellKey],
    choices: Choices,
    budget: float,
    reporter: Reporter,
) -> Iterator[tuple[Replacing, list[CellKey]]]:
    """Yield, for each choice, where its cells are stored and the cells in the order of the run."""
    for choose in choices() if budget else ():
        reasons = choose(store.directory, budget)
        if keys := [key for key in cells if key.id in reasons]:
            reporter.again(keys)
            yield Replacing(store.directory, reasons), keys


def warn_of_failure(run: Run, cell: Cell) -> None:
    """Record that a cell that was good at first failed when it was measured again."""
    if cell.status != "ok":
        run.warnings.append(
            f"{cell.id} was measured again and ended as {cell.end}: {cell.reason}; its earlier "
            "figure counts"
        )
