# SPDX-License-Identifier: GPL-2.0-only
"""What all tests share. Spread over workers, the guests that take minutes begin at once."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fscale.model import paths

# What tests start finds the package as bin/fscale would have it found.
os.environ["PYTHONPATH"] = str(paths.ROOT)
LONG = "tests/lanefs/test_sample.py"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Each worker's part of the tests but the last one's begins with its share of the long ones.

    It takes them in their order, and others' once it has none. A long test that begins last would
    leave the other CPUs idle; and where each worker waits for what guests are made of, as in the
    first minutes on a new machine, CPUs are idle as well.
    """
    if not hasattr(config, "workerinput"):
        return
    workers = config.workerinput["workercount"]
    sharing = max(1, workers - 1)
    long = [item for item in items if item.nodeid.startswith(LONG)]
    short = [item for item in items if item not in long]
    ordered: list[pytest.Item] = []
    for worker in range(workers):
        part = (len(items) - len(ordered)) // (workers - worker)
        own = long[worker::sharing] if worker < sharing else []
        rest = part - len(own)
        ordered += own + short[:rest]
        short = short[rest:]
    items[:] = ordered


@pytest.fixture
def fast() -> Iterator[Path]:
    """A directory in memory: operations are quick, so that small stocks run out."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        yield Path(directory)
