# SPDX-License-Identifier: GPL-2.0-only
"""A sweep as tasks for other machines, and back: what a task brings, and what is kept of it."""

from collections.abc import Callable
from dataclasses import asdict, astuple, replace
from pathlib import Path
from typing import Any

from fscale.farm.engine import Engine
from fscale.farm.objects import Objects
from fscale.farm.results import save_answer
from fscale.farm.task import Task, identity
from fscale.model.config import FileSystem, Medium
from fscale.model.errors import Exit, FscaleError
from fscale.model.results import Cell, Run
from fscale.model.store import Store
from fscale.sim import kerneltypes
from fscale.sim.plan import Sockets, WindowPlan
from fscale.sim.sweep import Freed, PreparedSweep, Sweep, boots, cost
from fscale.vm.cache import digest
from fscale.vm.steps import Steps
from fscale.vm.tasks import OWN, kernel_files, kernel_from, same_qemu

# With one boot per slot, the last boot of the slowest machine would be waited for. But a boot costs
# about as much as a cell with all of its CPUs, so a further boot has several such cells.
BOOTS_PER_SLOT = 4
LARGE_CELLS_PER_BOOT = 4
PLUGIN = "plugin.so"


class TasksError(FscaleError):
    """Tasks ended without their results."""

    code = Exit.FAILED


def boot_elsewhere(
    prepared: PreparedSweep,
    engine: Engine,
    ends: Callable[[Cell], None],
    say: Callable[[str], None],
) -> None:
    """Simulate the unfinished cells of a sweep on the machines of an engine.

    Raises:
        TasksError: some tasks ended without all of their cells.
    """
    objects = Objects()
    tasks = make(prepared, engine.slots, objects)
    engine.submit(tasks, objects)
    failed = 0
    for answer in engine.collect():
        save_answer(prepared.store, answer)
        for cell in answer.cells:
            ends(cell)
        if len(answer.cells) < len(answer.task.keys):
            failed += 1
            say(f"warning: {answer.header.host}: {answer.header.text}")
    if failed:
        raise TasksError(
            f"{failed} of {len(tasks)} tasks ended without some of their cells; see the warnings "
            "above. The same command tries these cells again"
        )


def make(prepared: PreparedSweep, slots: int, objects: Objects) -> list[Task]:
    """Make a task of each boot; its files are added to `objects`."""
    kernel, sweep = prepared.kernel, prepared.sweep
    files = {
        **kernel_files(replace(kernel, initramfs=prepared.initramfs), objects),
        PLUGIN: objects.add(prepared.plugin),
        **{f"{OWN}/{path.name}": objects.add(path) for path in prepared.modules},
    }
    work: dict[str, Any] = {
        "kernel": {"name": kernel.name, "release": kernel.release},
        "qemu": prepared.emulator.digest,
        "filesystems": {n: fs.model_dump(mode="json") for n, fs in prepared.filesystems.items()},
        "media": {n: medium.model_dump(mode="json") for n, medium in prepared.media.items()},
        "parameters": prepared.parameters,
        "sockets": astuple(prepared.sockets),
        "mounts": sorted(prepared.mounts),
        "windows": astuple(sweep.windows),
        "memory_mib": sweep.memory_mib,
        "append": sweep.append,
        "seed": sweep.seed,
    }
    run = prepared.run
    plan = digest(identity(), files, work, run.id, run.started)
    work["run"] = run.model_dump(mode="json", by_alias=True)
    made = []
    for points in boots(prepared, _parts(prepared, slots)):
        keys = [point.key for point in points]
        freed = {key.id: asdict(f) for key in keys if (f := prepared.freed.get(key.id))}
        made.append(
            Task(
                kind="simulate",
                identity=identity(),
                plan=plan,
                keys=keys,
                files=files,
                work={**work, "freed": freed},
            )
        )
    return made


def _parts(prepared: PreparedSweep, slots: int) -> int:
    """How many boots the unfinished cells are worth: at least one per slot."""
    largest = 2.0 + prepared.vcpus
    worth = sum(map(cost, prepared.todo)) / (LARGE_CELLS_PER_BOOT * largest)
    return max(slots, min(BOOTS_PER_SLOT * slots, int(worth)))


def prepared_from(task: Task, directory: Path, output: Path, steps: Steps) -> PreparedSweep:
    """Turn a task back into a sweep of its cells, whose input files are in `directory`.

    Raises:
        FscaleError: this machine's QEMU is not the one of the plan.
    """
    work = task.work
    emulator = same_qemu(task, steps)
    kernel = kernel_from(task, directory)
    filesystems = {n: FileSystem.model_validate(fs) for n, fs in work["filesystems"].items()}
    own = tuple(directory / role for role in task.files if role.startswith(f"{OWN}/"))
    sweep = Sweep(
        filesystems=list(filesystems),
        workloads=None,
        cores=[],
        output=output,
        windows=WindowPlan(*work["windows"]),
        memory_mib=work["memory_mib"],
        append=work["append"],
        seed=work["seed"],
    )
    return PreparedSweep(
        sweep,
        Run.model_validate(work["run"]),
        task.keys,
        Store(output),
        resumed=False,
        kernel=kernel,
        emulator=emulator,
        plugin=directory / PLUGIN,
        initramfs=kernel.initramfs,
        filesystems=filesystems,
        media={n: Medium.model_validate(medium) for n, medium in work["media"].items()},
        parameters=work["parameters"],
        sockets=Sockets(*work["sockets"]),
        freed={i: Freed(f["words"], tuple(f["rules"])) for i, f in work["freed"].items()},
        types=kerneltypes.load(kernel, filesystems, work["mounts"], own),
        mounts=frozenset(work["mounts"]),
        modules=own,
    )
