# SPDX-License-Identifier: GPL-2.0-only
"""The tables of one run or several, and the formats in which they are written."""

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fscale.analysis.control import control_of
from fscale.analysis.diagnosis.run import diagnose, profiled
from fscale.analysis.members import Member
from fscale.analysis.prediction.stored import read
from fscale.analysis.tables import (
    cells,
    control,
    latency,
    locks,
    machine,
    points,
    predictions,
    sweeps,
)
from fscale.analysis.tables.column import Column, Row
from fscale.analysis.tables.machine import NamedResults
from fscale.analysis.tables.text import to_csv, to_json
from fscale.model.errors import FscaleError


@dataclass(frozen=True)
class Table:
    """A table: what a row is, its columns, and the rows of runs."""

    row: str
    columns: Sequence[Column[Any]]
    rows: Callable[[Sequence[Member]], list[Row]]


def _runs(members: Iterable[Member]) -> list[NamedResults]:
    """Each run once, although both sides of a paired run are members."""
    runs = {member.name: member.results for member in members}
    return [NamedResults(name, results) for name, results in runs.items()]


def _of_each(rows: Callable[[NamedResults], list[Row]]) -> Callable[[Sequence[Member]], list[Row]]:
    """The rows of each run, one run after the other."""
    return lambda members: [row for run in _runs(members) for row in rows(run)]


def _cells(run: NamedResults) -> list[Row]:
    unprofiled = [cell for cell in run.results.cells if cell.key.profile is None]
    return [*cells.rows(run, unprofiled), *cells.unreadable_rows(run)]


def _profiled(run: NamedResults) -> list[Row]:
    return cells.rows(run, [cell for cell in run.results.cells if cell.key.profile is not None])


def _points(members: Sequence[Member]) -> list[Row]:
    from fscale.analysis.report.section import Report  # noqa: PLC0415 - imports matplotlib

    return Report(tuple(members), Path()).figures


def _sweeps(members: Sequence[Member]) -> list[Row]:
    from fscale.analysis.report.section import Report  # noqa: PLC0415 - imports matplotlib

    return Report(tuple(members), Path()).swept


def _locks(run: NamedResults) -> list[Row]:
    return locks.rows(run.run, diagnose(run.results).points if profiled(run.results) else [])


def _predictions(run: NamedResults) -> list[Row]:
    kept = read(run.results)
    return predictions.rows(run.run, kept.file, kept.points) if kept.file else []


TABLES: dict[str, Table] = {
    "cells": Table("a repetition that was not profiled", cells.COLUMNS, _of_each(_cells)),
    "profiled": Table(
        "a profiling repetition, which never counts", cells.COLUMNS, _of_each(_profiled)
    ),
    "points": Table("a point: the repetitions that count", points.COLUMNS, _points),
    "sweeps": Table(
        "a point of a sweep, once for each axis in which it varies", sweeps.COLUMNS, _sweeps
    ),
    "locks": Table("an object that a profiled point waits for", locks.COLUMNS, _of_each(_locks)),
    "latency": Table(
        "a recorded percentile of the latencies of a repetition that counts",
        latency.COLUMNS,
        _of_each(lambda run: latency.rows(run.run, run.results.scored)),
    ),
    "control": Table(
        "a control at a core count",
        control.COLUMNS,
        _of_each(lambda run: control.rows(run.run, control_of(run.results))),
    ),
    "machine": Table(
        "a run and its machine", machine.COLUMNS, _of_each(lambda run: [machine.row(run)])
    ),
    "predictions": Table(
        "a point that `fscale predict` predicted and nobody measured",
        predictions.COLUMNS,
        _of_each(_predictions),
    ),
}


def missing_cells(members: Sequence[Member]) -> int:
    """How many planned cells of some runs left no result."""
    return sum(run.results.missing for run in _runs(members))


def _csv(columns: Sequence[Column[Any]], rows: Sequence[Row], _missing: int) -> str:
    return to_csv(columns, rows)


def _parquet(columns: Sequence[Column[Any]], rows: Sequence[Row], _missing: int) -> bytes:
    """Apache Parquet; its metadata have units and meanings, as pandas stores `attrs`.

    Raises:
        FscaleError: pyarrow cannot be used.
    """
    from fscale.analysis.tables.frame import make_frame  # noqa: PLC0415 - imports pandas

    file = io.BytesIO()
    try:
        make_frame(columns, rows).to_parquet(file, engine="pyarrow")
    except ImportError:
        raise FscaleError(
            "the format parquet needs pyarrow, which is missing or too old: install fscale[parquet]"
        ) from None
    return file.getvalue()


TABLE_FORMATS: dict[str, Callable[[Sequence[Column[Any]], Sequence[Row], int], str | bytes]] = {
    "csv": _csv,
    "json": to_json,
    "parquet": _parquet,
}
"""from columns, rows, and the number of planned cells that left no result"""
