# SPDX-License-Identifier: GPL-2.0-only
"""`fscale export`: writes a run in the format of another program."""

from pathlib import Path
from typing import Annotated

import typer

from fscale.commands.options.formats import Format, write
from fscale.commands.options.given import refuse_given
from fscale.commands.options.helptext import OUTPUT
from fscale.commands.options.kinds import output_file
from fscale.commands.options.writable import TERMINAL

_EPILOG = """
More examples:

    fscale export results/today --format junit --output fscale.xml
    fscale export results/today --format ktap | less
    fscale export results/today --format kcidb --output kcidb.json
    fscale export results/today --format kcidb --origin myci --build-id myci:build-42
"""


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
    origin: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="KCIDB: submitter of the results, as KernelCI assigned it. Default: fscale.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    build_id: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="KCIDB: kernel build that the results belong to, which is submitted elsewhere.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    checkout_id: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="KCIDB: checkout that the kernel was built from, which is submitted elsewhere.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    platform: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="KCIDB: name of the machine in the CI. Default: its host name.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
) -> None:
    """Write all repetitions of a run in the format of another program.

    Example: fscale export results/today --format csv --output today.csv

    Each repetition has an entry. A failed one has its reason and no value. Repetitions that were
    simulated, or disturbed by other load, are marked. docs/reference/formats.md describes each
    format.
    """
    about = {
        "origin": origin,
        "build_id": build_id,
        "checkout_id": checkout_id,
        "platform": platform,
    }
    if form != Format.KCIDB:
        refuse_given(context, about, f"the format {form.value}, which names no submitter")
    from fscale.analysis.formats.kcidb import Submission  # noqa: PLC0415 - imports the statistics

    given = {name: value for name, value in about.items() if value is not None}
    write(run, {form: TERMINAL if output is None else output}, Submission(**given))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export", epilog=_EPILOG)(_export)
