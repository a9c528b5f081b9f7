# SPDX-License-Identifier: GPL-2.0-only
"""The options of all commands that boot a guest."""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from fscale.model.bundle import bundle
from fscale.model.helptext import GUESTS
from fscale.model.limits import MOST_SECONDS

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


@dataclass(frozen=True)
class GuestOptions:
    """The kernel and the guest to boot. Each field is an option of the same name."""

    kernel: KernelOption = "bookworm"
    modules: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory with the modules of a bzImage, as `make modules_install "
            "INSTALL_MOD_PATH=DIR` fills it.",
            rich_help_panel=GUESTS,
        ),
    ] = None
    kernel_tree: KernelTreeOption = None
    module: ModuleOption = None
    smp: Annotated[
        int,
        typer.Option(
            min=1,
            max=255,
            metavar="N",
            help="Number of virtual CPUs.",
            rich_help_panel=GUESTS,
        ),
    ] = 4
    memory: MemoryOption = "4G"
    accel: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Accelerator: kvm, tcg (emulation), or auto: KVM if it can boot the kernel, else "
            "emulation.",
            rich_help_panel=GUESTS,
        ),
    ] = "auto"
    deterministic: Annotated[
        bool,
        typer.Option(
            "--deterministic",
            help="Emulate with a clock that counts instructions (QEMU's icount): the cost per "
            "operation is repeatable. The virtual CPUs take turns, so nothing scales.",
            rich_help_panel=GUESTS,
        ),
    ] = False
    append: AppendOption = ""
    timeout: Annotated[
        float,
        typer.Option(
            min=1,
            max=MOST_SECONDS,
            metavar="SECONDS",
            help="Stop the guest after this many seconds.",
            rich_help_panel=GUESTS,
        ),
    ] = 3600
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print the QEMU command and exit; whatever the guest needs is still prepared.",
        ),
    ] = False


guest_options = functools.partial(bundle, "guest", GuestOptions)
"""Give a command the options of a guest, as its parameter `guest`: see `bundle`."""
