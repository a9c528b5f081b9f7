# SPDX-License-Identifier: GPL-2.0-only
"""Estimates how long cells will take, before any of them has run."""

from collections.abc import Sequence

from fscale.model.results import CellKey
from fscale.runner.progress import duration

# Seconds per cell for mkfs, mount, set-up and unmount: `make run` on two cores took 422 s for 304
# cells of 0.6 s, with build and report.
FRESH = 0.8


def estimate_seconds(cells: Sequence[CellKey], warmup: float) -> float:
    """Estimate the seconds that cells take, each with `warmup` seconds, without restocking."""
    return sum(FRESH + warmup + cell.duration for cell in cells)


def format_estimate(cells: Sequence[CellKey], warmup: float) -> str:
    """Format the estimate: `304 cells to measure: about 7:06, plus restocking`."""
    about = duration(estimate_seconds(cells, warmup))
    return f"{len(cells)} cells to measure: about {about}, plus restocking"
