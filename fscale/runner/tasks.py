# SPDX-License-Identifier: GPL-2.0-only
"""A run as tasks for other machines: one plans it, and then each cell has a machine for itself."""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fscale.farm.answer import Answer
from fscale.farm.engine import NodeEngine
from fscale.farm.objects import Objects
from fscale.farm.results import hosts, save_answer
from fscale.farm.task import Task, identity
from fscale.model import filetest, paths, runs, variant
from fscale.model.errors import Exit, FscaleError, Interrupted
from fscale.model.facts import list_other_machine
from fscale.model.load import Load
from fscale.model.results import Cell, CellKey, Run
from fscale.model.store import RUN_FILE, Store
from fscale.model.words import plural
from fscale.runner import guard
from fscale.runner.request import Request
from fscale.runner.session import new_cell

NO_PLAN = "0" * 16
"""the plan of a task that is alone"""
_PATHS = ("suite", "device", "directory", "binary")
MIXED = "cells were measured on "
"""how a warning begins that a run has cells of several machines"""


class NotPlanned(FscaleError):  # noqa: N818 - it says what happened
    """The machine that was to plan a run could not; the exit code is the one it would have had."""

    def __init__(self, host: str, text: str, code: int) -> None:
        super().__init__(f"{host} cannot run this: {text.removeprefix('fscale: ')}")
        self.code = Exit(code) if code in set(Exit) else Exit.FAILED


@dataclass
class PlannedRun:
    """A run that a machine of an engine has planned."""

    run: Run
    cells: list[CellKey]
    store: Store
    resumed: bool
    work: dict[str, Any]

    @property
    def todo(self) -> list[CellKey]:
        """The cells that are not finished."""
        return [key for key in self.cells if not self.store.finished(key)]


def describe(request: Request, wait: float, *, shares_files: bool = True) -> dict[str, Any]:
    """Describe a request for another machine, which may have the same files in the same places.

    Raises:
        FscaleError: it has not, and the request names a file of this one.
    """
    named: dict[str, Path] = {
        name: path for name in _PATHS if (path := getattr(request, name)) is not None
    }
    if shares_files:
        named = {n: path.absolute() if filetest.exists(path) else path for n, path in named.items()}
    else:
        _refuse_own_files(request)
        del named["binary"]
    return {name: str(path) for name, path in named.items()} | {
        "overrides": request.overrides,
        "options": request.options,
        "explicit": sorted(request.explicit),
        "seed": request.seed,
        "yes_format": request.yes_format,
        "partitions": request.partitions,
        "wait": wait,
    }


def _refuse_own_files(request: Request) -> None:
    lists = (request.overrides.get(key) or [] for key in ("filesystems", "workloads", "media"))
    names = [str(request.suite), *(str(name) for names in lists for name in names)]
    own = [name for name in names if variant.split_partitions(name)[0].endswith(".toml")]
    if request.binary != paths.BENCH:
        own.append(str(request.binary))
    if own:
        raise FscaleError(
            f"{own[0]} is a file of this machine, which the other one does not get; give the name "
            "of what is shipped (`fscale list`), or run fscale on that machine"
        )
    for path in filter(None, (request.device, request.directory)):
        if not path.is_absolute():
            raise FscaleError(f"{path} lies on the other machine; give a path that begins with /")


def request_from(
    work: dict[str, Any], output: Path, applications: Callable[[Sequence[str]], list[Load]]
) -> Request:
    """Turn a description back into a request, to be measured into `output`."""
    given = {name: work[name] for name in ("overrides", "options", "yes_format", "partitions")}
    places: dict[str, Any] = {name: Path(work[name]) for name in _PATHS if name in work}
    return Request(
        output=output,
        explicit=set(work["explicit"]),
        seed=work["seed"],
        applications=applications,
        **given,
        **places,
    )


def plan(request: Request, wait: float, engine: NodeEngine) -> PlannedRun:
    """Let a machine of the engine plan a run, or the continuation of the one in the output.

    Raises:
        NotPlanned: the machine cannot run it.
        FscaleError: the output contains a run that cannot be resumed on such a machine.
    """
    guard.check_output(request.output)
    store = Store(request.output)
    old = store.load_run()
    work = describe(request, wait, shares_files=engine.shares_files)
    if work["seed"] is None and old:
        work["seed"] = old.seed
    task = Task(kind="run", identity=identity(), plan=NO_PLAN, keys=[], work=work)
    engine.submit([task], Objects())
    (answer,) = engine.collect()
    if answer.planned is None:
        raise NotPlanned(answer.header.host, answer.header.text, answer.header.code)
    run = runs.claim(answer.planned.run, request.output)
    if old:
        if hosts(store) or not store.cells():  # any machine like the first one continues it
            run.machine.hostname = old.machine.hostname
        runs.resume(old, run, request.output)
    work["seed"] = run.seed
    return PlannedRun(run, answer.planned.cells, store, old is not None, work)


def measure(
    planned: PlannedRun,
    keys: Sequence[CellKey],
    engine: NodeEngine,
    ends: Callable[[Cell], None],
) -> None:
    """Measure cells, each as a task; the cell of a task that failed says why.

    The run's record is stored already.
    """
    run = planned.run
    objects = Objects()
    files = {RUN_FILE: objects.add(planned.store.directory / RUN_FILE)}
    named = hashlib.sha256(f"{run.id} {run.started}".encode()).hexdigest()[:16]
    tasks = [
        Task(
            kind="run", identity=identity(), plan=named, keys=[key], files=files, work=planned.work
        )
        for key in keys
    ]
    engine.submit(tasks, objects)
    try:
        for answer in engine.collect():
            _store(planned.store, answer, ends)
    except Interrupted:
        for answer in engine.cancel():
            save_answer(planned.store, answer)
        raise


def _store(store: Store, answer: Answer, ends: Callable[[Cell], None]) -> None:
    there = {cell.id for cell in answer.cells}
    failed = [new_cell(key) for key in answer.task.keys if key.id not in there]
    for cell in failed:
        cell.reason = f"{answer.header.host}: {answer.header.text}"
        cell.fault = "machine"
    for cell in answer.cells:
        if cell.status == "interrupted":
            cell.reason = f"{cell.reason}; {answer.header.text}"
    save_answer(store, answer)
    for cell in failed:
        store.save_cell(cell)
    for cell in [*answer.cells, *failed]:
        ends(cell)


def refuse_other_machine(planned: Run, here: Run) -> None:
    """Check that this machine is like the one that planned a run.

    Raises:
        FscaleError: they differ in facts that figures depend on; the text lists them.
    """
    if changed := list_other_machine(planned, here):
        raise FscaleError(
            f"this machine is not like {planned.machine.hostname}, which planned the run: "
            f"{'; '.join(changed)}. Choose machines that are alike, such as those of one partition"
        )


def warn_of_hosts(store: Store) -> list[str]:
    """A warning if cells of a run were measured on different machines; else nothing."""
    counts = Counter(hosts(store).values())
    if len(counts) < 2:
        return []
    told = ", ".join(f"{host} ({plural(n, 'cell')})" for host, n in sorted(counts.items()))
    return [f"{MIXED}{len(counts)} machines: {told}; curves and comparisons mix them"]
