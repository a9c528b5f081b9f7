# SPDX-License-Identifier: GPL-2.0-only
"""What an operation leaves for the next turn: turns after a pause against turns without one.

    .venv/bin/python -m tests.validation.pauses --output results/validation/pauses

An A/A run in slices waits 20 ms before each turn of every other block. What the turn before has
left can be done meanwhile, so turns after a pause are faster by the share of the CPU time that it
takes. Readers leave nothing: they show what the pause itself does to caches.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from fscale.ab import slices
from fscale.ab.point import SIDES
from fscale.ab.slicing import BLOCK, DEFAULT
from fscale.analysis.compare.sides import open_sides
from fscale.model.results import Cell, Slice
from fscale.runner.cell.turns import SlicedLoad, Turn
from tests.validation.windows import arguments, run

PAUSE = 0.02
WORKLOADS = "DRBL,MRPL,DWAL,DWOL,DWOM,DWSL,DWTL,MWCL,MWCM,MWUL,MWUM,MWRL,MWRM"


def pausing() -> Iterator[bool]:
    """Whether there is a pause before each of the turns of a pair."""
    yield from [False] * DEFAULT.warmup * len(SIDES)
    for block in range(DEFAULT.blocks):
        yield from [block % 2 == 1] * BLOCK


def gain(cell: Cell, *, cpu: bool) -> float:
    """The logarithm of the rate after a pause over that without one, medians of the turns."""
    rates: tuple[list[float], list[float]] = ([], [])
    for turn in cell.slices or ():
        length = turn.cpu_seconds if cpu else turn.seconds
        if turn.seconds > 0 and length > 0:
            rates[turn.block % 2].append(turn.ops / length)
    return float(np.log(np.median(rates[1]) / np.median(rates[0])))


def report(output: Path, workload: str) -> None:
    """Print the mean of all cells, and its standard error."""
    sides = open_sides(output, None)
    cells = [c for c in (*sides.base_cells, *sides.new_cells) if c.status == "ok"]
    for metric in ("throughput", "per-cpu-second"):
        logs = np.array([gain(c, cpu=metric != "throughput") for c in cells])
        error = logs.std(ddof=1) / np.sqrt(logs.size)
        print(f"{workload} {metric}: {logs.mean():+.1%} ± {error:.1%} ({logs.size})", flush=True)


def main() -> None:
    """Measure workload by workload, and print."""
    given = arguments(__doc__, WORKLOADS, pairs=10)
    take, play = SlicedLoad.take, slices.alternate_turns
    pauses = pausing()

    def from_the_first_turn(*arguments: Any) -> dict[str, list[Slice]]:
        nonlocal pauses
        pauses = pausing()
        return play(*arguments)

    def after_a_pause(self: SlicedLoad) -> Turn:
        if next(pauses):
            time.sleep(PAUSE)
        return take(self)

    with (
        mock.patch.object(slices, "alternate_turns", from_the_first_turn),
        mock.patch.object(SlicedLoad, "take", after_a_pause),
    ):
        for workload in given.workloads.split(","):
            output, fs = given.output / workload, given.filesystem
            cores = (given.cores,)
            run(fs, fs, [workload], given.pairs, 0.5, output, cores=cores, slices=True)
            report(output, workload)


if __name__ == "__main__":
    main()
