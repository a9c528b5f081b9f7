# SPDX-License-Identifier: GPL-2.0-only
"""Kernels that another machine boots, and the commands that control it."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fscale.analysis.compare.settings import Settings
from fscale.commands.options.helptext import PLACE
from fscale.commands.options.measure import PairedOptions
from fscale.commands.options.on import booting
from fscale.farm.bootable import Bootable, Broken
from fscale.farm.controls import BOOT_SECONDS, Controls
from fscale.farm.engine import BOOTING, BootingEngine, name_of
from fscale.model.errors import FscaleError
from fscale.model.terminal import say
from fscale.model.variant import Variant, parse
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


KernelOption = Annotated[
    str | None,
    typer.Option(
        metavar="KERNEL[:modules=PATH]",
        help="With --on ssh:HOST or labgrid:PLACE: boot this kernel there for the run: a built "
        "tree, a .deb, a bzImage with :modules=PATH, a suite of Debian, or the release of a kernel "
        "that is installed there. Default: the machine's own.",
        rich_help_panel=PLACE,
    ),
]


def check_kernel(kernel: str | None, controlled: ControlOptions, on: str | None) -> None:
    """Check that there is a machine to boot a kernel, and a kernel where that is controlled.

    Raises:
        FscaleError: there is not.
    """
    if kernel is None and controlled != ControlOptions():
        raise FscaleError(
            "--reset-command, --console-command and --boot-timeout concern the boot of a kernel; "
            "give --kernel, or leave them out"
        )
    if kernel is not None and (on is None or name_of(on) not in BOOTING):
        raise FscaleError(
            f"--kernel {kernel}: another kernel is booted on another machine; give --on ssh:HOST "
            "or --on labgrid:PLACE, or measure in a guest with `fscale vm run`"
        )


def kernel_of(kernel: str) -> Bootable:
    """Make the kernel of `--kernel` ready for another machine.

    Raises:
        FscaleError: it is no kernel, or has no modules.
    """
    from fscale.vm.bootable import bootable  # noqa: PLC0415 - reads and packs kernels

    side = parse(f"kernel:{kernel}")
    if side.modules:
        raise FscaleError(f"--kernel {kernel}: a kernel has modules=, but no module= of its own")
    return bootable(side.kernel or "", side.kernel_modules, Steps(Console(stderr=True)))


@contextlib.contextmanager
def booted(
    kernel: Bootable, on: str, wait: float, controls: Controls, output: Path
) -> Iterator[BootingEngine]:
    """The machine that the user named, opened, which runs a kernel in the `with` block.

    Raises:
        Broken: it did not come up, or did not stay up; the text has what console and pstore say,
            which is stored beside the results.
        FscaleError: the machine cannot boot it.
    """
    from fscale.ab import broken_boots  # noqa: PLC0415 - imports the engines

    with booting(on, wait) as machine:
        say(f"booting {kernel.release}", error=True)
        machine.use(controls)
        try:
            machine.boot(kernel)
            yield machine
        except Broken as error:
            reason = f"{kernel.release}: {error}"
            raise Broken(broken_boots.save_evidence(output, reason, machine.evidence())) from None


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
