# SPDX-License-Identifier: GPL-2.0-only
"""Is the lock that a machine waits for the object that the simulator calls hot?

fscale simulate --machine small --cores 2 --output results/simulated
fscale run quick --cores 2 --profile locks --output results/profiled
.venv/bin/python -m tests.validation.hottest results/simulated results/profiled

Prints, as Markdown, for each point at which a lock took at least a hundredth of the time of this
machine's cores, that lock, and at which place among the simulated point's objects it is.
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from fscale.analysis.diagnosis.run import Diagnosed, diagnose, profiled
from fscale.analysis.diagnosis.triage import LOCK, Suspect
from fscale.analysis.reader import load

LEAST = 0.01
# Locks in locks: who waits for the inner one waits for the outer.
INNER = {"wait_lock", "rlock", "lock", "osq", "seqcount"}


def points(directory: Path) -> dict[tuple[str, str, int], Diagnosed]:
    """The diagnoses of a run by workload, file system and cores."""
    results = load(directory)
    found = diagnose(results, list(profiled(results)))
    return {(p.key.workload, p.key.filesystem, p.key.cores): p for p in found.points}


def member(name: str) -> str:
    """What a lock is called where it lies: `i_rwsem` of `inode->i_rwsem of the shared file`."""
    words = re.findall(r"\w+", re.split(r"[ ,(]", name)[0])
    return next((word for word in reversed(words) if word not in INNER), name)


def place(lock: str, suspects: Sequence[Suspect]) -> int | None:
    """The first of the objects, from 1, that has a member of that name."""
    for rank, suspect in enumerate(suspects, 1):
        if lock in re.findall(r"\w+", suspect.name.object):
            return rank
    return None


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("simulated", type=Path)
    parser.add_argument("profiled", type=Path)
    given = parser.parse_args()
    simulated, real = points(given.simulated), points(given.profiled)
    print("| workload | file system | measured first | of the time | simulated first | place |")
    print("|---|---|---|--:|---|--:|")
    for key in sorted(real.keys() & simulated.keys()):
        locks = [s for s in real[key].triage.suspects if s.sort == LOCK and s.share >= LEAST]
        if not locks:
            continue
        objects = simulated[key].triage.suspects
        rank = place(member(locks[0].name.object), objects)
        first = objects[0].name.object if objects else "none"
        told = (
            f"`{locks[0].name.object}` | {locks[0].share:.1%} | `{first}` | {rank or 'not there'}"
        )
        print(f"| {key[0]} | {key[1]} | {told} |")


if __name__ == "__main__":
    main()
