# SPDX-License-Identifier: GPL-2.0-only
"""`fscale restore`: restores a machine's state after a run that was killed."""

import typer

from fscale.commands.options.on import MachineOption, booting
from fscale.commands.options.shared import WaitOption
from fscale.model.errors import FscaleError
from fscale.runner.machine_task import restore, restore_on
from fscale.runner.signals import Signals


def _restore(
    wait: WaitOption = 0,
    on: MachineOption = None,
) -> None:
    """Restore a machine after a killed run: offline CPUs, mounts, loop devices, processes.

    Example: fscale restore

    With --on ssh:HOST, it also removes directories that killed commands left there, and boots the
    machine's own kernel if another one runs.

    The command is safe at any time. It changes nothing if there is nothing to restore, and never
    touches a run in progress.

    Exit codes: 0: restored, or nothing to restore. 2: wrong usage, another run is in progress, or
    something could not be restored.
    """
    if on is None:
        undone, failures = restore(wait)
    else:
        with Signals().installed(), booting(on, wait) as engine:
            undone, failures = restore_on(engine, wait)
            undone = [*engine.undone, *undone]
    for what in undone:
        typer.echo(f"restored: {what}")
    if failures:
        raise FscaleError(f"could not restore: {'; '.join(failures)}")
    if not undone:
        typer.echo("nothing to restore")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("restore")(_restore)
