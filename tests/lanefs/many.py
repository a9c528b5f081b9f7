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

from tests.lanefs.device import Fault, command, drop_caches

# Names that one program is given: less than its arguments may take.
BATCH = 10_000
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
    directory.mkdir()
    extra = [f"extra-{n}" for n in range(BATCH)]
    _cost(directory, extra)  # what is done once for a file system
    empty = _cost(directory, extra)
    for first in range(0, count, BATCH):
        command(["touch", *(f"{directory}/n{n}" for n in range(first, min(first + BATCH, count)))])
    full = _cost(directory, extra)
    drop_caches()
    _listed(directory, count)
    ratios = (full.create / empty.create, full.remove / empty.remove)
    told = (
        f"{count} names; a create costs {empty.create:.0f} us in the empty directory and "
        f"{full.create:.0f} in the full one, a removal {empty.remove:.0f} and {full.remove:.0f}"
    )
    if max(ratios) > SLOWER:
        raise Fault(f"it gets slow: {told}")
    return told


def _cost(directory: Path, names: Sequence[str]) -> Cost:
    paths = [f"{directory}/{name}" for name in names]
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
