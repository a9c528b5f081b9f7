# SPDX-License-Identifier: GPL-2.0-only
"""`fscale vm kernel build` and `fscale vm module build`."""

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fscale.commands.options.guest import KernelTreeOption
from fscale.commands.options.helptext import GUESTS
from fscale.model.errors import FscaleError
from fscale.model.limits import MOST_JOBS
from fscale.vm import kbuild
from fscale.vm.steps import Steps

_KERNEL_EPILOG = """
More examples:

    fscale vm run quick --kernel-tree $(fscale vm kernel build trixie --config lockstat)
"""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    kernel = typer.Typer(no_args_is_help=True, help="Build kernels for guests.")
    kernel.command("build", epilog=_KERNEL_EPILOG)(_build_kernel)
    module = typer.Typer(no_args_is_help=True, help="Build modules under test.")
    module.command("build")(_build_module)
    app.add_typer(kernel, name="kernel")
    app.add_typer(module, name="module")


def _build_kernel(
    source: Annotated[
        str,
        typer.Argument(
            help="Kernel source tree, or bookworm, trixie or sid for the source of that Debian "
            "suite."
        ),
    ],
    config_name: Annotated[
        str,
        typer.Option(
            "--config",
            metavar="NAME",
            help=f"Configuration: {', '.join(kbuild.configs())} (docs/design/guests.md).",
        ),
    ] = "default",
    jobs: Annotated[
        int,
        typer.Option(
            min=1,
            max=MOST_JOBS,
            metavar="N",
            help="Compilers to run at the same time.",
            show_default="number of CPUs",
        ),
    ] = os.cpu_count() or 1,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print the options of the configuration and exit."),
    ] = False,
) -> None:
    """Build a small kernel for guests and print the built tree, for --kernel-tree.

    Example: fscale vm kernel build trixie --config lockstat

    The build takes about ten minutes on two cores. An unchanged source is not built again.
    """
    if dry_run:
        typer.echo(kbuild.fragment(config_name))
        return
    typer.echo(kbuild.build_kernel(source, config_name, jobs, Steps(Console(stderr=True))))


def _build_module(
    source: Annotated[Path, typer.Argument(help="Directory of the module, with its Makefile.")],
    kernel: Annotated[
        str,
        typer.Option(
            "--kernel",
            metavar="KERNEL",
            help="Debian suite whose newest kernel the module is built for: bookworm (6.1), trixie "
            "(6.12) or sid.",
            rich_help_panel=GUESTS,
        ),
    ] = "",
    kernel_tree: KernelTreeOption = None,
) -> None:
    """Build an out-of-tree module for a kernel and print the .ko file, for --module.

    Example: fscale vm module build tests/fixtures/trivialfs --kernel trixie
    """
    if bool(kernel) == bool(kernel_tree):
        raise FscaleError(
            "the kernel is missing or given twice; give either --kernel or --kernel-tree"
        )
    steps = Steps(Console(stderr=True))
    target = kbuild.tree_target(kernel_tree) if kernel_tree else kbuild.latest(kernel, steps)
    for path in kbuild.build_module(source, target, steps):
        typer.echo(path)
