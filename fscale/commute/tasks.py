# SPDX-License-Identifier: GPL-2.0-only
"""Boots as tasks for other machines: what each brings, and what is kept of its answer."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fscale.commute.boot import Boot, Ended
from fscale.commute.generate import PairTest, Selection
from fscale.commute.guest import MEDIUM, Guest
from fscale.commute.store import BootHead, Found, parse_boot
from fscale.farm.answer import CONFLICTS_FILE, Answer
from fscale.farm.engine import Engine, Say
from fscale.farm.objects import Objects
from fscale.farm.task import Task, identity
from fscale.model import catalogue
from fscale.model.catalogue import explain
from fscale.model.config import FileSystem
from fscale.sim import kerneltypes
from fscale.sim.tasks import PLUGIN, TasksError
from fscale.vm.cache import digest
from fscale.vm.steps import Steps
from fscale.vm.tasks import OWN, kernel_files, kernel_from, same_qemu


def execute_elsewhere(
    boots: Sequence[Boot],
    selection: Selection,
    tests: Sequence[PairTest],
    engine: Engine,
    say: Say,
) -> Ended:
    """Execute boots on the machines of an engine; the `tests` are those of the selection.

    Raises:
        TasksError: some boots failed, or their answers are not theirs; the others are kept.
    """
    if not boots:
        return
    objects = Objects()
    tasks = [make(boot, selection, objects) for boot in boots]
    engine.submit(tasks, objects)
    by_id = {task.id: boot for task, boot in zip(tasks, boots, strict=True)}
    ids = {test.id for test in tests}
    failed = 0
    for answer in engine.collect():
        boot, host = by_id[answer.task.id], answer.header.host
        try:
            found = _checked(answer, boot, ids)
        except TasksError as error:
            failed += 1
            say(f"warning: {boot.title}, on {host}: {error}")
            continue
        say(f"{boot.title}: executed on {host}")
        yield boot, found
    if failed:
        raise TasksError(
            f"{failed} of {len(boots)} boots failed; see the warnings above. The same command "
            "executes them again"
        )


def _checked(answer: Answer, boot: Boot, ids: set[str]) -> Found:
    if answer.header.code or answer.record is None:
        raise TasksError(answer.header.text)
    try:
        head, found = parse_boot(answer.record)
    except ValidationError as error:
        raise TasksError(f"its conflicts are not valid: {explain(error)}") from None
    if head != boot.head or found.keys() != ids:
        raise TasksError("its conflicts are those of another boot")
    return found


def make(boot: Boot, selection: Selection, objects: Objects) -> Task:
    """Make a task of a boot; its files are added to `objects`."""
    guest = boot.guest
    files = {
        **kernel_files(replace(guest.kernel, initramfs=guest.initramfs), objects),
        PLUGIN: objects.add(guest.plugin),
        **{f"{OWN}/{path.name}": objects.add(path) for path in guest.modules},
    }
    work: dict[str, Any] = {
        "kernel": {"name": guest.kernel.name, "release": guest.kernel.release},
        "qemu": guest.emulator.digest,
        "name": guest.name,
        "filesystem": guest.filesystem.model_dump(mode="json"),
        "head": boot.head.model_dump(),
        "selection": selection.model_dump(mode="json"),
    }
    plan = digest(identity(), files, work)
    return Task(kind="commute", identity=identity(), plan=plan, keys=[], files=files, work=work)


def boot_from(task: Task, directory: Path, steps: Steps) -> tuple[Boot, Selection]:
    """Turn a task back into a boot, whose input files are in `directory`, and its tests.

    Raises:
        FscaleError: this machine's QEMU is not the one of the plan.
    """
    work = task.work
    name, filesystem = work["name"], FileSystem.model_validate(work["filesystem"])
    kernel = kernel_from(task, directory)
    modules = tuple(directory / role for role in task.files if role.startswith(f"{OWN}/"))
    guest = Guest(
        name,
        filesystem,
        catalogue.load_medium(MEDIUM),
        kernel,
        same_qemu(task, steps),
        directory / PLUGIN,
        kernel.initramfs,
        modules,
        kerneltypes.load(kernel, {name: filesystem}, (), modules)[name],
    )
    head = BootHead.model_validate(work["head"])
    selection = Selection.model_validate(work["selection"])
    return Boot(CONFLICTS_FILE, f"{name} on {kernel.release}", guest, head), selection
