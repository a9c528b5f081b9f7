# SPDX-License-Identifier: GPL-2.0-only
"""A directory with many names: what a create and a removal cost when it has grown.

Costs are CPU time in the kernel, of the same programs with as many names each time, so that what
the programs themselves take is left out, and what else the machine does.
"""

import os
import random
import resource
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.lanefs.device import Fault, command, drop_caches

# Names that one program is given: less than its arguments may take.
BATCH = 10_000
# Of each directory, in turn: what else the machine does, and how full its memory is, is in both.
ROUNDS = 5
# A tree grows by levels, and more of its blocks change; a search through all names costs far more.
SLOWER = 3.0


@dataclass(frozen=True)
class Cost:
    """Microseconds of CPU time in the kernel for each name."""

    create: float
    remove: float


def run(directory: Path, count: int) -> str:
    """Make `count` names; compare the costs of an empty directory and of a full one.

    Fault when a name is not listed exactly once, or the full one is more than SLOWER as slow.
    """
    full, empty = directory / "full", directory / "empty"
    for made in (directory, full, empty):
        made.mkdir()
    for first in range(0, count, BATCH):
        command(["touch", *(f"{full}/n{n}" for n in range(first, min(first + BATCH, count)))])
    batch = min(BATCH, count)
    _cost(empty, batch)  # what is done once for a file system
    rounds = [(_cost(empty, batch), _cost(full, batch)) for _ in range(ROUNDS)]
    drop_caches()
    _listed(full, count)
    less, more = (
        Cost(median(cost.create for cost in costs), median(cost.remove for cost in costs))
        for costs in zip(*rounds, strict=True)
    )
    told = (
        f"{count} names; a create costs {less.create:.0f} us in an empty directory and "
        f"{more.create:.0f} in the full one, a removal {less.remove:.0f} and {more.remove:.0f} "
        f"(medians of {ROUNDS} rounds in turn)"
    )
    if max(more.create / less.create, more.remove / less.remove) > SLOWER:
        raise Fault(f"it gets slow: {told}")
    return told


def _cost(directory: Path, batch: int) -> Cost:
    paths = [f"{directory}/extra-{n}" for n in range(batch)]
    return Cost(_per_name(["touch", *paths]), _per_name(["rm", *paths]))


def _per_name(argv: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_stime
    subprocess.run(argv, check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_stime - before
    return used * 1e6 / (len(argv) - 1)


def _listed(directory: Path, count: int) -> None:
    listed = [int(name[1:]) for name in os.listdir(directory)]
    if len(listed) != count or set(listed) != set(range(count)):
        raise Fault(f"{len(listed)} names are listed, {len(set(listed))} of them different")
    for n in random.Random(1).sample(range(count), min(count, 2000)):
        os.stat(directory / f"n{n}")
