# SPDX-License-Identifier: GPL-2.0-only
"""Boots as tasks for other machines: what each brings, and what is kept of its answer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fscale.commute.boot import Boot, Ended
from fscale.commute.generate import Selection
from fscale.commute.guest import MEDIUM, Guest
from fscale.commute.store import BootHead, Found, parse_boot
from fscale.farm.answer import Refused
from fscale.farm.engine import Engine, Say
from fscale.farm.objects import Objects
from fscale.farm.task import Task, identity
from fscale.model import catalogue
from fscale.model.catalogue import explain
from fscale.model.config import FileSystem
from fscale.model.errors import Exit, FscaleError
from fscale.sim import kerneltypes
from fscale.sim.tasks import PLUGIN
from fscale.vm.cache import digest
from fscale.vm.steps import Steps
from fscale.vm.tasks import OWN, kernel_files, kernel_from, same_qemu


class TasksError(FscaleError):
    """Boots failed on other machines."""

    code = Exit.FAILED


@dataclass(frozen=True)
class Work:
    """A task as a machine reads it."""

    guest: Guest
    head: BootHead
    selection: Selection


def execute_elsewhere(
    boots: Sequence[Boot], selection: Selection, engine: Engine, say: Say
) -> Ended:
    """Execute boots on the machines of an engine.

    Raises:
        TasksError: guests, or tests in them, failed; the other boots are kept.
        Refused: an answer is not that of the boot.
    """
    if not boots:
        return
    objects = Objects()
    tasks = [make(boot, selection, objects) for boot in boots]
    engine.submit(tasks, objects)
    by_id = {task.id: boot for task, boot in zip(tasks, boots, strict=True)}
    ids = {test.id for test in selection.draw()[1]}
    failed = []
    for answer in engine.collect():
        boot, header = by_id[answer.task.id], answer.header
        if answer.record is None:
            failed.append(f"{boot.title}, on {header.host}: {header.text}")
            continue
        found = _checked(answer.record, boot, ids)
        say(f"{boot.title}: executed on {header.host}")
        yield boot, found
    if failed:
        raise TasksError("\n".join(failed))


def _checked(record: bytes, boot: Boot, ids: set[str]) -> Found:
    try:
        head, found = parse_boot(record)
    except ValidationError as error:
        raise Refused(f"the conflicts of {boot.title} are not valid: {explain(error)}") from None
    if head != boot.head or found.keys() != ids:
        raise Refused(f"the conflicts are not those of {boot.title}")
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


def work_of(task: Task, directory: Path, steps: Steps) -> Work:
    """Turn a task back into a boot, whose input files are in `directory`.

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
    return Work(
        guest, BootHead.model_validate(work["head"]), Selection.model_validate(work["selection"])
    )
