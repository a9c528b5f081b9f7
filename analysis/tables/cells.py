# SPDX-License-Identifier: GPL-2.0-only
"""A row for each repetition, with the figures and the status of its cell."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fscale.analysis.cells import cpu_seconds, cpu_times, in_order, simulated, workers
from fscale.analysis.metrics import NAMED_VALUES
from fscale.analysis.summary import CPU_STATES
from fscale.analysis.tables.column import (
    DISTURBED,
    PLACE,
    REPETITION,
    RUN_FACTS,
    Column,
    Row,
    Value,
    make_row,
)
from fscale.analysis.tables.machine import NamedResults
from fscale.analysis.tables.metrics import FAIRNESS_COLUMNS, LATENCY_COLUMNS, MEANINGS
from fscale.analysis.windows import commit_seconds, windows_of
from fscale.model.files import printable
from fscale.model.results import Cell, CellKey, Run


@dataclass(frozen=True)
class Repetition:
    """A cell, the run that it is of, and the run's name."""

    run: str
    about: Run
    cell: Cell

    @property
    def key(self) -> CellKey:
        """The key of the cell."""
        return self.cell.key


def rows(run: NamedResults, cells: Iterable[Cell]) -> list[Row]:
    """A row for each of these cells of a run, sorted by point."""
    return [make_row(COLUMNS, Repetition(run.run, run.about, cell)) for cell in in_order(cells)]


def unreadable_rows(run: NamedResults) -> list[Row]:
    """A row for each file of a run that cannot be used: its name and the reason."""
    none: Row = dict.fromkeys(column.name for column in COLUMNS)
    shared = none | make_row(RUN_FACTS, run)
    shared |= {"run": run.run, "status": "unreadable", "counts": False}
    return [
        shared | {"cell": one.file, "reason": printable(one.reason)}
        for one in run.results.unreadable
    ]


def _figure(
    name: str, meaning: str, value: Callable[[Cell], float | None], unit: str = ""
) -> Column[Repetition]:
    """A column that is empty unless the cell is `ok`."""

    def measured(one: Repetition) -> Value:
        return value(one.cell) if one.cell.status == "ok" else None

    return Column(name, "number", meaning, measured, unit)


def _background(cell: Cell) -> float | None:
    writer = cell.bench.background if cell.bench else None
    return writer.ops / cell.seconds if writer else None


def _longest_window(cell: Cell) -> float | None:
    windows = windows_of(cell)
    return windows.longest if windows else None


def _cpu(state: str) -> Callable[[Cell], float | None]:
    def value(cell: Cell) -> float | None:
        used = cpu_times(cell)
        return None if used is None else cpu_seconds(used, state)

    return value


COLUMNS: tuple[Column[Repetition], ...] = (
    *PLACE,
    Column("cell", "string", "id of the repetition, which names its file", lambda r: r.cell.id),
    REPETITION,
    Column("profile", "string", "profiler of a profiling repetition", lambda r: r.key.profile),
    Column("workers", "integer", "number of counted processes", lambda r: workers(r.cell)),
    Column("started", "string", "UTC, ISO 8601", lambda r: r.cell.started),
    Column(
        "status",
        "string",
        "ok, invalid, error, skipped, interrupted, unreadable; only ok has figures",
        lambda r: r.cell.status,
    ),
    Column(
        "counts",
        "boolean",
        "true if it is ok and not profiled, so that statistics may use it",
        lambda r: r.cell.status == "ok" and r.key.profile is None,
    ),
    Column("reason", "string", "why it has no figures", lambda r: r.cell.reason),
    DISTURBED,
    Column(
        "simulated",
        "boolean",
        "true if the simulator made it",
        lambda r: simulated(r.about, r.cell),
    ),
    Column("unit", "string", "unit of the operations", lambda r: r.cell.unit),
    _figure("ops", "operations in the timed windows", lambda c: c.ops),
    _figure("seconds", "sum of the timed windows", lambda c: c.seconds, "s"),
    _figure("longest_window_seconds", "the longest timed window", _longest_window, "s"),
    Column(
        "commit_seconds",
        "number",
        "time between two commits of the file system",
        lambda r: commit_seconds(r.about.filesystems.get(r.key.filesystem, {}), r.cell.mount),
        "s",
    ),
    _figure(
        "ops_per_second",
        "throughput of all workers; of a simulated cell: in its median window",
        lambda c: c.ops_per_second,
        "1/s",
    ),
    _figure(
        "backlog",
        "operations of the option rate that were due when the window ended and had not begun",
        lambda c: c.bench.backlog if c.bench else None,
    ),
    _figure("background_per_second", "rate of the writer beside the readers", _background, "1/s"),
    _figure(
        "own_cpu_seconds", "CPU time of the cell's own processes", lambda c: c.own_cpu_seconds, "s"
    ),
    _figure(
        "others_cpu_seconds",
        "CPU time of other processes on the CPUs under test",
        lambda c: c.others_cpu_seconds,
        "s",
    ),
    _figure("watts", "power of the processors and their memory", lambda c: c.watts, "W"),
    *(
        _figure(f"cpu_{state}_seconds", f"{state} time of the CPUs under test", _cpu(state), "s")
        for state in CPU_STATES
    ),
    *(
        _figure(column, MEANINGS[metric], NAMED_VALUES[metric], "s")
        for metric, column in LATENCY_COLUMNS.items()
    ),
    *(
        _figure(column, MEANINGS[metric], NAMED_VALUES[metric])
        for metric, column in FAIRNESS_COLUMNS.items()
    ),
    Column(
        "wall_seconds",
        "number",
        "time of the whole cell, including format, mount and set-up",
        lambda r: r.cell.wall_seconds,
        "s",
    ),
    *RUN_FACTS,
)
