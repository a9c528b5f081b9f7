# SPDX-License-Identifier: GPL-2.0-only
"""The formats of other programs in which a run is written."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from fscale.commands.options.helptext import OUTPUT
from fscale.commands.options.kinds import output_file
from fscale.commands.options.writable import TERMINAL, refuse_same
from fscale.model.errors import FscaleError
from fscale.model.files import write_named
from fscale.model.terminal import say

if TYPE_CHECKING:
    from fscale.analysis.formats.submission import Submission
    from fscale.analysis.reader import Results


class Format(StrEnum):
    """The names of `TABLE_FORMATS` and `FORMATS` in `fscale.analysis.formats`."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    GOOGLE_BENCHMARK = "google-benchmark"
    JUNIT = "junit"
    KCIDB = "kcidb"
    KTAP = "ktap"
    OPENMETRICS = "openmetrics"


OF_TABLES = (Format.CSV, Format.JSON, Format.PARQUET)


class TableName(StrEnum):
    """The names of `TABLES` in `fscale.analysis.formats.tables` and `fscale.commute.tables`."""

    CELLS = "cells"
    PROFILED = "profiled"
    POINTS = "points"
    SWEEPS = "sweeps"
    LOCKS = "locks"
    LATENCY = "latency"
    CONTROL = "control"
    MACHINE = "machine"
    PREDICTIONS = "predictions"
    PAIRS = "pairs"
    OBJECTS = "objects"


OF_CONFLICTS = (TableName.PAIRS, TableName.OBJECTS)
"""those of `fscale.commute.tables.TABLES`"""


@dataclass(frozen=True)
class CellOutputs:
    """The files in which `fscale run` reports its cells."""

    junit: Annotated[
        Path | None,
        output_file("Also write JUnit XML to this file: one test case per cell.", OUTPUT),
    ] = None
    ktap: Annotated[
        Path | None,
        output_file(
            "Also write KTAP to this file: one test per cell; - is standard output, and the "
            "summary then goes to standard error.",
            OUTPUT,
        ),
    ] = None

    @property
    def files(self) -> dict[Format, Path]:
        """The formats with their files.

        Raises:
            FscaleError: both name the same file.
        """
        refuse_same({"--junit": self.junit, "--ktap": self.ktap})
        told = {Format.JUNIT: self.junit, Format.KTAP: self.ktap}
        return {form: path for form, path in told.items() if path is not None}


def write(
    run: Path, outputs: Mapping[Format, Path], submission: "Submission | None" = None
) -> None:
    """Write the run of a results directory in formats of repetitions; `-` is standard output.

    `submission` is what KCIDB says about the submitter and its builds.

    Raises:
        FscaleError: there is no run, or a file cannot be written.
    """
    if not outputs:
        return
    from fscale.analysis.formats import kcidb  # noqa: PLC0415 - imports the statistics
    from fscale.analysis.formats.run import FORMATS  # noqa: PLC0415
    from fscale.analysis.reader import load  # noqa: PLC0415

    results = load(run)
    for form, output in outputs.items():
        text = kcidb.render(results, submission) if form == "kcidb" else FORMATS[form](results)
        put(output, text)
    _note_absent(results)


def write_table(runs: Sequence[str], name: TableName, form: Format, output: Path) -> None:
    """Write a table of runs, each given as DIR or DIR=LABEL; `-` is standard output.

    Raises:
        FscaleError: a run cannot be read, two cannot be told apart, the file cannot be written, or
            the format needs a package that is not installed.
    """
    from fscale.analysis.formats.tables import (  # noqa: PLC0415 - imports the statistics
        TABLE_FORMATS,
        TABLES,
        missing_cells,
    )
    from fscale.analysis.members import NamedRun, open_named  # noqa: PLC0415
    from fscale.analysis.prediction.stored import read  # noqa: PLC0415

    members = open_named([NamedRun.parse(text) for text in runs])
    table, missing = TABLES[name], missing_cells(members)
    put(output, TABLE_FORMATS[form](table.columns, table.rows(members), missing))
    for results in {member.name: member.results for member in members}.values():
        _note_absent(results)
        if name == TableName.PREDICTIONS and (remark := read(results).remark):
            say(f"note: {remark}", error=True)


def write_conflicts(
    results: Sequence[str], name: TableName | None, form: Format, output: Path
) -> None:
    """Write a table of results of `fscale commute`; `-` is standard output.

    Raises:
        FscaleError: one of them cannot be read, or has no such table or format.
    """
    from fscale.analysis.formats.tables import TABLE_FORMATS  # noqa: PLC0415 - imports the statistics
    from fscale.analysis.members import NamedRun  # noqa: PLC0415
    from fscale.commute.store import open_named  # noqa: PLC0415
    from fscale.commute.tables import TABLES, rows  # noqa: PLC0415

    name = name or TableName.PAIRS
    if form not in OF_TABLES or name not in OF_CONFLICTS:
        raise FscaleError(
            f"{results[0]} is a result of `fscale commute`; export its tables "
            f"{' and '.join(OF_CONFLICTS)}, in one of the formats {', '.join(OF_TABLES)}"
        )
    stores = open_named([NamedRun.parse(text) for text in results])
    filled = [
        row for run, store in stores.items() for row in rows(name, run, store.load_matrices())
    ]
    put(output, TABLE_FORMATS[form](TABLES[name].columns, filled, 0))


def put(output: Path, content: str | bytes) -> None:
    """Write to a file; `-` is standard output.

    Raises:
        FscaleError: the file cannot be written.
    """
    if output == TERMINAL:
        if isinstance(content, bytes):
            sys.stdout.buffer.write(content)
        else:
            sys.stdout.write(content)
        return
    try:
        write_named(output, content)
    except OSError as error:
        raise FscaleError(f"cannot write {output}: {error.strerror}; give another file") from error


def _note_absent(results: "Results") -> None:
    absent = {"planned cells left no result": results.missing}
    absent["files of cells cannot be read"] = len(results.unreadable)
    for what, count in absent.items():
        if count:
            say(f"note: {results.path}: {count} {what}", error=True)
