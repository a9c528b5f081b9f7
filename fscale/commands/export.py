# SPDX-License-Identifier: GPL-2.0-only
"""`fscale export`: writes a run in the format of another program."""

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
More examples:

    fscale export results/today --format junit --output fscale.xml
    fscale export results/today --format ktap | less
    fscale export results/today --format kcidb --output kcidb.json
"""


class Format(StrEnum):
    """The formats, with the names of `fscale.analysis.formats.FORMATS`."""

    CSV = "csv"
    JSON = "json"
    GOOGLE_BENCHMARK = "google-benchmark"
    JUNIT = "junit"
    KCIDB = "kcidb"
    KTAP = "ktap"
    OPENMETRICS = "openmetrics"


def _export(
    run: Annotated[Path, typer.Argument(help="Results directory to export.")],
    form: Annotated[
        Format, typer.Option("--format", help="Format to write (docs/reference/formats.md).")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            callback=file_to_write, metavar="FILE", help="File to write. Default: standard output."
        ),
    ] = None,
) -> None:
    """Write all repetitions of a run in the format of another program.

    Example: fscale export results/today --format csv --output today.csv

    Each repetition has an entry. A failed one has its reason and no value. Repetitions that were
    simulated, or disturbed by other load, are marked. docs/reference/formats.md describes each
    format.
    """
    write(run, {form: TERMINAL if output is None else output})


def write(run: Path, outputs: Mapping[Format, Path]) -> None:
    """Write the run of a results directory in each format; `-` is standard output.

    Raises:
        FscaleError: there is no run, or a file cannot be written.
    """
    if not outputs:
        return
    from fscale.analysis.formats.run import FORMATS  # noqa: PLC0415 - imports the statistics
    from fscale.analysis.reader import load  # noqa: PLC0415

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
                f"cannot write {output}: {error.strerror}; give another file"
            ) from error
    absent = {"planned cells left no result": results.missing}
    absent["files of cells cannot be read"] = len(results.unreadable)
    for what, count in absent.items():
        if count:
            say(f"note: {count} {what}", error=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export", epilog=_EPILOG)(_export)
