# SPDX-License-Identifier: GPL-2.0-only
"""What runs on a worker of Dask: it admits itself, receives input files, and runs tasks.

Everything that it returns is bytes or plain JSON: the client refuses pickled objects.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from distributed import get_worker

from fscale.farm.answer import Header, pack, read_files
from fscale.farm.leash import run_leashed
from fscale.farm.objects import KEPT_DAYS, Cache
from fscale.farm.task import Task, identity
from fscale.model import paths
from fscale.model.errors import Exit
from fscale.model.files import printable, remove_old

TEXT_BYTES = 4096
PROGRAM = (sys.executable, "-P", "-m", "fscale")


async def admit(wanted: str, resource: str, dask_worker: Any) -> dict[str, Any]:
    """Offer this worker's threads for tasks if its fscale is the wanted one; say which it has."""
    offered = await asyncio.to_thread(identity)
    if offered == wanted:
        await dask_worker.set_resources(**{resource: dask_worker.state.nthreads})
    return {"identity": offered, "host": os.uname().nodename, "cache": str(Cache().directory)}


async def dismiss(resource: str, dask_worker: Any) -> None:
    """Offer no threads any more."""
    await dask_worker.set_resources(**{resource: 0})


async def missing(digests: Sequence[str]) -> list[str]:
    """Return which input files this machine lacks; old ones are removed."""
    Cache().renew(digests)
    return Cache().missing(digests)


async def receive(digest: str, sender: str, number: int, chunk: bytes) -> str:
    """Store a piece of an input file; return why it cannot be stored, or nothing."""
    return await asyncio.to_thread(_attempt, lambda: Cache().append(digest, sender, number, chunk))


async def finish(digest: str, sender: str) -> str:
    """Complete an input file; return why it cannot be stored, or nothing."""
    return await asyncio.to_thread(_attempt, lambda: Cache().finish(digest, sender))


def _attempt(store: Callable[[], object]) -> str:
    try:
        store()
    except Exception as error:  # of any kind, because the client refuses pickled ones
        return f"{type(error).__name__}: {error}"
    return ""


def execute(wire: bytes, program: Sequence[str] = PROGRAM) -> bytes:
    """Run a task in a process of its own, and return its answer (`fscale.farm.answer`).

    Cells go to a directory of the plan on this machine, which outlives the worker: a task that is
    repeated here goes on with what is finished. The process ends if the worker does, or if the
    client cancels the task.
    """
    asked = Task.model_validate_json(wire)
    header = Header(task=asked.id, host=os.uname().nodename, code=Exit.USAGE)
    spool = paths.cache_dir("tasks") / asked.plan
    try:
        spool.mkdir(parents=True, exist_ok=True)
        os.utime(spool)
        remove_old(spool.parent, KEPT_DAYS)
        with tempfile.TemporaryDirectory(prefix="fscale-task-") as directory:
            path = Path(directory, "task.json")
            path.write_bytes(wire)
            argv = [*program, "cell", str(path), "--output", str(spool)]
            with Path(directory, "messages").open("w+b") as messages:
                header.code = _run(argv, messages)
                header.text = _end(messages)
        return pack(header, read_files(asked, spool))
    except OSError as error:
        header.text = f"{spool}: {error.strerror}"
        return pack(header, {})


def _run(argv: Sequence[str], messages: IO[bytes]) -> int:
    """Run a command until it ends, or until its task is cancelled or the worker closes."""
    worker = get_worker()
    key = worker.get_current_task()

    def cancelled() -> bool:
        state = worker.state.tasks.get(key)
        closing = worker.status.name.startswith("clos")
        return state is None or state.state == "cancelled" or closing

    # By SIGKILL, because a worker may itself be killed.
    return run_leashed(argv, messages, cancelled)


def _end(messages: IO[bytes]) -> str:
    size = messages.seek(0, os.SEEK_END)
    messages.seek(max(0, size - TEXT_BYTES))
    return printable(messages.read().decode(errors="replace")).strip()
