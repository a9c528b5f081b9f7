# SPDX-License-Identifier: GPL-2.0-only
"""What takes long to make is made once for all workers."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def build_once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], Path]) -> Path:
    """What `build` makes in a directory: made by the first worker that needs it, for all of them.

    A page takes many seconds to write, a simulation to run, and the tests of a module are spread
    over the workers.
    """
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    place, made = root / name, root / f"{name}.made"
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            place.mkdir()
            made.write_text(str(build(place)))
    return Path(made.read_text())
