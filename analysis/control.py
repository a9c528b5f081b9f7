# SPDX-License-Identifier: GPL-2.0-only
"""What the machine itself gives: the controls of a run, by which linear scaling is judged.

One busy core may be faster than many (turbo, heat, a power limit, a hypervisor), so that workers
which share nothing do not reach n times the throughput of one. The controls are such workers.
"""

import statistics
from collections import defaultdict
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

from analysis.reader import Results
from analysis.summary import Point, Ratio, summarise
from fscale.model.topology import Layout, machine_layout

DEGRADED_BELOW = 0.6  # of linear: a control that is this slow is no yardstick
FEWEST = 2  # repetitions of a point: one alone has no spread


class Basis(Enum):
    """What linear scaling goes by at a core count; the value says why."""

    BASE = "the base"
    CONTROL = "the control"
    SPREAD = "physical cores: the control reaches them within its spread"
    DEGRADED = "physical cores: the control is too slow to be believed"
    MISSING = "physical cores: no control has two repetitions here that others did not disturb"


@dataclass(frozen=True)
class Given:
    """What a machine gave at a core count, over what it gave at the run's lowest."""

    cores: int
    speedups: tuple[tuple[str, Ratio, Point], ...]
    """of each control: its workload, its speed-up, and its point"""
    linear: float
    """the speed-up that physical cores promise"""
    basis: Basis
    efficiency: float
    """the share of `linear` that verdicts take for linear"""
    khz: float | None = None
    """median frequency of the CPUs under the controls; None where the machine does not say it"""
    best: Ratio | None = None
    """of the control that gained most, undisturbed; None where too little of it is"""


@dataclass(frozen=True)
class Control:
    """The controls of a run, and the core counts at which it measured anything."""

    points: tuple[Point, ...]
    counts: tuple[int, ...]
    layout: Layout | None = None

    @cached_property
    def given(self) -> tuple[Given, ...]:
        """By rising core counts."""
        curves: dict[str, dict[int, Point]] = defaultdict(dict)
        for point in self.points:
            curves[point.key.workload][point.key.cores] = point
        counts = sorted({*self.counts, *(point.key.cores for point in self.points)})
        based = {name: own for name, own in curves.items() if counts[0] in own}
        found: list[Given] = []
        for count in counts:
            found.append(self._given(count, counts[0], based, found))
        return tuple(found)

    def _given(
        self, count: int, first: int, curves: dict[str, dict[int, Point]], before: list[Given]
    ) -> Given:
        linear = self._physical(count) / self._physical(first)
        speedups = tuple(
            (name, Ratio.of(own[count], own[first]), own[count])
            for name, own in sorted(curves.items())
            if count in own
        )
        khz = [cell.frequency_khz for _, _, point in speedups for cell in point.cells]
        known = [one for one in khz if one is not None]
        median = statistics.median(known) if known else None
        given = Given(count, speedups, linear, Basis.BASE, 1.0, median)
        if count == first:
            return replace(given, best=Ratio(1.0, 1.0, 1.0) if speedups else None)
        # Two threads of a core share it by the kind of their work, so they add nothing to linear.
        full = [g.efficiency for g in before if g.cores <= self._physical(count) < count]
        most = full[-1] if full else 1.0
        sure = [
            Ratio.of(point, base)
            for own in curves.values()
            if count in own and (point := _undisturbed(own[count]))
            if (base := _undisturbed(own[first]))
        ]
        if not sure:
            return replace(given, basis=Basis.MISSING, efficiency=most)
        # The control that gains most: what holds up only one of them is no limit of the machine.
        best = max(sure, key=lambda r: r.value)
        given = replace(given, best=best, efficiency=most)
        if best.high / linear >= most:
            return replace(given, basis=Basis.SPREAD)
        if best.value / linear < DEGRADED_BELOW:
            return replace(given, basis=Basis.DEGRADED)
        return replace(given, basis=Basis.CONTROL, efficiency=best.value / linear)

    def _physical(self, count: int) -> int:
        return self.layout.physical(count) if self.layout else count

    def efficiency(self, cores: int) -> float:
        """The share of a physical core's throughput at the base that one has at a core count.

        It is 1 where the controls say nothing, or nothing that is sure.
        """
        return next((g.efficiency for g in self.given if g.cores == cores), 1.0)

    def measured(self, cores: int) -> float | None:
        """The speed-up of the control that gained most; None where that is not known.

        It is at most linear: more is noise, as of a base that others slowed.
        """
        given = next((g for g in self.given if g.cores == cores), None)
        return min(given.best.value, given.linear) if given and given.best else None


def _undisturbed(point: Point) -> Point | None:
    """The point without what others disturbed; None where too little is left."""
    quiet = tuple(cell for cell in point.cells if cell.disturbed is None)
    return replace(point, cells=quiet) if len(quiet) >= FEWEST else None


def control_of(results: Results) -> Control | None:
    """The controls of a run; None where it has none."""
    if not results.controls:
        return None
    good = [cell for cell in results.controls if cell.status == "ok"]
    counts = sorted({cell.key.cores for cell in results.scored})
    return Control(tuple(summarise(good)), tuple(counts), machine_layout(results.run.machine))
