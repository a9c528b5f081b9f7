# SPDX-License-Identifier: GPL-2.0-only
"""Stands for `fscale` on a worker: cells are made, not measured, and each is logged.

In the directory FARM_TEST: `log` has a line when a cell begins and when it ends; while `hold-N`
exists, repetition N does not end, and while `hold` exists, none does.
"""

import importlib
import os
import sys
import time
from pathlib import Path

from fscale.commands import cell as command
from fscale.farm import worker
from fscale.farm.task import Task
from fscale.model.errors import Exit, FscaleError
from fscale.model.results import CellKey
from fscale.model.store import Store
from tests.support import farm as farm_support


def execute(wire: bytes) -> bytes:
    """What a worker runs instead of `fscale.farm.worker.execute`."""
    return worker.execute(wire, (sys.executable, "-P", __file__))


def huge(wire: bytes) -> bytes:
    """Returns more than a client accepts, if that is a MiB."""
    return bytes(2 << 20)


def pickled(wire: bytes) -> object:
    """Returns what a client would have to unpickle."""
    return farm_support.keys(1)


def raising(wire: bytes) -> bytes:
    """Returns nothing."""
    raise ValueError("on purpose")


def note(word: str, key: CellKey) -> None:
    with Path(os.environ["FARM_TEST"], "log").open("a") as log:
        log.write(f"{word} {key.repetition}\n")


def make(asked: Task, directory: Path, output: Path) -> None:
    store = Store(output)
    place = Path(os.environ["FARM_TEST"])
    for key in asked.keys:
        if store.finished(key):
            continue
        note("begins", key)
        while (place / f"hold-{key.repetition}").exists() or (place / "hold").exists():
            time.sleep(0.02)
        for role in asked.files:
            assert (directory / role).read_bytes()
        store.save_cell(farm_support.cell(key))
        note("ends", key)


def boot(asked: Task, directory: Path, output: Path) -> None:
    """Stands for a guest's boot, which may fail on any machine, or because of this one."""
    code = int(os.environ.get("FARM_CODE") or asked.work["code"])
    if code:
        error = FscaleError("on purpose")
        error.code = Exit(code)
        raise error
    Store(output).save("crash.json", "{}")


if __name__ == "__main__":
    command.KINDS |= {"simulate": make, "guest": boot}
    sys.argv[0] = "fscale"  # so that no other command is imported
    importlib.import_module("fscale.cli").main()
