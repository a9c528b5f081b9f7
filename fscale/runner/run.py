# SPDX-License-Identifier: GPL-2.0-only
"""Measures the cells of a run, here or on other machines, and keeps its run.json up to date."""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from fscale.farm.engine import NodeEngine
from fscale.model import crew, paths
from fscale.model.results import Cell, CellKey, Run
from fscale.model.runs import RESTORED, recorded
from fscale.runner import tasks
from fscale.runner.prepare import Prepared
from fscale.runner.progress import Reporter, format_estimate
from fscale.runner.remeasure import Budget, Choices, warn_of_failure
from fscale.runner.session import Session, new_tag
from fscale.runner.signals import Signals
from fscale.runner.tasks import PlannedRun
from fscale.system.executor import DryExecutor, Executor


def preview(prepared: Prepared, say: Callable[[str], None]) -> None:
    """Print the commands of all cells, and change nothing."""
    say(f"# {_estimate(prepared)}{_budget(prepared)}")
    for text in crew.sentences(prepared.run):
        say(f"# {text}")
    session = Session(
        prepared.setup, prepared.store, paths.state_dir(), DryExecutor(say), Signals()
    )
    with session.opened():
        for number, key in enumerate(prepared.cells, 1):
            done = " (already finished)" if prepared.store.finished(key) else ""
            name = f"{key.id} {key.variant}".rstrip()
            say(f"# cell {number}/{len(prepared.cells)}: {name}{done}")
            if not done:
                session.cell(key)
        say("# restore the machine's state")


def execute(
    prepared: Prepared,
    signals: Signals,
    measure_cell: Callable[[Session, CellKey], Cell | None] = Session.cell,
    executor: Callable[[str], Executor] = Executor,
    choices: Choices = tuple,
) -> None:
    """Measure the unfinished cells on this machine, and restore its state in any case.

    A cell that failed only because the kernel refused CPU hotplug is retried at the end. Then the
    cells of the `choices` are measured again, within the budget of the suite.
    `executor` makes what runs the commands, for a tag.

    Raises:
        Interrupted: the user stopped the run; the same command resumes it.
        Stopped: the machine could not be restored.
    """
    run, todo = prepared.run, prepared.todo
    session = Session(
        prepared.setup, prepared.store, paths.state_dir(), executor(new_tag()), signals
    )
    budget = _budget(prepared)
    about = f"{_estimate(prepared)}{budget}"
    reporter = _reporter(run, prepared.cells, todo, prepared.resumed, about)
    with (
        recorded(run, prepared.store, RESTORED),
        warnings_kept(run, session, reporter.say),
        session.opened(),
        reporter,
    ):
        session.refuse_without_effect(todo)
        refused: list[CellKey] = []
        for key in itertools.chain(todo, refused):
            reporter.begins(key)
            cell = measure_cell(session, key)
            if cell and session.refused and key not in refused:
                refused.append(key)
                reporter.say(f"{key.id}: {cell.reason}; this cell is retried at the end")
            elif cell:
                reporter.ends(cell)
        for store, keys in budget.spend(choices, reporter):
            session.store = store
            for key in keys:
                reporter.begins(key)
                if cell := measure_cell(session, key):
                    reporter.ends(cell)
                    warn_of_failure(run, cell)


def execute_on(engine: NodeEngine, planned: PlannedRun, choices: Choices = tuple) -> None:
    """Measure the unfinished cells on other machines, and again those of the choices.

    Raises:
        Interrupted: the user stopped the run; the same command resumes it.
    """
    run, todo = planned.run, planned.todo
    budget = Budget(run, planned.store, planned.cells)
    about = f"{len(todo)} cells to measure, {engine.slots} at the same time{budget}"
    reporter = _reporter(run, planned.cells, todo, planned.resumed, about)

    def again(cell: Cell) -> None:
        reporter.ends(cell)
        warn_of_failure(run, cell)

    with recorded(run, planned.store, RESTORED):
        try:
            with reporter:
                tasks.measure(planned, todo, engine, reporter.ends)
                for store, keys in budget.spend(choices, reporter):
                    tasks.measure(replace(planned, store=store), keys, engine, again)
        finally:
            run.warnings = [w for w in run.warnings if not w.startswith(tasks.MIXED)]
            for warning in tasks.warn_of_hosts(planned.store):
                reporter.say(f"warning: {warning}")
                run.warnings.append(warning)


@contextlib.contextmanager
def warnings_kept(run: Run, session: Session, say: Callable[[str], None]) -> Iterator[None]:
    """Print and record, after the `with` block, the warnings about the CPUs of a session."""
    try:
        yield
    finally:
        for warning in session.cpus.warnings:
            say(f"warning: {warning}")
        run.warnings = list(dict.fromkeys(run.warnings + session.cpus.warnings))


def _reporter(
    run: Run, cells: Sequence[CellKey], todo: Sequence[CellKey], resumed: bool, about: str
) -> Reporter:
    done = len(cells) - len(todo)
    reporter = Reporter(len(cells), done)
    if resumed:
        reporter.say(f"resuming: {done} cells are already finished")
    for text in [*(f"warning: {one}" for one in run.warnings), *crew.sentences(run), about]:
        reporter.say(text)
    return reporter


def _estimate(prepared: Prepared) -> str:
    return format_estimate(prepared.measurable(prepared.todo), prepared.setup.settings.warmup)


def _budget(prepared: Prepared) -> Budget:
    return Budget(prepared.run, prepared.store, prepared.measurable(prepared.cells))
