# SPDX-License-Identifier: GPL-2.0-only
"""What the absence of a shared object would give: simulated points with and without it."""

import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from fscale.model.results import Cell, CellKey


@dataclass(frozen=True)
class Answer:
    """An object of a point: what its absence would make of the throughput."""

    key: CellKey
    """of the point, the object in its place"""
    object: str
    base: float
    """operations per simulated second, median of repetitions"""
    free: float

    @property
    def gain(self) -> float:
        """Throughput without the object over that with it."""
        return self.free / self.base


def asked(cell: Cell) -> bool:
    """Whether it answers a what-if: it is no point of a file system's curve."""
    return cell.key.side is not None and cell.simulation is not None and bool(cell.simulation.free)


def answers(cells: Iterable[Cell]) -> list[Answer]:
    """The ranking of each point, points in the order of their names, the largest gain first."""
    base: dict[str, list[float]] = defaultdict(list)
    free: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in cells:
        if cell.status != "ok" or cell.simulation is None:
            continue
        if cell.key.side is None:
            base[cell.key.point].append(cell.ops_per_second)
        elif asked(cell):
            plain = cell.key.model_copy(update={"side": None})
            free[plain.point, ", ".join(cell.simulation.free)].append(cell)
    found = [
        Answer(
            same[0].key.model_copy(update={"side": None}),
            thing,
            statistics.median(base[point]),
            statistics.median(cell.ops_per_second for cell in same),
        )
        for (point, thing), same in free.items()
        if point in base
    ]
    return sorted(found, key=lambda a: (a.key.workload, a.key.filesystem, a.key.cores, -a.gain))
