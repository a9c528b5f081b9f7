# SPDX-License-Identifier: GPL-2.0-only
"""Compares two sides for another machine that has asked for it."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from fscale.ab.plan import make
from fscale.ab.run import execute
from fscale.analysis.compare.settings import Settings
from fscale.farm.task import Task
from fscale.model.load import Load
from fscale.model.variant import parse
from fscale.runner.run_task import Told
from fscale.runner.session import this_machine_held
from fscale.runner.tasks import request_from


def compare(
    task: Task,
    directory: Path,
    output: Path,
    applications: Callable[[Sequence[str]], list[Load]],
) -> None:
    """Measure both sides in turn into `output`; `directory` has the files of the run to resume.

    Raises:
        FscaleError: see fscale.ab.run.execute.
        Interrupted: somebody stopped it; what was measured is kept.
    """
    work = task.work
    for role in task.files:
        target = output / role
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(directory / role, target)
    with this_machine_held(work["wait"]) as signals:
        plan = make(
            request_from(work, output, applications),
            parse(work["base"]),
            parse(work["new"]),
            Settings.model_validate(work["settings"]),
            work["repetitions"],
            slices=work["slices"],
        )
        execute(plan, signals, work["seconds"], Told)
