# SPDX-License-Identifier: GPL-2.0-only
"""One pair in slices: both sides mounted at once, A B B A or B A A B in turns of milliseconds.

The machine drifts between two cells of seconds, and not between two slices of 20 ms. Only one side
runs at a time, so they do not contend; what one side puts off (a commit, writeback) may fall into
the other's turn: docs/method.md says for which workloads that matters.
"""

import contextlib
import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from fscale.model.errors import FscaleError
from fscale.model.load import Target
from fscale.model.results import Cell, CellKey, Slice
from fscale.runner.cell.turns import Ended, TooLong, Turns, in_turns
from fscale.runner.session import Session, Setup, fill, new_cell

SIDES = ("A", "B")
BLOCK = 4  # turns


@dataclass(frozen=True)
class Slicing:
    """How a pair is cut. Seconds of a turn, and how many blocks of four turns."""

    seconds: float = 0.02
    blocks: int = 40

    @property
    def side_seconds(self) -> float:
        """What one side works at most in a pair, with a turn to warm up."""
        return self.seconds * (self.blocks * BLOCK / 2 + 1)


def uncut(setup: Setup, workloads: Collection[str]) -> str | None:
    """Why these workloads of a setup cannot take turns; None where they can."""
    for name, fs in setup.filesystems.items():
        if fs and fs.partitions > 1:
            return f"{name} is on several partitions"
    for name, medium in setup.media.items():
        if medium.kind not in ("loop", "dir"):
            return f"there is one {medium.kind} ({name}), and each side needs a medium of its own"
    for name in workloads:
        if not setup.loads[name].sliced:
            return f"{name} does not take turns"
    return None


def measure_pair(
    session: Session,
    setups: Mapping[str, Setup],
    keys: Mapping[str, CellKey],
    slicing: Slicing,
    seed: int,
) -> list[Cell]:
    """Measure one repetition of a point on both sides, and store its two cells.

    What goes wrong is in the cells; where one side fails, the other's cell is invalid. Raises
    Interrupted and Stopped.
    """
    cells = {side: new_cell(keys[side]) for side in SIDES}
    with session.recorded(list(cells.values())), contextlib.ExitStack() as stack:
        targets: dict[str, Target] = {}
        turns: dict[str, Turns] = {}
        coin = random.Random(f"{seed} {keys['A'].point} {keys['A'].repetition}")
        # Which side is set up first, and so where its blocks and pages lie, must not decide.
        sides = coin.sample(SIDES, 2)
        for side in sides:
            session.setup = setups[side]
            if reason := session.lacking(keys[side]):
                raise FscaleError(reason)
            place = session.placed(cells[side], f"-{side.lower()}")
            targets[side], _ = stack.enter_context(place)
        for side in sides:
            setup = setups[side]
            longest = keys[side].model_copy(update={"duration": slicing.side_seconds})
            target = replace(targets[side], key=longest)
            settings = replace(
                setup.settings,
                slice=slicing.seconds,
                warmup=0,
                min_window=slicing.seconds / 2,
            )
            load = setup.loads[keys[side].workload]
            try:
                turns[side] = stack.enter_context(
                    in_turns(load, target, settings, setup.limits, session.do)
                )
            except (Ended, TooLong) as error:
                raise FscaleError(f"side {side} was not ready: {error}") from None
        try:
            _alternate(turns, cells, slicing, coin)
        except TooLong as error:
            raise FscaleError(f"{error}; it was killed") from None
    return list(cells.values())


def _alternate(
    turns: Mapping[str, Turns],
    cells: Mapping[str, Cell],
    slicing: Slicing,
    coin: random.Random,
) -> None:
    """Let the sides take their turns, and enter what they did; the end of one ends both.

    Raises TooLong.
    """
    slices: dict[str, list[Slice]] = {side: [] for side in SIDES}
    with contextlib.suppress(Ended):
        for side in SIDES:
            turns[side].take()  # caches
        for block in range(slicing.blocks):
            outer, inner = coin.sample(SIDES, 2)
            taken = [(side, turns[side].take()) for side in (outer, inner, inner, outer)]
            if any(turn.exhausted for _, turn in taken):
                break
            for side, turn in taken:
                slices[side].append(
                    Slice(
                        block=block,
                        ops=turn.ops,
                        seconds=turn.seconds,
                        cpu_seconds=turn.cpu_seconds,
                    )
                )
    for side in SIDES:
        fill(cells[side], turns[side].end())
        cells[side].slices = slices[side]
    if any(cell.status != "ok" for cell in cells.values()):
        for cell in cells.values():
            if cell.status == "ok":
                cell.status, cell.reason = "invalid", "the other side of its pair failed"
