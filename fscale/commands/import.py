# SPDX-License-Identifier: GPL-2.0-only
"""`fscale import`: converts results of other programs into a run."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from fscale.analysis.imports.registry import Program, every
from fscale.commands.options.kinds import output_directory
from fscale.model.errors import Exit, FscaleError
from fscale.model.store import RUN_FILE, Store
from fscale.model.terminal import say

_HELP = """{about}

Example: fscale import {name} {example} --output results/old

The run can be reported, compared, exported and added to a history. The command says what the files
lack. docs/reference/formats.md tells what becomes of each of their figures.

Exit codes: 0: at least one cell has a result. 1: no cell has a result. 2: wrong usage, or a file
cannot be read.
"""
_EPILOG = """
More examples:

    fscale report results/old            # draws what was imported
    fscale compare results/old results/new    # if both name their machine
"""


def _command(program: Program) -> Callable[..., None]:
    """The command that imports files of a program."""

    def command(
        files: Annotated[
            list[Path],
            typer.Argument(
                help="Files, all of one machine and kernel; a point in several is repeated."
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
                help="Time of the measurement in ISO 8601, such as 2016-01-30. Default: the time "
                "in the files, where they have one.",
            ),
        ] = None,
        host: Annotated[
            str | None,
            typer.Option(
                metavar="NAME",
                help="Machine that was measured. Default: the name in the files; without one, "
                "`compare` and `history` refuse the run.",
            ),
        ] = None,
        filesystem: Annotated[
            str | None,
            typer.Option(
                "--fs",
                metavar="NAME",
                help="File system that was measured. Default: the name in the files, or unknown.",
            ),
        ] = None,
        medium: Annotated[
            str | None,
            typer.Option(
                "--media",
                metavar="NAME",
                help="Medium below it. Default: the name in the files, or unknown.",
            ),
        ] = None,
    ) -> None:
        from fscale.analysis.imports.run import Stated, read  # noqa: PLC0415 - takes a second

        if (output / RUN_FILE).exists():
            raise FscaleError(f"{output} already contains a run; give another directory")
        imported = read(program, files, Stated(started, host, filesystem, medium), output)
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
        for note in imported.notes:
            say(f"note: {note}", error=True)
        if not ended["ok"]:
            say(f"no cell has a result; `fscale report {output}` lists the reasons", error=True)
            raise typer.Exit(Exit.FAILED)

    return command


def register(app: typer.Typer) -> None:
    """Add the command with a subcommand for each program."""
    programs = typer.Typer(
        no_args_is_help=True, help="Convert results of another program into a run."
    )
    for program in every():
        text = _HELP.format(about=program.about, name=program.name, example=program.example)
        programs.command(program.name, help=text, epilog=_EPILOG)(_command(program))
    app.add_typer(programs, name="import")
