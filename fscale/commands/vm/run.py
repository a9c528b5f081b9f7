# SPDX-License-Identifier: GPL-2.0-only
"""`fscale vm run`: runs a suite in a guest."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fscale.commands.options.bundle import bundle
from fscale.commands.options.guest import FilesystemOption, GuestOptions, finish, guest_options
from fscale.commands.options.helptext import OUTPUT
from fscale.commands.options.in_guest import run_in_guest
from fscale.commands.options.kinds import output_directory
from fscale.commands.options.run import RunOptions
from fscale.commands.options.suite import SuiteArgument
from fscale.commands.options.writable import unused
from fscale.model.variant import OF_FRESH, parse
from fscale.vm.boot import start
from fscale.vm.module_build import check_user_files
from fscale.vm.place import Job

_RUN_EPILOG = """
More examples:

    fscale vm run smoke --kernel-tree ~/linux --module my.ko --filesystem my.toml --fs my
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run", epilog=_RUN_EPILOG)(_run)


@bundle("measured", RunOptions, "on")
@guest_options(timeout=6 * 3600)
def _run(
    *,
    suite: SuiteArgument,
    output: Annotated[
        Path | None,
        output_directory(
            "Results directory, created if missing. An interrupted run in it is resumed. "
            "Default: results/vm-DATE-TIME."
        ),
    ] = None,
    filesystem: FilesystemOption = None,
    junit: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="JUnit XML to write in the guest, such as /results/fscale.xml.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    ktap: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="KTAP to write in the guest, such as /results/fscale.ktap.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    measured: RunOptions,
    guest: GuestOptions,
) -> None:
    """Run a suite in a guest, as `fscale run` does on this machine.

    Example: fscale vm run quick --kernel trixie --smp 4 --fs f2fs,ext4

    The first call takes minutes: it puts a Debian root, the kernel and QEMU into a cache. Values
    from an emulated guest are meaningful only as ratios, which the results say.

    Exit codes: those of `fscale run` in the guest. 1 also if the guest ended early, such as by a
    panic, a hang or --timeout; the message names the reason.
    """
    user_files = filesystem or []
    in_guest = run_in_guest(measured, suite, user_files)
    names = in_guest.suite.filesystems
    check_user_files(user_files, names)
    for name in names:
        parse(name).refuse_but(OF_FRESH, "--fs in a guest")
    if guest.deterministic and guest.smp != 1:
        Console(stderr=True).print(
            "--deterministic: the virtual CPUs take turns, so no curve scales"
        )
    if output is None:
        output = unused(Path("results") / f"vm-{datetime.now():%Y%m%d-%H%M%S}")
    reports = {"junit": junit, "ktap": ktap}
    more = [f"--{name}={file}" for name, file in reports.items() if file is not None]
    job = Job(
        argv=["python3", "-m", "fscale", "run", *in_guest.arguments, "--output", "/results", *more],
        output=output.resolve(),
        files=in_guest.files,
    )
    finish(start(job, guest, filesystems=names, user_files=user_files))
    if not guest.dry_run:
        typer.echo(output)
