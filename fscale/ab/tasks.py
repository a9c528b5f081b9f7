# SPDX-License-Identifier: GPL-2.0-only
"""A comparison as one task for another machine, which measures both sides of each pair."""

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from fscale.ab import record
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import AbRecord
from fscale.farm.answer import Answer, Refused
from fscale.farm.engine import NodeEngine
from fscale.farm.objects import Objects
from fscale.farm.results import save_answer
from fscale.farm.task import Task, identity
from fscale.model import runs
from fscale.model.catalogue import explain
from fscale.model.errors import Exit, Interrupted
from fscale.model.results import Run
from fscale.model.store import AB_FILE, RUN_FILE, Store
from fscale.model.variant import Variant
from fscale.runner import guard
from fscale.runner.request import Request
from fscale.runner.tasks import NO_PLAN, NotPlanned, describe


@dataclass(frozen=True)
class Asked:
    """What is compared, and for how long."""

    base: Variant
    new: Variant
    settings: Settings
    repetitions: int
    slices: bool | None
    seconds: float
    wait: float

    @property
    def work(self) -> dict[str, Any]:
        """The same as arguments of a task."""
        return {
            "base": self.base.text,
            "new": self.new.text,
            "settings": self.settings.model_dump(mode="json"),
            "repetitions": self.repetitions,
            "slices": self.slices,
            "seconds": self.seconds,
        }


def measure_on(engine: NodeEngine, request: Request, asked: Asked) -> None:
    """Compare both sides on one machine of an engine, and store the run in the request's output.

    A run that is there is resumed on the machine that began it.

    Raises:
        Interrupted: the user, or the job's time limit, stopped it; what was measured is stored.
        NotPlanned: the machine could not measure it.
    """
    guard.check_output(request.output)
    store = Store(request.output)
    old = store.load_run()
    objects = Objects()
    names = [RUN_FILE, AB_FILE, *(f"cells/{cell.id}.json" for cell in store.cells())]
    files = {name: objects.add(store.directory / name) for name in names if old}
    task = Task(
        kind="ab",
        identity=identity(),
        plan=NO_PLAN,
        keys=[],
        host=old.machine.hostname if old else None,
        files=files,
        work=describe(request, asked.wait, shares_files=engine.shares_files) | asked.work,
    )
    engine.submit([task], objects)
    try:
        (answer,) = engine.collect()
    except Interrupted:
        for stopped in engine.cancel():
            _store(store, old, stopped)
        raise
    _store(store, old, answer)
    header = answer.header
    if header.code == Exit.INTERRUPTED:
        raise Interrupted(f"{header.host}: {header.text}; the same command resumes the run there")
    if header.code:
        raise NotPlanned(header.host, header.text, header.code)


def _store(store: Store, old: Run | None, answer: Answer) -> None:
    """Keep what a machine measured, as the run of this call.

    Raises:
        Refused: its AB_FILE is not valid; nothing is kept.
    """
    if answer.run is None or answer.record is None:
        return
    try:
        ab_record = AbRecord.model_validate_json(answer.record)
    except ValidationError as error:
        raise Refused(f"{AB_FILE} of {answer.header.host}: {explain(error)}") from None
    save_answer(store, answer)
    run = runs.claim(answer.run, store.directory)
    if old:
        run.started, run.command = old.started, [*old.command, *run.command]
    store.save_run(run)
    looks = record.Looks(tuple(ab_record.looks), tuple(ab_record.pair_looks))
    record.save(store, ab_record.base, ab_record.new, looks, ab_record.settings)
