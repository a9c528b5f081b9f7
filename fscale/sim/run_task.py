# SPDX-License-Identifier: GPL-2.0-only
"""Simulates the cells of a task of another machine."""

from pathlib import Path

from fscale.farm.slot import own_cpu
from fscale.farm.task import Task
from fscale.model.terminal import terminal
from fscale.sim import campaign
from fscale.sim.campaign import SweepReporter
from fscale.sim.tasks import prepared_from
from fscale.vm.steps import Steps


def simulate(task: Task, directory: Path, output: Path) -> None:
    """Boot guests, one at a time, until every cell of the task is in `output`.

    Raises:
        FscaleError: guests ended early, or this machine's QEMU is not the plan's.
        Interrupted: somebody stopped it; finished cells are kept.
    """
    prepared = prepared_from(task, directory, output, Steps(terminal(error=True)))
    reporter = SweepReporter(prepared.cells, prepared.done)
    with own_cpu() as cpu, reporter:
        campaign.boot_here(prepared, [cpu], reporter)
