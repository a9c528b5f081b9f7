# SPDX-License-Identifier: GPL-2.0-only
"""The controls of a run, which show how far this machine itself scales.

A single busy core may be faster than each of many (turbo, heat, a power limit, a hypervisor), so
even workers that share nothing may not reach n times the throughput of one. Controls are such
workers; linear scaling is judged by them.
"""

import statistics
from collections import defaultdict
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

from fscale.analysis.reader import Results
from fscale.analysis.summary import Point, Ratio, summarise
from fscale.model.topology import Layout, machine_layout

DEGRADED_BELOW = 0.6  # of linear: a slower control is not used as the reference
MIN_REPETITIONS = 2  # of a point: a single one has no spread


class Basis(Enum):
    """The basis of linear scaling at a core count; the value is shown to the user."""

    BASE = "the base"
    CONTROL = "the control"
    SPREAD = "physical cores: the control reaches them within its spread"
    DEGRADED = "physical cores: the control is too slow to serve as the reference"
    MISSING = "physical cores: no control has two undisturbed repetitions here"


@dataclass(frozen=True)
class Given:
    """The controls at a core count, relative to the run's lowest core count."""

    cores: int
    speedups: tuple[tuple[str, Ratio, Point], ...]
    """workload, speed-up and point of each control"""
    linear: float
    """the speed-up by the number of physical cores"""
    basis: Basis
    efficiency: float
    """the share of `linear` that verdicts use as linear"""
    khz: float | None = None
    """median frequency of the CPUs under the controls; None if the machine does not report it"""
    best: Ratio | None = None
    """undisturbed speed-up of the control that gained most; None if too little is undisturbed"""


@dataclass(frozen=True)
class Control:
    """The controls of a run, and the core counts at which it measured anything."""

    points: tuple[Point, ...]
    counts: tuple[int, ...]
    layout: Layout | None = None

    @cached_property
    def given(self) -> tuple[Given, ...]:
        """The controls at each core count, ascending."""
        curves: dict[str, dict[int, Point]] = defaultdict(dict)
        for point in self.points:
            curves[point.key.workload][point.key.cores] = point
        counts = sorted({*self.counts, *(point.key.cores for point in self.points)})
        based = {name: points for name, points in curves.items() if counts[0] in points}
        given: list[Given] = []
        for count in counts:
            given.append(self._given(count, counts[0], based, given))
        return tuple(given)

    def _given(
        self, count: int, first: int, curves: dict[str, dict[int, Point]], before: list[Given]
    ) -> Given:
        linear = self._physical(count) / self._physical(first)
        speedups = tuple(
            (name, Ratio.of(points[count], points[first]), points[count])
            for name, points in sorted(curves.items())
            if count in points
        )
        khz = [cell.frequency_khz for _, _, point in speedups for cell in point.cells]
        known = [one for one in khz if one is not None]
        median = statistics.median(known) if known else None
        given = Given(count, speedups, linear, Basis.BASE, 1.0, median)
        if count == first:
            return replace(given, best=Ratio(1.0, 1.0, 1.0) if speedups else None)
        # What a second hardware thread adds depends on the work, so it adds nothing to linear.
        full = [g.efficiency for g in before if g.cores <= self._physical(count) < count]
        most = full[-1] if full else 1.0
        undisturbed = [
            Ratio.of(point, base)
            for points in curves.values()
            if count in points and (point := _undisturbed(points[count]))
            if (base := _undisturbed(points[first]))
        ]
        if not undisturbed:
            return replace(given, basis=Basis.MISSING, efficiency=most)
        # Use the control that gains most: a limit that only one of them meets is not the machine's.
        best = max(undisturbed, key=lambda r: r.value)
        given = replace(given, best=best, efficiency=most)
        if best.high / linear >= most:
            return replace(given, basis=Basis.SPREAD)
        if best.value / linear < DEGRADED_BELOW:
            return replace(given, basis=Basis.DEGRADED)
        return replace(given, basis=Basis.CONTROL, efficiency=best.value / linear)

    def _physical(self, count: int) -> int:
        return self.layout.physical(count) if self.layout else count

    def efficiency(self, cores: int) -> float:
        """The throughput of a physical core at a core count, as a share of that at the base.

        It is 1 if the controls show nothing, or nothing reliable.
        """
        return next((g.efficiency for g in self.given if g.cores == cores), 1.0)

    def measured(self, cores: int) -> float | None:
        """The speed-up of the control that gained most; None if it is not known.

        It is at most linear: more is noise, for example from a disturbed base.
        """
        entry = next((g for g in self.given if g.cores == cores), None)
        return min(entry.best.value, entry.linear) if entry and entry.best else None


def _undisturbed(point: Point) -> Point | None:
    """The point without disturbed repetitions; None if too few are left."""
    quiet = tuple(cell for cell in point.cells if cell.disturbed is None)
    return replace(point, cells=quiet) if len(quiet) >= MIN_REPETITIONS else None


def control_of(results: Results) -> Control | None:
    """The controls of a run; None if it has none."""
    if not results.controls:
        return None
    good = [cell for cell in results.controls if cell.status == "ok"]
    counts = sorted({cell.key.cores for cell in results.scored})
    return Control(tuple(summarise(good)), tuple(counts), machine_layout(results.run.machine))
