# SPDX-License-Identifier: GPL-2.0-only
"""Latency against load: a sweep by `rate`, in which operations arrive whether or not others ended.

A closed loop has no such curve: its load falls as its latency rises (Schroeder, Wierman,
Harchol-Balter, Open Versus Closed, NSDI '06, section 3).
"""

from dataclasses import dataclass, replace

from fscale.analysis.metrics import VALUES
from fscale.analysis.summary import Point
from fscale.analysis.sweeps import Sweep
from fscale.analysis.windows import not_begun
from fscale.model.words import plural

RATE = "rate"
"""the axis of such a sweep: arrivals per second and worker; 0 is a closed loop"""
PERCENTILE = "p99"


@dataclass(frozen=True)
class Loaded:
    """A point of an open loop."""

    offered: float
    """arrivals per second of all workers"""
    point: Point
    """its latency, in seconds"""

    @property
    def exceeded(self) -> bool:
        """Whether a repetition got more than was served; its latency grows with its duration."""
        return any(map(not_begun, self.point.cells))


def by_cores(sweep: Sweep) -> dict[str, list[Loaded]]:
    """The points by core count ("2 cores"), each in the order of the load.

    Empty if the sweep has another axis. Points whose latencies were not recorded are left out.
    """
    found: dict[str, list[Loaded]] = {}
    for member in sweep.members if sweep.axis == RATE else ():
        if not isinstance(member.value, int) or not member.value:
            continue
        for point in member.curve.points:
            cells = tuple(cell for cell in point.cells if VALUES[PERCENTILE](cell) is not None)
            if cells:
                of_cores = found.setdefault(plural(point.key.cores, "core"), [])
                timed = replace(point, metric=PERCENTILE, cells=cells)
                of_cores.append(Loaded(float(member.value * point.workers), timed))
    return found
