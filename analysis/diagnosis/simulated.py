# SPDX-License-Identifier: GPL-2.0-only
"""The triage of a simulated point: cache lines, and the locks in them that cores spin for."""

from collections import Counter
from collections.abc import Sequence

from fscale.analysis.diagnosis.naming import By, Name
from fscale.analysis.diagnosis.triage import LOCK, SIMULATOR, WAIT, Suspect, Triage, top
from fscale.analysis.hot import medians
from fscale.model.results import Cell
from fscale.model.simulation import UNNAMED, HotLine, Simulation

LINE = "cache line"
# If spinning is at least this part of the waiting for a line, the line is taken for a lock.
LOCK_PART = 0.1


def triage(cells: Sequence[Cell]) -> Triage:
    """Diagnose one simulated point from its repetitions; its lines are those of the first.

    Addresses differ between boots, so lines of several boots are not summed.
    """
    simulated = [cell.simulation for cell in cells if cell.simulation is not None]
    first = simulated[0]
    return Triage(
        key=cells[0].key,
        suspects=_suspects(first),
        profiles={SIMULATOR: len(simulated)},
        unreadable={},
        counts=medians([cell.counts for cell in cells if cell.counts]),
    )


def _suspects(simulated: Simulation) -> list[Suspect]:
    cycles = max(1, simulated.total("cycles"))
    suspects = [_suspect(lines, cycles) for lines in simulated.things()]
    idle = simulated.shares()["idle"]
    if idle:
        suspects.append(
            Suspect(Name("halted (sleeping or idle)", None, By.NOTHING), WAIT, WAIT, idle)
        )
    return sorted(suspects, key=lambda suspect: (-suspect.share, suspect.name.object))


def _suspect(lines: list[HotLine], cycles: int) -> Suspect:
    """The suspect for lines of the same kind, named after the line with the longest waits."""
    name = lines[0].members or lines[0].object
    spin, wait = sum(line.spin for line in lines), sum(line.wait for line in lines)
    is_lock = spin >= LOCK_PART * wait and spin > 0
    callers: Counter[tuple[str, ...]] = Counter()
    for user in (user for line in lines for user in line.users):
        callers[user.function,] += user.stall
    return Suspect(
        Name(name, None, By.NOTHING if name.startswith(UNNAMED) else By.ADDRESS),
        LOCK if is_lock else LINE,
        "spun for" if is_lock else LINE,
        blocked=sum(line.stall for line in lines) / cycles,
        spinning=spin / cycles,
        count=sum(line.moves() for line in lines),
        addresses=len(lines),
        callers=top(callers, callers.total()),
    )
