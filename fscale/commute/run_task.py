# SPDX-License-Identifier: GPL-2.0-only
"""Executes the boot of a task of another machine."""

import contextlib
from pathlib import Path

from fscale.commute.boot import execute_here
from fscale.commute.store import Store
from fscale.commute.tasks import boot_from
from fscale.farm.answer import CONFLICTS_FILE
from fscale.farm.slot import own_cpu
from fscale.farm.task import Task
from fscale.model.terminal import terminal
from fscale.vm.steps import Steps


def find_conflicts(task: Task, directory: Path, output: Path) -> None:
    """Execute the tests of a task in one boot, and write their conflicts.

    What an equal task has left in `output` is removed first: it would be this one's answer if the
    guest failed.

    Raises:
        FscaleError: the guest or a test failed, or this machine's QEMU is not the plan's.
        Interrupted: somebody stopped it.
    """
    (output / CONFLICTS_FILE).unlink(missing_ok=True)
    boot, selection = boot_from(task, directory, Steps(terminal(error=True)))
    _, tests = selection.draw()
    with (
        own_cpu() as cpu,
        contextlib.closing(execute_here([boot], tests, [cpu], output / "guest")) as ended,
    ):
        for _, found in ended:
            Store(output).save_boot(boot.name, boot.head, found)
