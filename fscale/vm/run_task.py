# SPDX-License-Identifier: GPL-2.0-only
"""Boots the guest of a task of another machine."""

from pathlib import Path

from fscale.farm.task import Task
from fscale.model.terminal import terminal
from fscale.vm import guest as guests
from fscale.vm import memory, untrusted
from fscale.vm.guest import GuestError
from fscale.vm.steps import Steps
from fscale.vm.tasks import boot_from


def boot(task: Task, directory: Path, output: Path) -> None:
    """Boot a guest, whose job stores its results in `output`; whether it could, they say.

    A boot that a killed worker left is begun anew.

    Raises:
        GuestError: the guest did not end by itself.
        FscaleError: this machine has another QEMU, or too little memory.
        Interrupted: somebody stopped it.
    """
    steps = Steps(terminal(error=True))
    asked, emulator = boot_from(task, directory, output, steps)
    memory.check(asked.guest.memory)
    untrusted.remove(output)
    outcome = guests.run(asked.guest, emulator, asked.job, steps)
    if outcome.end != "finished":
        raise GuestError(outcome)
