# SPDX-License-Identifier: GPL-2.0-only
"""Runs a planned paired comparison on this machine and keeps its run.json up to date."""

from collections.abc import Callable

from fscale.ab.identical import refuse_identical
from fscale.ab.local import LocalSource, order
from fscale.ab.loop import Progress, measure
from fscale.ab.plan import Plan
from fscale.ab.progress_table import ProgressTable
from fscale.ab.slices import preview_pair
from fscale.model import crew, paths
from fscale.model.runs import RESTORED, recorded
from fscale.model.terminal import say
from fscale.runner.run import warnings_kept
from fscale.runner.session import Session, new_tag
from fscale.runner.signals import Signals
from fscale.system.executor import DryExecutor, Executor


def preview(plan: Plan, show: Callable[[str], None]) -> None:
    """Print the commands of the first round, and change nothing."""
    session = Session(plan.setups["A"], plan.store, paths.state_dir(), DryExecutor(show), Signals())
    for text in crew.sentences(plan.run):
        show(f"# {text}")
    with session.opened():
        for point in plan.points:
            if point.slicing:
                keys = {side: point.key(side, 1) for side in "AB"}
                show(f"# both sides take turns: {keys['A'].id} {keys['A'].variant}".rstrip())
                preview_pair(session, plan.setups, keys, point.slicing, plan.run.seed)
                continue
            for key in order(point, 1, plan.run.seed):
                assert key.side is not None
                show(f"# side {key.side}: {key.id} {key.variant}".rstrip())
                session.setup = plan.setups[key.side]
                session.cell(key)
        show("# further rounds follow until all is decided; then the machine's state is restored")


def execute(
    plan: Plan,
    signals: Signals,
    seconds: float,
    executor: Callable[[str], Executor] = Executor,
) -> Progress:
    """Measure for at most `seconds` on the held machine; restore its state in any case.

    `executor` makes what runs the commands, for a tag.

    Raises:
        FscaleError: nothing could be measured, the user stopped it, or the machine's state could
            not be restored.
    """
    run = plan.run
    for warning in run.warnings:
        _say(f"warning: {warning}")
    for text in crew.sentences(run):
        _say(text)
    plan.save()
    session = Session(plan.setups["A"], plan.store, paths.state_dir(), executor(new_tag()), signals)
    with recorded(run, plan.store, RESTORED):
        with (
            warnings_kept(run, session, _say),
            session.opened(),
            ProgressTable(plan.points, plan.settings) as table,
        ):
            for side, setup in plan.setups.items():
                session.setup = setup
                session.refuse_without_effect([plan.points[0].key(side, 1)])
            refuse_identical(plan, session)
            progress = measure(LocalSource(plan, session), plan.aim, seconds, table)
        plan.save(progress.looks)
        run.planned_cells = len(progress.cells)
    for reason in progress.not_sliced.values():
        _say(f"measured in whole repetitions because the first pair in slices failed: {reason}")
    for reason in progress.given_up.values():
        _say(f"gave up a point: {reason}")
    if progress.out_of_time and progress.open:
        _say(f"the time limit is reached; {len(progress.open)} points are undecided")
    return progress


def _say(text: str) -> None:
    say(text, error=True)
