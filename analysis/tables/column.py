# SPDX-License-Identifier: GPL-2.0-only
"""A column of a table: its type, unit and meaning, and how it is taken from what a row is of."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

from fscale.analysis.cells import options
from fscale.model.files import printable
from fscale.model.results import Cell, CellKey, Run

Value = str | int | float | bool | None
Type = Literal["string", "integer", "number", "boolean"]
Row = dict[str, Value]
Source_contra = TypeVar("Source_contra", contravariant=True)


@dataclass(frozen=True)
class Column(Generic[Source_contra]):
    """A column; `value` returns None where it is not known."""

    name: str
    type: Type
    meaning: str
    value: Callable[[Source_contra], Value]
    unit: str = ""
    """s, 1/s, ...; empty for text, counts and shares"""


def figure(
    name: str, meaning: str, value: Callable[[Source_contra], Value], unit: str = ""
) -> Column[Source_contra]:
    """A column of numbers."""
    return Column(name, "number", meaning, value, unit)


def make_row(columns: Iterable[Column[Source_contra]], source: Source_contra) -> Row:
    """The values of a row by column; text without unprintable characters."""
    return {column.name: _plain(column.value(source)) for column in columns}


def _plain(value: Value) -> Value:
    return printable(value) if isinstance(value, str) else value


RUN_NAME = "name of the run; of several runs: the label that tells it apart"


class Placed(Protocol):
    """What a row about a cell or a point is of."""

    @property
    def run(self) -> str:
        """The name of the run."""

    @property
    def key(self) -> CellKey:
        """The key of the cell, or of one cell of the point."""


class OfRun(Protocol):
    """What a row with facts of its run is of."""

    @property
    def run(self) -> str:
        """The name of the run."""

    @property
    def about(self) -> Run:
        """The run."""


class OfCell(Protocol):
    """What a row about a repetition is of."""

    @property
    def cell(self) -> Cell:
        """The cell of the repetition."""


PLACE: tuple[Column[Placed], ...] = (
    Column("run", "string", RUN_NAME, lambda o: o.run),
    Column("point", "string", "id of the cell without its repetition", lambda o: o.key.point),
    Column("workload", "string", "name as in `fscale list workloads`", lambda o: o.key.workload),
    Column("options", "string", "workload options, name=value", lambda o: options(o.key)),
    Column("filesystem", "string", "file system under test", lambda o: o.key.filesystem),
    Column("side", "string", "A or B of an interleaved comparison", lambda o: o.key.side),
    Column("medium", "string", "storage medium; none: in memory", lambda o: o.key.medium),
    Column("mode", "string", "I/O mode: buffered, direct, dontcache", lambda o: o.key.mode),
    Column("cores", "integer", "CPUs under test", lambda o: o.key.cores),
    Column(
        "workers_per_cpu",
        "integer",
        "workers pinned to each CPU under test",
        lambda o: o.key.workers_per_cpu,
    ),
    Column(
        "placement",
        "string",
        "CPUs that a core count takes: packed, spread",
        lambda o: o.key.placement,
    ),
    Column("duration", "number", "requested timed seconds", lambda o: o.key.duration, "s"),
)
"""the columns with which every table about cells or points begins"""

REPETITION: Column[OfCell] = Column(
    "repetition", "integer", "from 1", lambda o: o.cell.key.repetition
)
DISTURBED: Column[OfCell] = Column(
    "disturbed",
    "string",
    "why the load of other processes makes its figures doubtful; empty: it does not",
    lambda o: o.cell.disturbed,
)

RUN_FACTS: tuple[Column[OfRun], ...] = (
    Column("host", "string", "host name", lambda o: o.about.machine.hostname),
    Column("kernel", "string", "`uname -r`", lambda o: o.about.machine.kernel),
    Column(
        "machine",
        "string",
        "native, or the kind of guest: kvm, tcg, tcg-icount, simulated",
        lambda o: o.about.machine.kind,
    ),
    Column(
        "imported",
        "string",
        "logs of another program from which the run was imported; the load of others is not known",
        lambda o: o.about.imported,
    ),
    Column(
        "cpus_kept_free",
        "integer",
        "CPUs that stay online without a worker",
        lambda o: len(o.about.machine.kept_free),
    ),
)
"""the facts of a run that its row, and each of its repetitions, has"""
