# SPDX-License-Identifier: GPL-2.0-only
"""One pair in slices: both sides mounted at once, A B B A or B A A B in turns of milliseconds.

The machine drifts between two cells of seconds, and not between two slices of 10 ms. Only one side
runs at a time, so they do not contend. What a turn of a workload that writes puts off (a commit,
write-back) would fall into the other's turns; so it is settled, and timed, before the next one.
"""

import contextlib
import random
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from statistics import median
from typing import Protocol

from fscale.ab.point import SIDES
from fscale.ab.slicing import Slicing
from fscale.model.errors import FscaleError
from fscale.model.load import Load, Settings, Target
from fscale.model.results import Cell, CellKey, Slice
from fscale.runner.cell.turns import Ended, TooLong, Turn, Turns, cut, in_turns
from fscale.runner.machine.kernelsettings import of_machine
from fscale.runner.session import Session, Setup, fill, new_cell

SLOTS = ("-1", "-2")  # of file systems that are mounted at the same time
DRAIN = 0.02  # seconds: an RCU grace period, and the callbacks that have waited for it
LEAST_OPS = 20
"""of each worker in a turn: all begin at once and the last ones end alone, which must not matter"""


class Taker(Protocol):
    """A side that takes turns."""

    def take(self) -> Turn:
        """Work for one turn. Raises Ended and TooLong."""
        ...


def uncut(setup: Setup, workload: str) -> str | None:
    """Why a workload of a setup cannot take turns; None where it can."""
    for name, fs in setup.filesystems.items():
        if fs and fs.partitions > 1:
            return f"{name} is on several partitions"
        if fs and (files := of_machine(fs)):
            return f"{next(iter(files))} is set for both sides at once"
    if not setup.loads[workload].sliced:
        return f"{workload} does not take turns"
    return None


def settling(slicing: Slicing, setups: Collection[Setup], key: CellKey) -> Slicing:
    """With what keeps the work that a cell's workload leaves out of the other side's turns."""
    described = [setup.loads[key.workload].descriptor for setup in setups]
    steady = bool(key.options.get("keep"))  # what is added is taken away again
    return replace(
        slicing,
        settle=any(one.puts_off for one in described),
        drain=DRAIN if steady or any(one.defers_frees for one in described) else 0.0,
    )


def arranged(seed: int, key: CellKey) -> dict[str, str]:
    """Side -> slot, in the order in which they are set up.

    Which side is made first, and on which medium, decides where its blocks and pages lie. So each
    of the four arrangements comes once in four repetitions, in random order.
    """
    number = key.repetition - 1
    order = random.Random(f"{seed} {key.point} arranged {number // 4}").sample(range(4), 4)
    swapped, crossed = divmod(order[number % 4], 2)
    sides = SIDES[::-1] if swapped else SIDES
    return dict(zip(sides, SLOTS[::-1] if crossed else SLOTS, strict=True))


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
        stack.callback(excuse, cells.values())  # a mount may turn out to have changed
        targets = stack.enter_context(_placed(session, setups, cells, seed))
        turns: dict[str, Turns] = {}
        for side, target in targets.items():
            setup = setups[side]
            asked = _asked(setup, target, slicing)
            try:
                turns[side] = stack.enter_context(in_turns(*asked, setup.limits, session.do))
            except (Ended, TooLong) as error:
                raise FscaleError(f"side {side} was not ready: {error}") from None
        coin = random.Random(f"{seed} {keys['A'].point} {keys['A'].repetition}")
        try:
            _alternate(turns, cells, slicing, coin)
        except TooLong as error:
            raise FscaleError(f"{error}; it was killed") from None
    return list(cells.values())


def preview_pair(
    session: Session,
    setups: Mapping[str, Setup],
    keys: Mapping[str, CellKey],
    slicing: Slicing,
    seed: int,
) -> None:
    """Tell the commands of a pair; the executor of the session is a dry one."""
    cells = {side: new_cell(keys[side]) for side in SIDES}
    with _placed(session, setups, cells, seed) as targets:
        for side, target in targets.items():
            load, longest, settings = _asked(setups[side], target, slicing)
            session.do.run(load.command(longest, settings, (3, 4)))


@contextlib.contextmanager
def _placed(
    session: Session, setups: Mapping[str, Setup], cells: Mapping[str, Cell], seed: int
) -> Iterator[dict[str, Target]]:
    """Both sides' file systems while the `with` block runs, in the order of their making."""
    with contextlib.ExitStack() as stack:
        for side in SIDES:
            session.setup = setups[side]
            if reason := session.lacking(cells[side].key):
                raise FscaleError(reason)
        stack.enter_context(session.shared(cells["A"].key.medium, SLOTS))
        targets = {}
        for side, slot in arranged(seed, cells["A"].key).items():
            session.setup = setups[side]
            targets[side], _ = stack.enter_context(session.placed(cells[side], slot))
        yield targets


def _asked(setup: Setup, target: Target, slicing: Slicing) -> tuple[Load, Target, Settings]:
    """What a side is asked to do: its key's duration is the most that it may work in all turns.

    Its stock must do for so long.
    """
    longest = target.key.model_copy(update={"duration": slicing.side_seconds})
    settings = cut(setup.settings, slicing.seconds, settle=slicing.settle)
    return setup.loads[target.key.workload], replace(target, key=longest), settings


def _alternate(
    turns: Mapping[str, Turns],
    cells: Mapping[str, Cell],
    slicing: Slicing,
    coin: random.Random,
) -> None:
    """Let the sides take their turns, and enter what they did.

    Raises TooLong, and FscaleError where operations are too long for turns.
    """
    slices = play(turns, slicing, coin)
    for side in SIDES:
        fill(cells[side], turns[side].end())
        cells[side].slices = slices[side]
    excuse(cells.values())
    for side, own in slices.items():
        each = [turn.ops / _workers(cells[side]) for turn in own if turn.seconds]
        if cells[side].status == "ok" and each and median(each) < LEAST_OPS:
            raise FscaleError(
                f"only {median(each):.3g} operations per worker in a turn of "
                f"{1000 * slicing.seconds:g} ms, and {LEAST_OPS} are needed"
            )


def _workers(cell: Cell) -> int:
    return len(cell.bench.workers) if cell.bench else cell.key.cores


def play(
    turns: Mapping[str, Taker], slicing: Slicing, coin: random.Random
) -> dict[str, list[Slice]]:
    """Let the sides take their turns; the end of one ends both. Only whole blocks are kept.

    Raises TooLong.
    """
    slices: dict[str, list[Slice]] = {side: [] for side in SIDES}

    def take(side: str) -> Turn:
        turn = turns[side].take()
        time.sleep(slicing.drain)
        return turn

    with contextlib.suppress(Ended):
        for _ in range(slicing.warmup):
            for side in SIDES:
                take(side)  # caches
        for block in range(slicing.blocks):
            outer, inner = coin.sample(SIDES, 2)
            taken = [(side, take(side)) for side in (outer, inner, inner, outer)]
            if any(turn.exhausted for _, turn in taken):
                break
            for side, turn in taken:
                slices[side].append(
                    Slice(
                        block=block,
                        ops=turn.ops,
                        seconds=turn.seconds,
                        cpu_seconds=turn.cpu_seconds,
                        settle_seconds=turn.settle_seconds,
                    )
                )
    return slices


def excuse(cells: Collection[Cell]) -> None:
    """Make the good cell of a pair invalid whose other one failed."""
    if any(cell.status != "ok" for cell in cells):
        for cell in cells:
            if cell.status == "ok":
                cell.status, cell.reason = "invalid", "the other side of its pair failed"
