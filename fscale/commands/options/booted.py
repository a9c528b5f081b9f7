# SPDX-License-Identifier: GPL-2.0-only
"""Comparisons of kernels that another machine boots in turn, and the commands that control it."""

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fscale.analysis.compare.settings import Settings
from fscale.commands.options.helptext import PLACE
from fscale.commands.options.measure import PairedOptions
from fscale.commands.options.on import booting
from fscale.farm.controls import BOOT_SECONDS, Controls
from fscale.model.errors import FscaleError
from fscale.model.variant import Variant
from fscale.runner.signals import Signals
from fscale.vm.steps import Steps


@dataclass(frozen=True)
class ControlOptions:
    """What concerns the machine that boots kernels."""

    reset_command: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="With --on ssh:HOST or labgrid:PLACE: shell command of this machine that resets "
            "the other when a kernel does not come back, such as 'ipmitool -H bmc -U ci -f FILE "
            "power reset'. run.json records it, so give no password.",
            rich_help_panel=PLACE,
        ),
    ] = None
    console_command: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="With --on ssh:HOST or labgrid:PLACE: shell command of this machine that prints "
            "the other's console while a kernel under test runs; the end of it explains a kernel "
            "that breaks.",
            rich_help_panel=PLACE,
        ),
    ] = None

    boot_timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=10,
            max=7200,
            help="With --on ssh:HOST or labgrid:PLACE: how long a boot may take until a reset.",
            rich_help_panel=PLACE,
        ),
    ] = BOOT_SECONDS

    @property
    def controls(self) -> Controls:
        """The same as an engine takes it."""
        return Controls(self.reset_command, self.console_command, self.boot_timeout)


def compare_boots(
    base: Variant,
    new: Variant,
    measured: PairedOptions,
    *,
    on: str,
    controls: Controls,
    output: Path,
    seed: int | None,
    settings: Settings,
    repetitions: int,
    seconds: float,
    bisecting: bool = False,
) -> None:
    """Let a machine boot both sides in turn, for at most `seconds`, and store the run.

    Raises:
        FscaleError: a side is not valid, or the machine cannot measure, was lost, or is not back
            after the last boot.
        Broken: a side does not run, in a bisection.
    """
    from fscale.ab import guest_run, machine_plan  # noqa: PLC0415 - import the statistics
    from fscale.ab.machine_boots import MachineBoots  # noqa: PLC0415

    steps = Steps(Console(stderr=True))
    request = measured.recording(settings.metrics).request(measured.suite, output)
    plan = machine_plan.make(
        base,
        new,
        replace(request, seed=seed),
        [str(measured.suite), *measured.arguments],
        settings,
        repetitions,
        steps,
        bisecting=bisecting,
    )
    with Signals().installed(), contextlib.ExitStack() as held:
        machine = held.enter_context(booting(on, measured.wait))
        machine.use(controls)
        guest_run.execute(MachineBoots(plan, steps, machine), seconds)
        try:
            held.close()
        except FscaleError as error:
            told = f"{error}; the results are whole, see `fscale compare {plan.output}`"
            raise FscaleError(told) from None
