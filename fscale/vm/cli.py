# SPDX-License-Identifier: GPL-2.0-only
"""Functions that the commands of `fscale vm` share: start a guest, report how it ended."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fscale.model.helptext import MEASURED
from fscale.vm import guest as guests
from fscale.vm import kernel as kernels
from fscale.vm import module_build, rootfs
from fscale.vm.console import kind_of
from fscale.vm.options import GuestOptions
from fscale.vm.place import Job, Place
from fscale.vm.qemu import Qemu
from fscale.vm.steps import Steps
from fscale.vm.tasks import Boot

FilesystemOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--filesystem",
        metavar="FILE.toml",
        help="TOML file that describes a file system of your own. --fs and sides name it without "
        ".toml. Repeatable.",
        rich_help_panel=MEASURED,
    ),
]


def prepare(
    job: Job,
    options: GuestOptions,
    steps: Steps,
    *,
    filesystems: Sequence[str] = (),
    own: Sequence[Path] = (),
) -> tuple[Boot, Qemu]:
    """Prepare the kernel that the options name, and all that its guest needs to run `job`.

    Modules and tools that `filesystems` have as source are built and passed to the guest; `own` are
    TOML files of the user that may describe some of them.
    """
    kernel = kernels.resolve(
        options.kernel, steps, modules=options.modules, tree=options.kernel_tree
    )
    given = options.module or []
    parts = module_build.build_parts(
        filesystems, own, kernel, options.kernel, options.kernel_tree, steps, given
    )
    job = replace(parts.added(replace(job, modules=given)), timeout=options.timeout)
    guest, emulator = guests.prepare(kernel, options, rootfs.images(steps), steps)
    return Boot(guest, job), emulator


def start(
    job: Job,
    options: GuestOptions,
    *,
    filesystems: Sequence[str] = (),
    own: Sequence[Path] = (),
) -> guests.Outcome | None:
    """Boot the kernel that the options name and run `job`; None after a dry run. See `prepare`."""
    steps = Steps(Console(stderr=True))
    boot, emulator = prepare(job, options, steps, filesystems=filesystems, own=own)
    if options.dry_run:
        show(boot, emulator)
        return None
    return guests.run(boot.guest, emulator, boot.job, steps)


def show(boot: Boot, emulator: Qemu) -> None:
    """Print the commands of a boot."""
    place = Place(Path("RUN"))
    typer.echo(shlex.join(guests.plan(boot.guest, emulator, boot.job, place)))
    typer.echo(f"in the guest: {shlex.join(boot.job.argv)}")


def guest_files(suite: Path, filesystems: list[Path] | None) -> tuple[dict[str, Path], str]:
    """The configuration files to pass to the guest, and the suite's name in the guest."""
    files = {f"filesystems/{path.name}": path for path in filesystems or []}
    if not suite.is_file():
        return files, str(suite)
    return {**files, "suite.toml": suite}, "/control/suite.toml"


def finish(outcome: guests.Outcome | None) -> None:
    """Report how the guest ended, and exit with the matching exit code."""
    if outcome is None:
        return
    console = Console(stderr=True)
    if outcome.end != "finished":
        raise guests.GuestError(outcome)
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
