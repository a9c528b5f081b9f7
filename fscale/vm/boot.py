# SPDX-License-Identifier: GPL-2.0-only
"""Boots the guest that a user asks for."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from fscale.vm import guest as guests
from fscale.vm import kernel as kernels
from fscale.vm import module_build, rootfs
from fscale.vm.place import Job, JobFiles
from fscale.vm.qemu import Qemu
from fscale.vm.request import GuestRequest
from fscale.vm.steps import Steps
from fscale.vm.tasks import GuestJob


def prepare(
    job: Job,
    request: GuestRequest,
    steps: Steps,
    *,
    filesystems: Sequence[str] = (),
    user_files: Sequence[Path] = (),
) -> tuple[GuestJob, Qemu]:
    """Prepare the kernel that the request names, and all that its guest needs to run `job`.

    Modules and tools that `filesystems` have as source are built and passed to the guest;
    `user_files` are TOML files that may describe some of them.
    """
    kernel = kernels.of_guest(
        request.kernel, steps, modules=request.modules, tree=request.kernel_tree
    )
    given = request.module or []
    parts = module_build.build_parts(
        filesystems, user_files, kernel, request.kernel, request.kernel_tree, steps, given
    )
    job = replace(parts.added(replace(job, modules=given)), timeout=request.timeout)
    guest, emulator = guests.prepare(kernel, request, rootfs.images(steps), steps)
    return GuestJob(guest, job), emulator


def start(
    job: Job,
    request: GuestRequest,
    *,
    filesystems: Sequence[str] = (),
    user_files: Sequence[Path] = (),
) -> guests.GuestOutcome | None:
    """Boot the kernel that the request names and run `job`; None after a dry run. See `prepare`."""
    steps = Steps(Console(stderr=True))
    boot, emulator = prepare(job, request, steps, filesystems=filesystems, user_files=user_files)
    if request.dry_run:
        print_commands(boot, emulator)
        return None
    return guests.run(boot.guest, emulator, boot.job, steps)


def print_commands(boot: GuestJob, emulator: Qemu) -> None:
    """Print the commands of a boot."""
    place = JobFiles(Path("RUN"))
    print(shlex.join(guests.plan(boot.guest, emulator, boot.job, place)))
    print(f"in the guest: {shlex.join(boot.job.argv)}")
