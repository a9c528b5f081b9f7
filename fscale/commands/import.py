# SPDX-License-Identifier: GPL-2.0-only
"""`fscale import`: converts results of other programs into a run."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from fscale.commands.options.kinds import output_directory
from fscale.model.errors import Exit, FscaleError
from fscale.model.store import RUN_FILE, Store
from fscale.model.terminal import say

_EPILOG = """
More examples:

    fscale import fxmark monday.log tuesday.log --started 2016-01-30 --output results/old
    fscale report results/old --paper    # draws what was imported
"""


def _fxmark(
    logs: Annotated[
        list[Path],
        typer.Argument(
            help="fxmark.log files, all of one machine and kernel; several are repetitions."
        ),
    ],
    output: Annotated[
        Path,
        output_directory("Results directory to create."),
    ],
    started: Annotated[
        str | None,
        typer.Option(
            metavar="DATE",
            help="Time of the measurement in ISO 8601, such as 2016-01-30. Default: the time in "
            "the name of the log's directory.",
        ),
    ] = None,
) -> None:
    """Convert logs of FxMark itself (bin/run-fxmark.py) into a run that can be drawn and exported.

    Example: fscale import fxmark logs/2016-01-30-11-02-14.755097/fxmark.log --output results/old

    Values that the logs lack stay absent: a point that was measured once has no spread.

    Exit codes: 0: at least one cell has a result. 1: no cell has a result. 2: wrong usage, or a
    log cannot be read.
    """
    from fscale.analysis.formats.fxmark import read  # noqa: PLC0415 - takes a second to load

    if (output / RUN_FILE).exists():
        raise FscaleError(f"{output} already contains a run; give another directory")
    imported = read(logs, started)
    store = Store(output)
    try:
        for cell in imported.cells:
            store.save_cell(cell)
        store.save_run(imported.run)
    except OSError as error:
        raise FscaleError(
            f"cannot write to {output}: {error.strerror}; give another directory"
        ) from error
    ended = Counter(cell.status for cell in imported.cells)
    points = len({cell.key.point for cell in imported.cells})
    counted = ", ".join(f"{count} {status}" for status, count in ended.items())
    say(f"{output}: {len(imported.cells)} cells ({counted}) of {points} points")
    for reason in imported.left_out:
        say(f"left out: {reason}", error=True)
    if not ended["ok"]:
        say(f"no cell has a result; `fscale report {output}` lists the reasons", error=True)
        raise typer.Exit(Exit.FAILED)


def register(app: typer.Typer) -> None:
    """Add the command with its subcommands."""
    programs = typer.Typer(
        no_args_is_help=True, help="Convert results of another program into a run."
    )
    programs.command("fxmark", epilog=_EPILOG)(_fxmark)
    app.add_typer(programs, name="import")
