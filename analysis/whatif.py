# SPDX-License-Identifier: GPL-2.0-only
"""What-if answers: simulated points with and without the cost of a shared object."""

import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from fscale.model.results import Cell, CellKey


@dataclass(frozen=True)
class WhatIf:
    """The throughput of a point with and without the cost of one object."""

    key: CellKey
    """the key of the point"""
    object: str
    base: float
    """operations per simulated second, median of repetitions"""
    free: float

    @property
    def gain(self) -> float:
        """Throughput without the object over that with it."""
        return self.free / self.base


def answers(cells: Iterable[Cell]) -> list[WhatIf]:
    """The answers by the name of their point, the largest gain of a point first."""
    base: dict[str, list[float]] = defaultdict(list)
    free: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in cells:
        if cell.status != "ok" or cell.simulation is None:
            continue
        if cell.key.side is None:
            base[cell.key.point].append(cell.ops_per_second)
        elif cell.key.whatif:
            plain = cell.key.model_copy(update={"side": None})
            free[plain.point, ", ".join(cell.simulation.free)].append(cell)
    results = [
        WhatIf(
            same[0].key.model_copy(update={"side": None}),
            thing,
            statistics.median(base[point]),
            statistics.median(cell.ops_per_second for cell in same),
        )
        for (point, thing), same in free.items()
        if point in base
    ]
    return sorted(results, key=lambda a: (a.key.workload, a.key.filesystem, a.key.cores, -a.gain))
