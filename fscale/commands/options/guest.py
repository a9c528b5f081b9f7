# SPDX-License-Identifier: GPL-2.0-only
"""The options of all commands that boot a guest."""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fscale.commands.options.bundle import bundle
from fscale.commands.options.helptext import GUESTS, MEASURED
from fscale.commands.options.kinds import number
from fscale.model.limits import MOST_SECONDS
from fscale.vm.console import kind_of
from fscale.vm.guest import GuestError, GuestOutcome
from fscale.vm.request import GuestRequest

KernelOption = Annotated[
    str,
    typer.Option(
        metavar="KERNEL",
        help="Kernel to boot: bookworm (6.1), trixie (6.12), sid, SUITE:PACKAGE, a .deb, a bzImage "
        "or a built tree.",
        rich_help_panel=GUESTS,
    ),
]
KernelTreeOption = Annotated[
    Path | None,
    typer.Option(
        "--kernel-tree",
        metavar="DIR",
        help="Built kernel tree, instead of --kernel.",
        rich_help_panel=GUESTS,
    ),
]
ModuleOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE.ko",
        help="Module to load before the run; repeatable.",
        rich_help_panel=GUESTS,
    ),
]
AppendOption = Annotated[
    str,
    typer.Option(
        metavar="PARAMETERS",
        help="Parameters to append to the kernel command line, such as apparmor=0.",
        rich_help_panel=GUESTS,
    ),
]
MemoryOption = Annotated[
    str,
    typer.Option(
        metavar="SIZE",
        help="Memory of each guest, such as 4G; a number alone is in MiB.",
        rich_help_panel=GUESTS,
    ),
]
FilesystemOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--filesystem",
        metavar="FILE.toml",
        help="TOML file that describes a file system of your own, for guests. --fs and sides name "
        "it without .toml. Repeatable.",
        rich_help_panel=MEASURED,
    ),
]


@dataclass(frozen=True)
class GuestOptions(GuestRequest):
    """The kernel and the guest to boot. Each field is an option of the same name."""

    kernel: KernelOption = GuestRequest.kernel
    modules: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR|DEB",
            help="Directory with the modules of a bzImage, as `make modules_install "
            "INSTALL_MOD_PATH=DIR` fills it, or the package with the modules of a .deb.",
            rich_help_panel=GUESTS,
        ),
    ] = GuestRequest.modules
    kernel_tree: KernelTreeOption = GuestRequest.kernel_tree
    module: ModuleOption = GuestRequest.module
    smp: Annotated[
        int,
        number(1, 255, "Number of virtual CPUs.", GUESTS),
    ] = GuestRequest.smp
    memory: MemoryOption = GuestRequest.memory
    accel: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Accelerator: kvm, tcg (emulation), or auto: KVM if it can boot the kernel, else "
            "emulation.",
            rich_help_panel=GUESTS,
        ),
    ] = GuestRequest.accel
    deterministic: Annotated[
        bool,
        typer.Option(
            "--deterministic",
            help="Emulate with a clock that counts instructions (QEMU's icount): the cost per "
            "operation is repeatable. The virtual CPUs take turns, so nothing scales.",
            rich_help_panel=GUESTS,
        ),
    ] = GuestRequest.deterministic
    append: AppendOption = GuestRequest.append
    timeout: Annotated[
        float,
        typer.Option(
            min=1,
            max=MOST_SECONDS,
            metavar="SECONDS",
            help="Stop the guest after this many seconds.",
            rich_help_panel=GUESTS,
        ),
    ] = GuestRequest.timeout
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print the QEMU command and exit; whatever the guest needs is still prepared.",
        ),
    ] = GuestRequest.dry_run


guest_options = functools.partial(bundle, "guest", GuestOptions)
"""Give a command the options of a guest, as its parameter `guest`: see `bundle`."""


def finish(outcome: GuestOutcome | None) -> None:
    """Report how the guest ended, and exit with the matching exit code."""
    if outcome is None:
        return
    console = Console(stderr=True)
    if outcome.end != "finished":
        raise GuestError(outcome)
    console.print(
        f"guest finished after {outcome.seconds:.0f} s (boot: {outcome.boot_seconds or 0:.1f} s)",
        highlight=False,
    )
    if outcome.summary:
        console.print(
            f"the guest's kernel printed {kind_of(outcome.summary)}: {outcome.summary}\n"
            f"console log: {outcome.console}",
            markup=False,
            highlight=False,
        )
    if outcome.returncode:
        raise typer.Exit(outcome.returncode)
