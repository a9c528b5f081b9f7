# SPDX-License-Identifier: GPL-2.0-only
"""A row for each recorded quantile of the latencies of a repetition."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fscale.analysis.cells import in_order
from fscale.analysis.tables.column import DISTURBED, PLACE, REPETITION, Column, Row, make_row
from fscale.model.latency import quantile
from fscale.model.results import Cell, CellKey


@dataclass(frozen=True)
class Quantile:
    """A percentile of the latencies of a cell; `run` is the name of its run."""

    run: str
    cell: Cell
    percentile: str

    @property
    def key(self) -> CellKey:
        """The key of the cell."""
        return self.cell.key

    @property
    def seconds(self) -> float | None:
        """The latency; None if it does not represent the cell's operations."""
        nanoseconds = quantile(self.cell.latency, self.percentile)
        return None if nanoseconds is None else nanoseconds / 1e9


def rows(run: str, scored: Iterable[Cell]) -> list[Row]:
    """The rows of scored cells; none for cells whose latencies were not recorded."""
    return [make_row(COLUMNS, one) for one in _quantiles(run, scored)]


def _quantiles(run: str, scored: Iterable[Cell]) -> Iterator[Quantile]:
    for cell in in_order(scored):
        recorded = (cell.latency or {}).get("quantiles")
        if isinstance(recorded, dict):
            for percentile in sorted(recorded, key=float):
                yield Quantile(run, cell, percentile)


COLUMNS: tuple[Column[Quantile], ...] = (
    *PLACE,
    REPETITION,
    DISTURBED,
    Column(
        "percentile",
        "number",
        "percentage of the operations that took no longer; 100: the longest",
        lambda q: float(q.percentile),
        "%",
    ),
    Column(
        "latency_seconds",
        "number",
        "latency of an operation; empty if too few operations were recorded, or lie beyond it",
        lambda q: q.seconds,
        "s",
    ),
)
