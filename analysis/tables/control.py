# SPDX-License-Identifier: GPL-2.0-only
"""A row for each control and core count: how far the machine itself scales."""

from dataclasses import dataclass

from fscale.analysis.control import Control, Given
from fscale.analysis.summary import Point, Ratio
from fscale.analysis.tables.column import RUN_NAME, Column, Row, figure, make_row


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
    figure("median_per_second", "throughput, median", lambda c: c.point.median, "1/s"),
    figure("low_per_second", "lower end of the spread", lambda c: c.point.spread.low, "1/s"),
    figure("high_per_second", "upper end of the spread", lambda c: c.point.spread.high, "1/s"),
    figure("speedup", "median over the median at the fewest cores", lambda c: c.speedup.value),
    figure("speedup_low", "lowest speed-up that both spreads allow", lambda c: c.speedup.low),
    figure("speedup_high", "highest speed-up that both spreads allow", lambda c: c.speedup.high),
    figure("physical", "speed-up by the number of physical cores", lambda c: c.given.linear),
    figure(
        "efficiency",
        "share of `physical` that counts as linear at this core count",
        lambda c: c.given.efficiency,
    ),
    figure(
        "linear",
        "speed-up that counts as linear: `physical` times `efficiency`",
        lambda c: c.given.linear * c.given.efficiency,
    ),
    Column("basis", "string", "what `linear` is based on", lambda c: c.given.basis.value),
    figure(
        "frequency_hz",
        "median frequency of the CPUs under the controls",
        lambda c: c.given.khz and 1000 * c.given.khz,
        "Hz",
    ),
)
