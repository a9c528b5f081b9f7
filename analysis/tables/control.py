# SPDX-License-Identifier: GPL-2.0-only
"""A row for each control and core count: how far the machine itself scales."""

from collections.abc import Callable
from dataclasses import dataclass

from fscale.analysis.control import Control, Given
from fscale.analysis.summary import Point, Ratio
from fscale.analysis.tables.column import RUN_NAME, Column, Row, Value, make_row


@dataclass(frozen=True)
class Controlled:
    """A control at a core count; `run` is the name of its run."""

    run: str
    given: Given
    workload: str
    speedup: Ratio
    point: Point


def rows(run: str, control: Control | None) -> list[Row]:
    """The rows of a run; none if it has no control."""
    return [
        make_row(COLUMNS, Controlled(run, given, *measured))
        for given in (control.given if control else ())
        for measured in given.speedups
    ]


def _figure(
    name: str, meaning: str, value: Callable[[Controlled], Value], unit: str = ""
) -> Column[Controlled]:
    return Column(name, "number", meaning, value, unit)


COLUMNS: tuple[Column[Controlled], ...] = (
    Column("run", "string", RUN_NAME, lambda c: c.run),
    Column("workload", "string", "the control, whose workers share nothing", lambda c: c.workload),
    Column("cores", "integer", "CPUs under test", lambda c: c.given.cores),
    Column("repetitions", "integer", "repetitions with a figure", lambda c: c.point.n),
    Column(
        "disturbed",
        "integer",
        "repetitions among them that other processes disturbed",
        lambda c: c.point.disturbed,
    ),
    _figure("median_per_second", "throughput, median", lambda c: c.point.median, "1/s"),
    _figure("low_per_second", "lower end of the spread", lambda c: c.point.spread.low, "1/s"),
    _figure("high_per_second", "upper end of the spread", lambda c: c.point.spread.high, "1/s"),
    _figure("speedup", "median over the median at the fewest cores", lambda c: c.speedup.value),
    _figure("speedup_low", "lowest speed-up that both spreads allow", lambda c: c.speedup.low),
    _figure("speedup_high", "highest speed-up that both spreads allow", lambda c: c.speedup.high),
    _figure("physical", "speed-up by the number of physical cores", lambda c: c.given.linear),
    _figure(
        "efficiency",
        "share of `physical` that counts as linear at this core count",
        lambda c: c.given.efficiency,
    ),
    _figure(
        "linear",
        "speed-up that counts as linear: `physical` times `efficiency`",
        lambda c: c.given.linear * c.given.efficiency,
    ),
    Column("basis", "string", "what `linear` is based on", lambda c: c.given.basis.value),
    _figure(
        "frequency_hz",
        "median frequency of the CPUs under the controls",
        lambda c: c.given.khz and 1000 * c.given.khz,
        "Hz",
    ),
)
