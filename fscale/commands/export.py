# SPDX-License-Identifier: GPL-2.0-only
"""`fscale export`: a run in the format of another program."""

import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fscale.model.errors import FscaleError
from fscale.model.files import write_named
from fscale.model.terminal import say
from fscale.system.outputs import TERMINAL, file_to_write

_EPILOG = """
Examples:\n\n
fscale export results/today --format csv --output today.csv\n\n
fscale export results/today --format junit --output fscale.xml\n\n
fscale export results/today --format ktap | less\n\n
fscale export results/today --format kcidb --output kcidb.json
"""


class Format(StrEnum):
    """What can be written, as `analysis.formats.FORMATS` has it."""

    CSV = "csv"
    JSON = "json"
    GOOGLE_BENCHMARK = "google-benchmark"
    JUNIT = "junit"
    KCIDB = "kcidb"
    KTAP = "ktap"
    OPENMETRICS = "openmetrics"


def _export(
    run: Annotated[Path, typer.Argument(help="A results directory.")],
    form: Annotated[Format, typer.Option("--format", help="Whose format.")],
    output: Annotated[
        Path | None,
        typer.Option(callback=file_to_write, help="File to write; standard output without it."),
    ] = None,
) -> None:
    """Write all repetitions of a run for another program: an entry for each, failed ones too.

    What was measured beside others' load or simulated is marked, what failed has a reason and no
    figure. docs/reference/formats.md says what each format holds.
    """
    write(run, {form: TERMINAL if output is None else output})


def write(run: Path, outputs: Mapping[Format, Path]) -> None:
    """Write the run of a results directory in each format; `-` is standard output.

    Raises FscaleError when there is no run, or a file cannot be written.
    """
    if not outputs:
        return
    from analysis.formats import FORMATS  # noqa: PLC0415 - the statistics take a second to load
    from analysis.reader import load  # noqa: PLC0415

    results = load(run)
    for form, output in outputs.items():
        text = FORMATS[form](results)
        if output == TERMINAL:
            sys.stdout.write(text)
            continue
        try:
            write_named(output, text)
        except OSError as error:
            raise FscaleError(
                f"cannot write {output}: {error.strerror}; give a file that you may write"
            ) from error
    absent = {"planned cells left no result": results.missing}
    absent["files of cells cannot be read"] = len(results.unreadable)
    for what, count in absent.items():
        if count:
            say(f"note: {count} {what}", error=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export", epilog=_EPILOG)(_export)
