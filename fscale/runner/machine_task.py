# SPDX-License-Identifier: GPL-2.0-only
"""Examines or restores another machine, as a task without cells."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from fscale.farm.answer import REPORT_FILE, Refused
from fscale.farm.engine import NodeEngine
from fscale.farm.objects import Objects
from fscale.farm.task import Kind, Task, identity
from fscale.model import paths
from fscale.model.catalogue import explain
from fscale.model.load import Load
from fscale.model.store import Store
from fscale.runner.doctor import Finding, examine
from fscale.runner.machine.journal import exclusive, recover
from fscale.runner.signals import Signals
from fscale.runner.tasks import NO_PLAN, NotPlanned

_FINDINGS = TypeAdapter(list[Finding])
_RESTORED = TypeAdapter(tuple[list[str], list[str]])
_T = TypeVar("_T")


def restore(wait: float) -> tuple[list[str], list[str]]:
    """Undo what a killed run left on this machine: what was undone, and what could not be."""
    state, signals = paths.state_dir(), Signals()
    with signals.installed(), signals.deferred(), exclusive(state, wait):
        return recover(state)


def examine_here(output: Path, applications: Sequence[Load]) -> None:
    """Store what this machine can do."""
    Store(output).save(REPORT_FILE, _FINDINGS.dump_json(examine(applications)))


def restore_here(task: Task, output: Path) -> None:
    """Restore this machine, and store what was undone."""
    Store(output).save(REPORT_FILE, _RESTORED.dump_json(restore(task.work["wait"])))


def examine_on(engine: NodeEngine) -> list[Finding]:
    """What a machine can do."""
    return _ask(engine, "doctor", _FINDINGS)


def restore_on(engine: NodeEngine, wait: float) -> tuple[list[str], list[str]]:
    """Restore a machine; see `restore`."""
    return _ask(engine, "restore", _RESTORED, wait=wait)


def _ask(engine: NodeEngine, kind: Kind, form: TypeAdapter[_T], **work: object) -> _T:
    """Run a task, and return its report.

    Raises:
        NotPlanned: it failed.
        Refused: its report has another form.
    """
    task = Task(kind=kind, identity=identity(), plan=NO_PLAN, keys=[], work=work)
    engine.submit([task], Objects())
    (answer,) = engine.collect()
    if answer.record is None:
        raise NotPlanned(answer.header.host, answer.header.text, answer.header.code)
    try:
        return form.validate_json(answer.record)
    except ValidationError as error:
        raise Refused(f"{REPORT_FILE} of {answer.header.host}: {explain(error)}") from None
