# SPDX-License-Identifier: GPL-2.0-only
"""Plans a run, or measures some of its cells, for another machine that has asked for it."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from fscale.farm.answer import PLANNED, Planned
from fscale.farm.task import Task
from fscale.model import paths
from fscale.model.load import Load
from fscale.model.results import Run
from fscale.model.store import RUN_FILE
from fscale.model.terminal import say
from fscale.runner.prepare import Prepared, prepare
from fscale.runner.session import Session, new_tag, this_machine_held
from fscale.runner.signals import Signals
from fscale.runner.tasks import refuse_other_machine, request_from
from fscale.system.executor import Executor


class Told(Executor):
    """Prints each command before it runs: the last line is what a machine did when it was lost."""

    def begins(self, argv: list[str]) -> None:
        """See Executor."""
        say(shlex.join(argv), error=True)


def measure(
    task: Task,
    directory: Path,
    output: Path,
    applications: Callable[[Sequence[str]], list[Load]],
) -> None:
    """Measure the cells of a task; without cells, store what this machine would measure.

    `directory` has the record of the run that the cells belong to.

    Raises:
        FscaleError: this machine cannot, or is not like the one that planned the run.
        Interrupted: somebody stopped it; the cell is stored with that status.
    """
    with this_machine_held(task.work["wait"]) as signals:
        prepared = prepare(request_from(task.work, output, applications))
        if task.keys:
            planned = Run.model_validate_json((directory / RUN_FILE).read_bytes())
            refuse_other_machine(planned, prepared.run)
            _measure(task, prepared, signals)
        else:
            plan = Planned(run=prepared.run, cells=prepared.cells)
            prepared.store.save(PLANNED, plan.model_dump_json(by_alias=True))


def _measure(task: Task, prepared: Prepared, signals: Signals) -> None:
    session = Session(prepared.setup, prepared.store, paths.state_dir(), Told(new_tag()), signals)
    with session.opened():
        session.refuse_without_effect(task.keys)
        for key in task.keys:
            say(f"cell {key.id}", error=True)
            session.cell(key)
            if session.refused:
                session.cell(key)
