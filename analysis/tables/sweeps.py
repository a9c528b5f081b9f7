# SPDX-License-Identifier: GPL-2.0-only
"""A row for each point of a sweep, once for each axis in which the point varies."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fscale.analysis.curves import Page
from fscale.analysis.sweeps import Value, sweeps
from fscale.analysis.tables import points
from fscale.analysis.tables.column import PLACE, Column, Row, make_row
from fscale.analysis.tables.points import Drawn


@dataclass(frozen=True)
class Swept(Drawn):
    """A point by one of its axes."""

    axis: str
    value: Value


def rows(pages: Iterable[Page], names: Mapping[str | None, str]) -> list[Row]:
    """One row per point and axis; `names` are those of the runs by their labels.

    A point on several pages has one row for each axis.
    """
    unique = {
        (point.run, point.key.point, sweep.axis): Swept(
            names[point.run], member.panel, member.curve, point, sweep.axis, member.value
        )
        for sweep in sweeps(pages)
        for member in sweep.members
        for point in member.curve.points
    }
    return [make_row(COLUMNS, swept) for swept in unique.values()]


COLUMNS: tuple[Column[Swept], ...] = (
    *PLACE,
    Column(
        "axis",
        "string",
        "what varies: a workload option, workers_per_cpu, or options of the file system",
        lambda s: s.axis,
    ),
    Column("value", "string", "the value of the axis", lambda s: str(s.value)),
    Column(
        "number",
        "integer",
        "the same as a number, empty if it is none",
        lambda s: s.value if isinstance(s.value, int) else None,
    ),
    *points.COLUMNS[len(PLACE) :],
)
