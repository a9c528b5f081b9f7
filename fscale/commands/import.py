# SPDX-License-Identifier: GPL-2.0-only
"""`fscale import`: results of other programs as a run of ours."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from fscale.model.errors import Exit, FscaleError
from fscale.model.store import RUN_FILE, Store
from fscale.model.terminal import say
from fscale.system.outputs import directory_to_write

_EPILOG = """
Examples:\n\n
fscale import fxmark logs/2016-01-30-11-02-14.755097/fxmark.log --output results/old\n\n
fscale import fxmark monday.log tuesday.log --started 2016-01-30 --output results/old\n\n
fscale report results/old --paper
"""


def _fxmark(
    logs: Annotated[
        list[Path], typer.Argument(help="fxmark.log of one machine and kernel; several repeat.")
    ],
    output: Annotated[
        Path, typer.Option(callback=directory_to_write, help="Results directory to make.")
    ],
    started: Annotated[
        str | None,
        typer.Option(
            help="When it was measured, in ISO 8601; by default as the log's folder says."
        ),
    ] = None,
) -> None:
    """Make a run of the logs of FxMark itself (bin/run-fxmark.py), to be drawn and exported.

    What the logs do not hold is not made up: a point that was measured once has no spread.
    Exit code 1 where no cell has a figure.
    """
    from analysis.formats.fxmark import read  # noqa: PLC0415 - takes a second to load

    if (output / RUN_FILE).exists():
        raise FscaleError(f"{output} holds a run already; give another directory")
    imported = read(logs, started)
    store = Store(output)
    try:
        for cell in imported.cells:
            store.save_cell(cell)
        store.save_run(imported.run)
    except OSError as error:
        raise FscaleError(
            f"cannot write to {output}: {error.strerror}; give a directory that you may write to"
        ) from error
    ended = Counter(cell.status for cell in imported.cells)
    points = len({cell.key.point for cell in imported.cells})
    counted = ", ".join(f"{count} {status}" for status, count in ended.items())
    say(f"{output}: {len(imported.cells)} cells ({counted}) of {points} points")
    for reason in imported.left_out:
        say(f"left out: {reason}", error=True)
    if not ended["ok"]:
        say("no cell has a figure: `fscale show` says of each why", error=True)
        raise typer.Exit(Exit.FAILED)


def register(app: typer.Typer) -> None:
    """Add the command with its subcommands."""
    programs = typer.Typer(no_args_is_help=True, help="Make a run of another program's results.")
    programs.command("fxmark", epilog=_EPILOG)(_fxmark)
    app.add_typer(programs, name="import", epilog=_EPILOG)
