# SPDX-License-Identifier: GPL-2.0-only
"""Chooses the cells of a finished run that are worth measuring again.

Each cell is replaced at most once. Whether other load disturbed a cell is known without its figure,
so the new figures of such cells are not selected. Curves that are faster than linear are selected
by their figures. To let none of them decide which cell is replaced, all repetitions of both points
whose quotient is doubtful are measured again.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fscale.analysis.conclusion import pages_of
from fscale.analysis.findings import Scaling, findings
from fscale.analysis.reader import Results, load
from fscale.model.results import Cell

FASTER = "its curve was faster than linear"


def disturbed(directory: Path, budget: float) -> Mapping[str, str]:
    """Choose disturbed cells: their ids, and what disturbed them.

    Points with the fewest undisturbed repetitions come first, and of these those with the fewest
    cores, because speed-ups refer to them. `budget` is in seconds, over all calls of the run.
    """
    results = load(directory)
    points: dict[str, list[Cell]] = defaultdict(list)
    for cell in results.every:
        if cell.status == "ok" and cell.key.profile is None:
            points[cell.key.point].append(cell)
    ranked: list[tuple[int, int, Cell]] = []
    for cells in points.values():
        doubtful = [c for c in cells if c.disturbed is not None]
        quiet = len(cells) - len(doubtful)
        waiting = [c for c in doubtful if c.replaces is None]
        ranked += [(quiet + n, c.key.cores, c) for n, c in enumerate(waiting)]
    ranked.sort(key=lambda one: one[:2])
    chosen = _fitting(results, [[cell] for *_, cell in ranked], budget)
    return {cell.id: str(cell.disturbed) for cell in chosen}


def faster_than_linear(directory: Path, budget: float) -> Mapping[str, str]:
    """Choose the base and the highest core count of curves that are faster than linear: likewise.

    A curve is chosen whole or not at all, and not if one of these cells was replaced before.
    """
    results = load(directory)
    found = [f for page in pages_of(results) for f in findings(page)]
    curves = sorted(
        (f for f in found if f.verdict is Scaling.SUPERLINEAR),
        key=lambda f: f.curve.most / f.ratio.value,
    )
    groups = ([*f.curve.points[0].cells, *f.curve.top.cells] for f in curves)
    fresh = [cells for cells in groups if all(c.replaces is None for c in cells)]
    return {cell.id: FASTER for cell in _fitting(results, fresh, budget)}


CHOICES = (disturbed, faster_than_linear)


def _fitting(results: Results, groups: Iterable[Sequence[Cell]], budget: float) -> Iterable[Cell]:
    """Return the cells of the first groups for which the budget is enough.

    A cell is expected to take as long as it took.
    """
    left = budget - sum(c.wall_seconds or 0.0 for c in results.every if c.replaces is not None)
    chosen: dict[str, Cell] = {}
    for cells in groups:
        # A file system without a medium is on the page of each medium.
        more = {c.id: c for c in cells if c.id not in chosen}
        left -= sum(c.wall_seconds or 0.0 for c in more.values())
        if left < 0:
            break
        chosen |= more
    return chosen.values()
