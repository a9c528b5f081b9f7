# SPDX-License-Identifier: GPL-2.0-only
"""How long cells will take, before any of them has run."""

from collections.abc import Sequence

from fscale.model.results import CellKey
from fscale.runner.progress import duration

# Seconds of mkfs, mount, set-up and unmount: `make run` on two cores took 422 s, build and report
# included, for 304 cells of 0.6 s.
FRESH = 0.8


def seconds(cells: Sequence[CellKey], warmup: float) -> float:
    """Seconds that cells take, each with a warm-up of so many; restocking is not in it."""
    return sum(FRESH + warmup + cell.duration for cell in cells)


def told(cells: Sequence[CellKey], warmup: float) -> str:
    """`304 cells to measure: about 7:06, and what restocking takes`."""
    about = duration(seconds(cells, warmup))
    return f"{len(cells)} cells to measure: about {about}, and what restocking takes"
