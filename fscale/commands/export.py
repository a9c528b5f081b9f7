# SPDX-License-Identifier: GPL-2.0-only
"""`fscale export`: writes a run in the format of another program."""

from pathlib import Path
from typing import Annotated

import typer

from fscale.commands.options.bundle import bundle
from fscale.commands.options.formats import Format, write
from fscale.commands.options.given import refuse_given
from fscale.commands.options.kinds import output_file
from fscale.commands.options.submission import SubmissionOptions
from fscale.commands.options.writable import TERMINAL

_EPILOG = """
More examples:

    fscale export results/today --format junit --output fscale.xml
    fscale export results/today --format ktap | less
    fscale export results/today --format kcidb --output kcidb.json
    fscale export results/today --format kcidb --origin myci --build-id myci:build-42
"""


@bundle("submitted", SubmissionOptions)
def _export(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="Results directory to export.")],
    form: Annotated[
        Format, typer.Option("--format", help="Format to write (docs/reference/formats.md).")
    ],
    output: Annotated[
        Path | None,
        output_file("File to write. Default: standard output."),
    ] = None,
    *,
    submitted: SubmissionOptions,
) -> None:
    """Write all repetitions of a run in the format of another program.

    Example: fscale export results/today --format csv --output today.csv

    Each repetition has an entry. A failed one has its reason and no value. Repetitions that were
    simulated, or disturbed by other load, are marked. docs/reference/formats.md describes each
    format.
    """
    if form != Format.KCIDB:
        refuse_given(context, submitted.given, f"the format {form.value}, which names no submitter")
    write(run, {form: TERMINAL if output is None else output}, submitted.submission)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export", epilog=_EPILOG)(_export)
