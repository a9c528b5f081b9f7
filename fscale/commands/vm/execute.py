# SPDX-License-Identifier: GPL-2.0-only
"""`fscale vm exec`: runs any command in a guest."""

from pathlib import Path
from typing import Annotated

import typer

from fscale.commands.options.guest import GuestOptions, finish, guest_options
from fscale.commands.options.kinds import output_directory
from fscale.model import catalogue
from fscale.model.errors import FscaleError
from fscale.runner.request import parse_list
from fscale.vm.boot import start
from fscale.vm.place import Job

# The words of the command, and options after them, are not this program's.
PASSING_ON = {"allow_extra_args": True, "ignore_unknown_options": True}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("exec", context_settings=PASSING_ON)(_exec)


@guest_options(smp=2, memory="2G", timeout=600)
def _exec(
    context: typer.Context,
    *,
    fs: Annotated[
        str | None,
        typer.Option(
            "--fs",
            metavar="FS,...",
            help="File systems, separated by commas, whose modules and tools are built from source "
            "and installed in the guest first.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        output_directory("Directory of the host that is mounted on /results in the guest."),
    ] = None,
    guest: GuestOptions,
) -> None:
    """Run any command in a guest, as root.

    Example: fscale vm exec --kernel trixie --smp 8 -- lscpu

    This repository is in /fscale in the guest.

    Exit codes: those of the command. 1 also if the guest ended early, such as by a panic, a hang or
    --timeout; the message names the reason.
    """
    if not context.args:
        raise FscaleError(
            "the command to run is missing: fscale vm exec [OPTIONS] -- COMMAND [ARGUMENT]..."
        )
    names = parse_list("--fs", fs, catalogue.split_filesystems) or []
    for name in names:
        catalogue.load_filesystem(name)  # reports errors before a boot
    job = Job(argv=context.args, output=output.resolve() if output else None)
    finish(start(job, guest, filesystems=names))
