# SPDX-License-Identifier: GPL-2.0-only
"""Statistics of a point: the repetitions of one cell, each on a fresh file system."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fscale.analysis.metrics import THROUGHPUT, VALUES
from fscale.model.bench import CpuTimes
from fscale.model.results import Cell, CellKey
from fscale.model.words import natural

CPU_STATES = ("user", "system", "iowait", "irq", "steal", "idle")
QUARTILES_FROM = 5  # with fewer repetitions, quartiles say no more than the extremes


@dataclass(frozen=True)
class Spread:
    """An interval around a median, in the median's unit, and its kind."""

    low: float
    high: float
    kind: str  # "none" (one repetition), "min-max" or "quartiles"

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> "Spread":
        """Min to max with fewer than five values, else the quartiles."""
        if len(values) < QUARTILES_FROM:
            kind = "none" if len(values) == 1 else "min-max"
            return cls(float(values.min()), float(values.max()), kind)
        low, high = np.percentile(values, (25, 75))
        return cls(float(low), float(high), "quartiles")


@dataclass(frozen=True)
class Point:
    """The scored repetitions of one cell (`fscale.model.results.CellKey.point`)."""

    key: CellKey
    unit: str
    cells: tuple[Cell, ...]
    run: str | None = None
    """the run's label in a report of several"""
    metric: str = THROUGHPUT
    """what `values`, `median` and `spread` are of; each cell has it"""
    hosts: frozenset[str] = frozenset()
    """the machines that measured its cells; empty: the run's only one"""

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The metric, one value per repetition: operations per second unless it is another one."""
        return np.array([VALUES[self.metric](c) for c in self.cells], dtype=np.float64)

    @property
    def n(self) -> int:
        """The number of repetitions."""
        return len(self.cells)

    @cached_property
    def median(self) -> float:
        """Median of the metric."""
        return float(np.median(self.values))

    @cached_property
    def spread(self) -> Spread:
        """The spread of the metric."""
        return Spread.of(self.values)

    @cached_property
    def mad(self) -> float | None:
        """Median absolute deviation of the metric; None with one repetition."""
        return float(np.median(np.abs(self.values - self.median))) if self.n > 1 else None

    @property
    def disturbed(self) -> int:
        """The number of repetitions that other processes disturbed."""
        return sum(c.disturbed is not None for c in self.cells)

    @property
    def simulated(self) -> bool:
        """Whether the simulator made these figures."""
        return any(c.simulation is not None for c in self.cells)

    @property
    def workers(self) -> int:
        """The number of counted processes, without a background writer."""
        bench = self.cells[0].bench
        return len(bench.workers) if bench else self.key.cores * self.key.workers_per_cpu

    @property
    def worked_cores(self) -> int:
        """The number of CPUs with a counted process."""
        return self.workers // self.key.workers_per_cpu

    @cached_property
    def background(self) -> float | None:
        """Median operations per second of the writer beside the readers; None without one."""
        rates = [
            c.bench.background.ops / c.seconds for c in self.cells if c.bench and c.bench.background
        ]
        return float(np.median(rates)) if rates else None

    @cached_property
    def cpu(self) -> dict[str, float] | None:
        """Fraction of the CPUs' time in each of `CPU_STATES`, over all repetitions; sums to 1."""
        times = [c.cpu for c in self.cells if c.cpu is not None and c.cpu.total > 0]
        return _fractions(times) if times else None

    def of(self, metric: str) -> tuple[float, Spread] | None:
        """Median and spread of a metric (`metrics`); None unless all repetitions have it.

        Latencies are in seconds.
        """
        measured = [VALUES[metric](cell) for cell in self.cells]
        known = [value for value in measured if value is not None and math.isfinite(value)]
        if len(known) < self.n:
            return None
        values = np.array(known)
        return float(np.median(values)), Spread.of(values)

    @cached_property
    def ops_per_cpu_second(self) -> float | None:
        """Median operations per second of the cell's own CPU time; None if not recorded."""
        values = [c.ops / c.own_cpu_seconds for c in self.cells if c.own_cpu_seconds]
        return float(np.median(values)) if len(values) == self.n else None


@dataclass(frozen=True)
class Ratio:
    """A speed-up and its interval, from the spreads of its two points."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, point: Point, base: Point) -> "Ratio":
        """Throughput of `point` over that of `base`."""
        return cls(
            point.median / base.median,
            point.spread.low / base.spread.high,
            point.spread.high / base.spread.low,
        )


def _fractions(times: list[CpuTimes]) -> dict[str, float]:
    total = sum(t.total for t in times)
    fractions = {state: sum(getattr(t, state) for t in times) / total for state in CPU_STATES}
    fractions["irq"] += sum(t.softirq for t in times) / total
    return fractions


def summarise(
    scored: Iterable[Cell],
    run: str | None = None,
    metric: str = THROUGHPUT,
    hosts: Mapping[str, str] | None = None,
) -> list[Point]:
    """Group scored cells of one run into points, ordered by their names and core counts.

    `run` is its label if there are several, `hosts` are its `Results.hosts`. A point is left out if
    one of its cells lacks the metric: slow repetitions are those that lack a percentile, and the
    others do not stand for them.
    """
    known = hosts or {}
    groups: dict[str, list[Cell]] = defaultdict(list)
    for cell in scored:
        groups[cell.key.point].append(cell)
    points = []
    for cells in groups.values():
        if any(VALUES[metric](cell) is None for cell in cells):
            continue
        cells.sort(key=lambda c: c.key.repetition)
        machines = frozenset(known[c.id] for c in cells if c.id in known)
        points.append(Point(cells[0].key, cells[0].unit, tuple(cells), run, metric, machines))
    return sorted(
        points,
        key=lambda p: (
            *(p.key.workload, p.key.medium, p.key.mode, p.key.filesystem),
            *(natural(p.key.variant), p.key.cores),
        ),
    )
