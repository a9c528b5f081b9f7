# SPDX-License-Identifier: GPL-2.0-only
"""Made-up cells of the simulator: so many instructions and shared lines per operation."""

import random
from typing import Any

from fscale.model.results import Cell
from fscale.model.simulation import HotLine, LineUser, SimulatedWindow, Simulation
from tests.support import synthetic

OPS = 512


def hot_line(thing: str, stall: int, *users: LineUser, dirty: int = 0, **fields: Any) -> HotLine:
    where = {"physical": "0x0", "virtual": "0x0", "transfers": {"dirty": dirty}}
    return HotLine(object=thing, stall=stall, queue=0, users=[*users], **where, **fields)


def window(ops: int, seconds: float, **fields: Any) -> SimulatedWindow:
    """A window whose cores did nothing but what is said."""
    nothing = dict.fromkeys(("stall", "queue", "spin", "idle"), 0)
    return SimulatedWindow(ops=ops, seconds=seconds, **nothing | fields)


def line(thing: str, moves: float, function: str, words: float = 0) -> HotLine:
    writes, taken = round(moves * OPS * 5), round(words * OPS * 5)
    user = LineUser(function=function, reads=0, writes=writes, stall=1, words=taken)
    return hot_line(thing, 1, user, dirty=writes, words={thing: taken} if taken else {})


def cell(
    seed: int,
    instructions: float,
    moves: float,
    lines: tuple[HotLine, ...] = (),
    status: str = "ok",
    fs: str = "ext4",
    words: float | None = None,
) -> Cell:
    key = synthetic.key(seed, workload="MWCL", filesystem=fs, medium="brd", cores=4)
    windows = [
        window(
            *(OPS, 1e-3),
            # A tick in one of the windows moves no median.
            instructions=round(instructions * OPS) + (50000 if number == 2 else 0),
            cycles=10**6,
            words=None if words is None else round(words * OPS),
            transfers={"dirty": round(moves * OPS) + (900 if number == 2 else 0), "memory": 99},
        )
        for number in range(5)
    ]
    return Cell.model_validate(
        {
            "id": key.id,
            "key": key,
            "status": status,
            "reason": None if status == "ok" else "mount failed: no",
            "started": "2026-01-01T00:00:00+00:00",
            "wall_seconds": 1,
            "ops": 5 * OPS,
            "seconds": 5e-3,
            "ops_per_second": 1000 * OPS,
            "simulation": Simulation(seed=seed, windows=windows, lines=[*lines], host_seconds=1),
        }
    )


def boots(
    instructions: float,
    moves: float,
    *lines: HotLine,
    noise: float = 0.002,
    seed: int = 1,
    count: int = 3,
    words: float | None = None,
) -> list[Cell]:
    rng = random.Random(seed)
    return [
        cell(
            n,
            instructions * (1 + noise * rng.gauss(0, 1)),
            moves * (1 + noise * rng.gauss(0, 1)),
            lines,
            words=words,
        )
        for n in range(1, count + 1)
    ]
