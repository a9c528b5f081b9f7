# SPDX-License-Identifier: GPL-2.0-only
"""`fscale restore`: puts the machine back after a run that was cut off."""

from typing import Annotated

import typer

from fscale.model import paths
from fscale.model.errors import FscaleError
from fscale.model.limits import MOST_SECONDS
from fscale.runner.machine.journal import exclusive, recover
from fscale.runner.signals import Signals


def _restore(
    wait: Annotated[
        float,
        typer.Option(
            min=0, max=MOST_SECONDS, help="Seconds to wait for another run to leave the machine."
        ),
    ] = 0,
) -> None:
    """Undo what a killed run left behind: CPUs, mounts, loop devices, files, processes.

    It may be called at any time; with nothing to undo it does nothing. A run that is going on is
    left alone (exit code 2).
    """
    state = paths.state_dir()
    signals = Signals()
    with signals.installed(), signals.deferred(), exclusive(state, wait):
        undone, failures = recover(state)
    for what in undone:
        typer.echo(f"put back: {what}")
    if failures:
        raise FscaleError(f"could not be put back: {'; '.join(failures)}")
    if not undone:
        typer.echo("nothing to put back")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("restore", epilog="Example: fscale restore --wait 60")(_restore)
