# SPDX-License-Identifier: GPL-2.0-only
"""Chooses the cells of a finished run that are worth measuring again.

No cell is replaced twice. Whether other load disturbed a cell is known without its figure, so
replacing it selects none. Curves that are faster than linear are selected by their figures; so all
repetitions of both points of the doubtful quotient are measured again, and the new ones count.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fscale.analysis.conclusion import pages_of
from fscale.analysis.findings import Scaling, findings
from fscale.analysis.reader import load
from fscale.model.results import Cell

FASTER = "its curve was faster than linear"


def disturbed(directory: Path, seconds: float) -> Mapping[str, str]:
    """Choose disturbed cells: their ids, and what disturbed them.

    Points with the fewest undisturbed repetitions come first, and of these those with the fewest
    cores, because speed-ups refer to them; the others in the order in which they were measured,
    which is random. A cell is expected to take as long as it took.
    """
    points: dict[str, list[Cell]] = defaultdict(list)
    for cell in load(directory).every:
        if cell.status == "ok" and cell.key.profile is None:
            points[cell.key.point].append(cell)
    ranked: list[tuple[int, int, str, Cell]] = []
    for cells in points.values():
        doubtful = [c for c in cells if c.disturbed is not None]
        quiet = len(cells) - len(doubtful)
        waiting = [c for c in doubtful if c.replaces is None]
        ranked += [(quiet + n, c.key.cores, c.started, c) for n, c in enumerate(waiting)]
    ranked.sort(key=lambda one: one[:3])
    chosen = _fitting(([cell] for *_, cell in ranked), seconds)
    return {cell.id: str(cell.disturbed) for cell in chosen}


def faster_than_linear(directory: Path, seconds: float) -> Mapping[str, str]:
    """Choose the base and the highest core count of curves that are faster than linear.

    A curve is chosen whole or not at all, and not if one of these cells was replaced before.
    """
    found = [f for page in pages_of(load(directory)) for f in findings(page)]
    curves = sorted(
        (f for f in found if f.verdict is Scaling.SUPERLINEAR),
        key=lambda f: f.curve.most / f.ratio.value,
    )
    groups = ([*f.curve.points[0].cells, *f.curve.top.cells] for f in curves)
    fresh = [cells for cells in groups if all(c.replaces is None for c in cells)]
    return {cell.id: FASTER for cell in _fitting(fresh, seconds)}


CHOICES = (disturbed, faster_than_linear)


def _fitting(groups: Iterable[Sequence[Cell]], seconds: float) -> Iterable[Cell]:
    """Return the cells of the first groups for which the time is enough."""
    chosen: dict[str, Cell] = {}
    for cells in groups:
        # A file system without a medium is on the page of each medium.
        more = {c.id: c for c in cells if c.id not in chosen}
        seconds -= sum(c.wall_seconds or 0.0 for c in more.values())
        if seconds < 0:
            break
        chosen |= more
    return chosen.values()
