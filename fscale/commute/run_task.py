# SPDX-License-Identifier: GPL-2.0-only
"""Executes the boot of a task of another machine."""

import contextlib
import time
from pathlib import Path

from fscale.commute.boot import POLL_SECONDS, by_test, ordered
from fscale.commute.guest import execute
from fscale.commute.store import Store
from fscale.commute.tasks import work_of
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
    work = work_of(task, directory, Steps(terminal(error=True)))
    head, tests = work.head, ordered(work.selection.draw()[1], work.head)
    with contextlib.ExitStack() as stack:
        cpu = stack.enter_context(own_cpu())
        execution = execute(work.guest, tests, head.order, head.seed, cpu, output / "guest")
        stack.callback(execution.close)
        while True:
            try:
                next(execution)
            except StopIteration as end:
                Store(output).save_boot(CONFLICTS_FILE, head, by_test(tests, end.value))
                return
            time.sleep(POLL_SECONDS)
