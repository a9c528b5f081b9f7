# SPDX-License-Identifier: GPL-2.0-only
"""The options of every command that boots a guest."""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from fscale.model.bundle import bundle
from fscale.model.limits import MOST_SECONDS

KernelTreeOption = Annotated[
    Path | None, typer.Option("--kernel-tree", help="A built kernel tree; instead of --kernel.")
]


@dataclass(frozen=True)
class GuestOptions:
    """The kernel and the guest to boot. Each field is an option of the same name."""

    kernel: Annotated[
        str,
        typer.Option(
            help="bookworm, trixie (or 6.1, 6.12), SUITE:PACKAGE, a .deb, a bzImage, a built tree."
        ),
    ] = "bookworm"
    modules: Annotated[
        Path | None,
        typer.Option(help="Of a bzImage: the directory with its lib/modules/RELEASE."),
    ] = None
    kernel_tree: KernelTreeOption = None
    module: Annotated[
        list[Path] | None, typer.Option(help="A .ko to load before the run; repeat for more.")
    ] = None
    smp: Annotated[int, typer.Option(min=1, max=255, help="Virtual CPUs.")] = 4
    memory: Annotated[str, typer.Option(help="The guest's memory, as 4G.")] = "4G"
    accel: Annotated[
        str, typer.Option(help="auto (KVM where it boots the kernel), kvm or tcg.")
    ] = "auto"
    deterministic: Annotated[
        bool,
        typer.Option(
            "--deterministic",
            help="Count instructions (icount, one thread): repeatable cost an operation, "
            "no scaling.",
        ),
    ] = False
    append: Annotated[str, typer.Option(help="More kernel parameters.")] = ""
    timeout: Annotated[
        float, typer.Option(min=1, max=MOST_SECONDS, help="Seconds after which the guest is ended.")
    ] = 3600
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print the commands; boot nothing. Set-up is still made."),
    ] = False


guest_options = functools.partial(bundle, "guest", GuestOptions)
"""Give a command the options of a guest, as its parameter `guest`: see `bundle`."""
