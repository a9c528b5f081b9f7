# SPDX-License-Identifier: GPL-2.0-only
"""Writes a row for each repetition, as CSV and as JSON (a Tabular Data Resource: schema, rows).

The schema follows https://specs.frictionlessdata.io/table-schema/, which
`pandas.read_json(path, orient="table")` reads with its types; `extDtype` is pandas' own key for
columns that may be empty.
"""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from fscale.analysis.formats.cells import (
    cpu_seconds,
    cpu_times,
    in_order,
    options,
    simulated,
    workers,
)
from fscale.analysis.metrics import FAIRNESS_VALUES, LATENCY_VALUES
from fscale.analysis.metrics import Value as Of
from fscale.analysis.point_table import FAIRNESS_COLUMNS, LATENCY_COLUMNS, spreadsheet_safe
from fscale.analysis.reader import Results, Unreadable
from fscale.analysis.summary import CPU_STATES
from fscale.analysis.windows import commit_seconds, windows_of
from fscale.model.files import printable
from fscale.model.results import Cell, Run

Value = str | int | float | bool | None
Type = Literal["string", "integer", "number", "boolean"]

_EXTENSION: dict[Type, str] = {"integer": "Int64", "boolean": "boolean"}
_SAID = {
    "p50": "median",
    "p99": "99th percentile",
    "p99.9": "99.9th percentile",
    "max": "maximum",
    "slowest-worker": "operations of the slowest worker over the workers' mean",
    "jain": "Jain's index of the workers' operations: 1 is fair",
}


@dataclass(frozen=True)
class Column:
    """A column: its content with the unit, and the function that takes it from a cell."""

    name: str
    type: Type
    description: str
    value: Callable[[Run, Cell], Value]
    measured: bool = False
    """whether it is a figure, which is empty unless the cell is `ok`"""


def to_csv(results: Results) -> str:
    """CSV: a header and a row for each repetition; empty means not known."""
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(column.name for column in COLUMNS)
    for row in rows(results):
        writer.writerow([spreadsheet_safe(value) for value in row.values()])
    return file.getvalue()


def to_json(results: Results) -> str:
    """JSON: `schema` with name, type and description of the columns; `data`, an object per row."""
    fields = [
        {"name": c.name, "type": c.type, "description": c.description}
        | ({"extDtype": _EXTENSION[c.type]} if c.type in _EXTENSION else {})
        for c in COLUMNS
    ]
    schema = {"fields": fields, "missingCells": results.missing}
    return json.dumps({"schema": schema, "data": rows(results)}, indent=1) + "\n"


def rows(results: Results) -> list[dict[str, Value]]:
    """A row with all columns for each repetition that left a file, sorted by point."""
    read = [
        {c.name: _value(c, results.run, cell) for c in COLUMNS} for cell in in_order(results.cells)
    ]
    return [*read, *(_unreadable(results.run, one) for one in results.unreadable)]


def _value(column: Column, run: Run, cell: Cell) -> Value:
    return None if column.measured and cell.status != "ok" else column.value(run, cell)


def _unreadable(run: Run, one: Unreadable) -> dict[str, Value]:
    known: dict[str, Value] = {
        "run": run.id,
        "host": run.machine.hostname,
        "kernel": run.machine.kernel,
        "machine": run.machine.kind,
        "imported": _text(run.imported),
        "cell": one.file,
        "status": "unreadable",
        "counts": False,
        "reason": printable(one.reason),
    }
    return {c.name: known.get(c.name) for c in COLUMNS}


def _background(_: Run, cell: Cell) -> Value:
    writer = cell.bench.background if cell.bench else None
    return writer.ops / cell.seconds if writer else None


def _cpu(state: str) -> Callable[[Run, Cell], Value]:
    def value(_: Run, cell: Cell) -> Value:
        used = cpu_times(cell)
        return None if used is None else cpu_seconds(used, state)

    return value


def _named(column: str, description: str, value_of: Of) -> Column:
    def value(_: Run, cell: Cell) -> Value:
        return value_of(cell)

    return Column(column, "number", description, value, True)


COLUMNS: tuple[Column, ...] = (
    Column("run", "string", "name of the run", lambda r, _: printable(r.id)),
    Column("host", "string", "host name", lambda r, _: printable(r.machine.hostname)),
    Column("kernel", "string", "`uname -r`", lambda r, _: printable(r.machine.kernel)),
    Column(
        "machine",
        "string",
        "native, or the kind of guest: kvm, tcg, tcg-icount, simulated",
        lambda r, _: printable(r.machine.kind),
    ),
    Column(
        "imported",
        "string",
        "logs of another program from which the run was imported; the load of others is not known",
        lambda r, _: _text(r.imported),
    ),
    Column("cell", "string", "id of the repetition, which names its file", lambda _, c: c.id),
    Column("point", "string", "id of the cell without its repetition", lambda _, c: c.key.point),
    Column("workload", "string", "name as in `fscale list workloads`", lambda _, c: c.key.workload),
    Column("options", "string", "workload options, name=value", lambda _, c: options(c)),
    Column("filesystem", "string", "file system under test", lambda _, c: c.key.filesystem),
    Column("medium", "string", "storage medium; none: in memory", lambda _, c: c.key.medium),
    Column("mode", "string", "I/O mode: buffered, direct, dontcache", lambda _, c: c.key.mode),
    Column("cores", "integer", "CPUs under test", lambda _, c: c.key.cores),
    Column("workers", "integer", "number of counted processes", lambda _, c: workers(c)),
    Column(
        "workers_per_cpu",
        "integer",
        "workers pinned to each CPU under test",
        lambda _, c: c.key.workers_per_cpu,
    ),
    Column(
        "placement",
        "string",
        "CPUs that a core count takes: packed, spread",
        lambda _, c: c.key.placement,
    ),
    Column(
        "cpus_kept_free",
        "integer",
        "CPUs that stay online without a worker",
        lambda r, _: len(r.machine.kept_free),
    ),
    Column("side", "string", "A or B of an interleaved comparison", lambda _, c: c.key.side),
    Column("profile", "string", "profiler of a profiling repetition", lambda _, c: c.key.profile),
    Column("repetition", "integer", "from 1", lambda _, c: c.key.repetition),
    Column("started", "string", "ISO 8601", lambda _, c: printable(c.started)),
    Column(
        "status",
        "string",
        "ok, invalid, error, skipped, interrupted, unreadable; only ok has figures",
        lambda _, c: c.status,
    ),
    Column(
        "counts",
        "boolean",
        "true if it is ok and not profiled, so that statistics may use it",
        lambda _, c: c.status == "ok" and c.key.profile is None,
    ),
    Column("reason", "string", "why it has no figures", lambda _, c: _text(c.reason)),
    Column(
        "disturbed",
        "string",
        "why the load of other processes makes its figures doubtful",
        lambda _, c: _text(c.disturbed),
    ),
    Column(
        "simulated",
        "boolean",
        "true if the simulator made it",
        simulated,
    ),
    Column("unit", "string", "unit of the operations", lambda _, c: c.unit),
    Column("ops", "number", "operations in the timed windows", lambda _, c: c.ops, True),
    Column("seconds", "number", "s, sum of the timed windows", lambda _, c: c.seconds, True),
    Column(
        "longest_window_seconds",
        "number",
        "s, the longest timed window",
        lambda _, c: windows.longest if (windows := windows_of(c)) else None,
        True,
    ),
    Column(
        "commit_seconds",
        "number",
        "s between two commits of the file system",
        lambda run, c: commit_seconds(run.filesystems.get(c.key.filesystem, {}), c.mount),
    ),
    Column(
        "ops_per_second",
        "number",
        "1/s; for a simulated cell, that of the median window",
        lambda _, c: c.ops_per_second,
        True,
    ),
    Column(
        "background_per_second",
        "number",
        "1/s, rate of the writer beside the readers",
        _background,
        True,
    ),
    Column(
        "own_cpu_seconds",
        "number",
        "s, CPU time of the cell's own processes",
        lambda _, c: c.own_cpu_seconds,
        True,
    ),
    Column(
        "others_cpu_seconds",
        "number",
        "s, CPU time of other processes on the CPUs under test",
        lambda _, c: c.others_cpu_seconds,
        True,
    ),
    *(
        Column(
            f"cpu_{state}_seconds", "number", "s, time of the CPUs under test", _cpu(state), True
        )
        for state in CPU_STATES
    ),
    *(
        _named(column, f"s, {_SAID[m]} of the latency of an operation", LATENCY_VALUES[m])
        for m, column in LATENCY_COLUMNS.items()
    ),
    *(_named(column, _SAID[m], FAIRNESS_VALUES[m]) for m, column in FAIRNESS_COLUMNS.items()),
    Column(
        "wall_seconds",
        "number",
        "s, including format, mount and set-up",
        lambda _, c: c.wall_seconds,
    ),
)


def _text(text: str | None) -> str | None:
    return None if text is None else printable(text)
