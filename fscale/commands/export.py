# SPDX-License-Identifier: GPL-2.0-only
"""`fscale export`: writes a run in the format of another program."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from fscale.commands.options.bundle import bundle
from fscale.commands.options.formats import (
    OF_CONFLICTS,
    OF_TABLES,
    Format,
    TableName,
    write,
    write_conflicts,
    write_table,
)
from fscale.commands.options.given import refuse_given
from fscale.commands.options.kinds import output_file
from fscale.commands.options.submission import SubmissionOptions
from fscale.commands.options.writable import TERMINAL
from fscale.model.errors import FscaleError
from fscale.model.store import has_conflicts

_EPILOG = """
More examples:

    fscale export results/today --format junit --output fscale.xml
    fscale export results/6.17 results/6.18 --format parquet --table points --output both.parquet
    fscale export results/p --format csv --table locks
    fscale export results/commute --format csv --table objects    # of `fscale commute`
    fscale export results/today --format ktap | less
    fscale export results/today --format kcidb --output kcidb.json
    fscale export results/today --format kcidb --origin myci --build-id myci:build-42
"""


@bundle("submitted", SubmissionOptions)
def _export(
    context: typer.Context,
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="Results directory to export. Tables take several, each as DIR or DIR=LABEL; the "
            "default label is what differs between the runs.",
        ),
    ],
    form: Annotated[
        Format, typer.Option("--format", help="Format to write (docs/reference/formats.md).")
    ],
    table: Annotated[
        TableName | None,
        typer.Option(
            "--table",
            help="Table to write as CSV, JSON or Parquet (docs/reference/table-columns.md). "
            "Profiling repetitions are in `profiled` only. Default: cells; of results of `fscale "
            "commute` pairs.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        output_file("File to write. Default: standard output."),
    ] = None,
    *,
    submitted: SubmissionOptions,
) -> None:
    """Write all repetitions of a run, or another table of runs, in the format of another program.

    Example: fscale export results/today --format csv --output today.csv

    Each repetition has an entry. A failed one has its reason and no value. Repetitions that were
    simulated, or disturbed by other load, are marked. docs/reference/formats.md describes each
    format.
    """
    if form != Format.KCIDB:
        refuse_given(context, submitted.given, f"the format {form.value}, which names no submitter")
    target = TERMINAL if output is None else output
    if form == Format.PARQUET and target == TERMINAL and sys.stdout.isatty():
        raise FscaleError("the format parquet is no text; give --output FILE")
    from fscale.analysis.members import NamedRun  # noqa: PLC0415 - imports the statistics

    if any(has_conflicts(NamedRun.parse(run).path) for run in runs):
        write_conflicts(runs, table, form, target)
        return
    if table in OF_CONFLICTS:
        raise FscaleError(f"only results of `fscale commute` have the table {table}")
    if form in OF_TABLES:
        write_table(runs, table or TableName.CELLS, form, target)
        return
    refuse_given(context, {"table"}, f"the format {form.value}, whose entries are repetitions")
    if len(runs) > 1:
        raise FscaleError(
            f"the format {form.value} describes one run, and {len(runs)} were given; give one, or "
            f"one of the formats {', '.join(OF_TABLES)}"
        )
    write(Path(runs[0]), {form: target}, submitted.submission)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export", epilog=_EPILOG)(_export)
