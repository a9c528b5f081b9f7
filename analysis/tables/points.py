# SPDX-License-Identifier: GPL-2.0-only
"""A row for each point: medians and spreads of its repetitions, and its speed-up."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from fscale.analysis.curves import Curve, Page, Panel
from fscale.analysis.summary import CPU_STATES, Point, Ratio
from fscale.analysis.tables.column import PLACE, Column, Row, Value, figure, make_row
from fscale.analysis.tables.metrics import FAIRNESS_COLUMNS, LATENCY_COLUMNS, MEANINGS
from fscale.model.results import CellKey


@dataclass(frozen=True)
class Drawn:
    """A point on its curve and panel; `run` is the name of its run."""

    run: str
    panel: Panel
    curve: Curve
    point: Point

    @property
    def key(self) -> CellKey:
        """The key of one of its cells."""
        return self.point.key

    @property
    def speedup(self) -> Ratio | None:
        """Its throughput relative to the base of the curve; None for the base."""
        return self.curve.speedup(self.point)


def rows(pages: Iterable[Page], names: Mapping[str | None, str]) -> list[Row]:
    """One row per point, in the report's order; `names` are those of the runs by their labels.

    A point on several pages has one row.
    """
    unique = {
        (point.run, point.key.point): Drawn(names[point.run], panel, curve, point)
        for page in pages
        for panel, curve in page.curves
        for point in curve.points
    }
    return [make_row(COLUMNS, drawn) for drawn in unique.values()]


def _cpu(state: str) -> Callable[[Drawn], Value]:
    return lambda d: d.point.cpu[state] if d.point.cpu else None


def _median(metric: str) -> Callable[[Drawn], Value]:
    return lambda d: found[0] if (found := d.point.of(metric)) else None


def _cpu_seconds_each(drawn: Drawn) -> Value:
    per_cpu = drawn.point.ops_per_cpu_second
    return 1 / per_cpu if per_cpu else None


COLUMNS: tuple[Column[Drawn], ...] = (
    *PLACE,
    Column(
        "variant",
        "string",
        "what the name of its panel adds to the workload: options, workers per CPU, seconds",
        lambda d: d.panel.variant,
    ),
    Column("simulated", "boolean", "true if the simulator made it", lambda d: d.curve.simulated),
    Column("workers", "integer", "number of counted processes", lambda d: d.point.workers),
    Column("unit", "string", "unit of the operations", lambda d: d.point.unit),
    Column("repetitions", "integer", "repetitions that count", lambda d: d.point.n),
    Column(
        "disturbed",
        "integer",
        "repetitions among them that other processes disturbed",
        lambda d: d.point.disturbed,
    ),
    figure(
        "median_per_second",
        "throughput, median of the repetitions",
        lambda d: d.point.median,
        "1/s",
    ),
    figure("low_per_second", "lower end of the spread", lambda d: d.point.spread.low, "1/s"),
    figure("high_per_second", "upper end of the spread", lambda d: d.point.spread.high, "1/s"),
    Column(
        "spread",
        "string",
        "kind of the spread: min-max; quartiles from five repetitions on; none with one",
        lambda d: d.point.spread.kind,
    ),
    figure("mad_per_second", "median absolute deviation", lambda d: d.point.mad, "1/s"),
    figure(
        "background_per_second",
        "rate of the writer beside the readers, median",
        lambda d: d.point.background,
        "1/s",
    ),
    figure(
        "speedup",
        "median over the median of the base: one core, or two with a writer beside the readers",
        lambda d: d.speedup.value if d.speedup else None,
    ),
    figure(
        "speedup_low",
        "lowest speed-up that both spreads allow",
        lambda d: d.speedup.low if d.speedup else None,
    ),
    figure(
        "speedup_high",
        "highest speed-up that both spreads allow",
        lambda d: d.speedup.high if d.speedup else None,
    ),
    figure(
        "linear",
        "speed-up over the curve's first point if it were linear: by physical cores, each "
        "weighted by what the control gives",
        lambda d: d.curve.linear_at(d.point),
    ),
    figure(
        "per_cpu_second",
        "operations per second of the cell's own CPU time, median",
        lambda d: d.point.ops_per_cpu_second,
        "1/s",
    ),
    figure("cpu_seconds_each", "the cell's own CPU time per operation", _cpu_seconds_each, "s"),
    *(
        figure(f"cpu_{state}", f"share of {state} in the time of the CPUs under test", _cpu(state))
        for state in CPU_STATES
    ),
    *(
        figure(column, f"{MEANINGS[metric]}; median of the repetitions", _median(metric), "s")
        for metric, column in LATENCY_COLUMNS.items()
    ),
    *(
        figure(column, f"{MEANINGS[metric]}; median of the repetitions", _median(metric))
        for metric, column in FAIRNESS_COLUMNS.items()
    ),
)
