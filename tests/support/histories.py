# SPDX-License-Identifier: GPL-2.0-only
"""Makes up runs of many days, for tests of what reads a history."""

import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fscale.model.results import CellKey
from tests.support.synthetic import grid, machine, write_run

FIRST = datetime(2026, 3, 1, tzinfo=UTC)
RATE = 100_000.0
STEP = 12  # the first run after the step
LOST = 0.8  # what the step leaves of the rate

Rate = Callable[[CellKey, int], float]


def steady(key: CellKey, number: int) -> float:
    """A rate with 1% of noise from run to run, and a little between repetitions."""
    draw = random.Random(f"{key.workload} {key.filesystem} {key.cores} {number}")
    return key.cores * RATE * draw.gauss(1, 0.01) + key.repetition


def stepping(key: CellKey, number: int) -> float:
    """The same; on ext4 at two cores a fifth is lost from run `STEP` on."""
    lost = key.filesystem == "ext4" and key.cores == 2 and number >= STEP
    return steady(key, number) * (LOST if lost else 1)


def write_history(
    root: Path,
    count: int,
    rate: Rate = steady,
    *,
    workloads: Iterable[str] = ("MWCL", "DRBL"),
    filesystems: Iterable[str] = ("ext4", "xfs"),
    cores: Iterable[int] = (1, 2),
    first: int = 0,
    host: str = "host",
    **changes: Any,
) -> list[Path]:
    """Write a run a day, from day `first` on; kernel 6.13 comes with run `STEP`, 6.12 before."""
    written = []
    for number in range(first, first + count):
        cells = grid(cores, 3, workloads, filesystems, rate=lambda key, n=number: rate(key, n))  # type: ignore[misc]
        there = machine(2).model_copy(
            update={"kernel": f"6.{12 + (number >= STEP)}.0", "hostname": host}
        )
        name = f"{host}-{number:03}"
        started = (FIRST + timedelta(days=number)).strftime("%Y-%m-%dT%H:%M:%SZ")
        fields = {"id": name, "started": started, "machine": there} | changes
        written.append(write_run(root / name, cells, **fields))
    return written
