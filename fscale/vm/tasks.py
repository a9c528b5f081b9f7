# SPDX-License-Identifier: GPL-2.0-only
"""Boots of guests as tasks for other machines: what each brings, and what is kept of its answer."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fscale.farm.answer import CRASH_FILE, Answer
from fscale.farm.engine import Engine, Say
from fscale.farm.objects import Objects
from fscale.farm.results import save_answer
from fscale.farm.task import Task, identity
from fscale.model.errors import Exit, FscaleError
from fscale.model.store import Store
from fscale.vm import qemu, untrusted
from fscale.vm.cache import digest
from fscale.vm.kernel import Kernel
from fscale.vm.place import Job
from fscale.vm.qemu import Guest, Qemu
from fscale.vm.steps import Steps

KERNEL, INITRAMFS, MODULES = "kernel", "initramfs", "modules.squashfs"
IMAGES, OWN, CONTROL = "images", "modules", "control"
"""folders of roles: squashfs images, modules under test, files of the job"""


class BootFailed(FscaleError):  # noqa: N818 - it says what happened
    """A guest on another machine did not end by itself: panic, out of memory, hang, time limit."""

    code = Exit.FAILED


@dataclass(frozen=True)
class GuestJob:
    """A guest and its job, which stores something."""

    guest: Guest
    job: Job

    @property
    def output(self) -> Path:
        """The directory with what the job stored."""
        assert self.job.output is not None
        return self.job.output


class Elsewhere:
    """Boots guests on the machines of an engine."""

    def __init__(self, engine: Engine, emulator: Qemu, say: Say) -> None:
        self._engine = engine
        self._emulator = emulator
        self._say = say
        self._objects = Objects()
        self._call = secrets.token_hex(8)
        """tells the boots of this call from equal ones of another"""

    @property
    def slots(self) -> int:
        """The number of guests that run at the same time."""
        return self._engine.slots

    def run(self, boots: Sequence[GuestJob]) -> None:
        """Run boots, and store what their jobs stored.

        The end of what a guest printed lies beside its output, as `.log`.

        Raises:
            BootFailed: a guest ended early; what others have measured is kept.
        """
        tasks = [make(boot, self._emulator, self._objects, self._call) for boot in boots]
        outputs = {task.id: boot.output for task, boot in zip(tasks, boots, strict=True)}
        self._engine.submit(tasks, self._objects)
        failed = []
        for answer in self._engine.collect():
            output, header = outputs[answer.task.id], answer.header
            _store(output, answer)
            if header.code:
                failed.append(f"{output.name} on {header.host}: {header.text}")
            else:
                self._say(f"{output.name} was measured on {header.host}")
        if failed:
            raise BootFailed("\n".join(failed))


def make(boot: GuestJob, emulator: Qemu, objects: Objects, call: str) -> Task:
    """Make a task of a boot; its files are added to `objects`."""
    guest, job = boot.guest, boot.job
    named = {f"{CONTROL}/{number}": name for number, name in enumerate(job.files)}
    files = {
        **kernel_files(guest.kernel, objects),
        **{f"{IMAGES}/{name}": objects.add(path) for name, path in guest.images.items()},
        **{f"{OWN}/{path.name}": objects.add(path) for path in job.modules},
        **{role: objects.add(job.files[name]) for role, name in named.items()},
    }
    work: dict[str, Any] = {
        "kernel": {"name": guest.kernel.name, "release": guest.kernel.release},
        "qemu": emulator.digest,
        "smp": guest.smp,
        "memory": guest.memory,
        "accelerator": guest.accelerator,
        "append": guest.append,
        "images": list(guest.images),
        "argv": list(job.argv),
        "modules": [path.name for path in job.modules],
        "control": named,
        "timeout": job.timeout,
    }
    # The sides of a comparison may be equal.
    plan = digest(identity(), files, work, call, str(boot.output))
    return Task(kind="guest", identity=identity(), plan=plan, keys=[], files=files, work=work)


def boot_from(task: Task, directory: Path, output: Path, steps: Steps) -> tuple[GuestJob, Qemu]:
    """Turn a task back into a boot, whose input files are in `directory`.

    Raises:
        FscaleError: this machine's QEMU is not the one of the plan.
    """
    work = task.work
    given = {name: work[name] for name in ("smp", "memory", "accelerator", "append")}
    images = {name: directory / IMAGES / name for name in work["images"]}
    guest = Guest(kernel_from(task, directory), images=images, **given)
    job = Job(
        argv=work["argv"],
        output=output,
        modules=[directory / OWN / name for name in work["modules"]],
        files={name: directory / role for role, name in work["control"].items()},
        timeout=work["timeout"],
    )
    return GuestJob(guest, job), same_qemu(task, steps)


def kernel_files(kernel: Kernel, objects: Objects) -> dict[str, str]:
    """The files of a kernel by their roles; they are added to `objects`."""
    files = {KERNEL: objects.add(kernel.image), INITRAMFS: objects.add(kernel.initramfs)}
    return files | ({MODULES: objects.add(kernel.modules)} if kernel.modules else {})


def kernel_from(task: Task, directory: Path) -> Kernel:
    """The kernel of a task, whose files are in `directory`."""
    modules = directory / MODULES
    return Kernel(
        **task.work["kernel"],
        image=directory / KERNEL,
        initramfs=directory / INITRAMFS,
        modules=modules if modules.exists() else None,
    )


def same_qemu(task: Task, steps: Steps) -> Qemu:
    """This machine's QEMU. FscaleError if it is not the one of the plan."""
    emulator, wanted = qemu.find(steps), task.work["qemu"]
    if emulator.digest != wanted:
        raise FscaleError(
            f"this machine's QEMU {emulator.version} has the digest {emulator.digest[:16]}, but "
            f"the plan was made with {wanted[:16]}; install the same package"
        )
    return emulator


def _store(output: Path, answer: Answer) -> None:
    """Keep what a guest stored. The run is written last: it says that the boot is complete."""
    untrusted.remove(output)
    store = Store(output)
    save_answer(store, answer)
    if answer.record is not None:
        store.save(CRASH_FILE, answer.record)
    if answer.run is not None:
        store.save_run(answer.run)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.with_suffix(".log").write_text(answer.header.text + "\n")
