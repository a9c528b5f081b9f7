# SPDX-License-Identifier: GPL-2.0-only
"""`fscale vm`: QEMU guests with any kernel: suites, commands, crash tests, builds."""

import typer

from fscale.commands.vm import build, crash, execute, run


def register(main: typer.Typer) -> None:
    """Add the command with its subcommands."""
    app = typer.Typer(
        no_args_is_help=True,
        help="Run a suite in a QEMU guest: another kernel, a module under test, more CPUs.",
    )
    for part in (run, execute, crash, build):
        part.register(app)
    main.add_typer(app, name="vm")
