# SPDX-License-Identifier: GPL-2.0-only
"""One pair in slices: both sides mounted at once, A B B A or B A A B in turns of milliseconds.

The machine drifts between two cells of seconds, but not between two slices of 10 ms. Only one side
runs at a time, so the sides do not contend. The work that a turn of a writing workload defers (a
commit, write-back) would fall into the other side's turns; so it is completed, and timed, before
the next turn.
"""

import contextlib
import random
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any, Protocol

from fscale.ab.point import SIDES
from fscale.ab.slicing import BLOCK, Slicing
from fscale.analysis.compare.sliced import MIN_BLOCKS
from fscale.analysis.metrics import LATENCIES, NEVER_SLICED
from fscale.model.errors import FscaleError
from fscale.model.latency import why_none
from fscale.model.load import Load, LoadSettings, Outcome, Target
from fscale.model.results import Cell, CellKey, Slice
from fscale.runner.cell.span import Watch
from fscale.runner.cell.turns import (
    LoadEnded,
    LoadTimeout,
    SlicedLoad,
    Turn,
    in_turns,
    turn_settings,
)
from fscale.runner.machine.kernelsettings import of_machine
from fscale.runner.session import Session, copy_outcome, new_cell
from fscale.runner.setup import Setup

SLOTS = ("-1", "-2")  # suffixes of two file systems that are mounted at the same time
DRAIN = 0.02  # seconds: an RCU grace period, and the callbacks that have waited for it
MIN_OPS = 20
"""per worker in a turn: all workers begin at once but end alone, and that must not matter"""

PACED = (
    "operations that arrive at a rate are as many in all turns of both sides, and what has to wait "
    "in a turn is not begun in it"
)
"""why a workload with the option `rate` cannot take turns"""


class TurnTaker(Protocol):
    """A side that takes turns."""

    def take(self) -> Turn:
        """Run the workload for one turn. Raises LoadEnded and LoadTimeout."""
        ...


def why_not_sliced(setup: Setup, key: CellKey, metrics: Collection[str] = ()) -> str | None:
    """Why the workload of a cell cannot take turns, or not be judged by `metrics`; None if it can.

    Turns show no tail that deferred work makes, because it is written out after each of them, and
    all workers begin a turn together, so that one which starves does not fall behind.
    """
    workload = key.workload
    for name, fs in setup.filesystems.items():
        if fs and fs.partitions > 1:
            return f"{name} has {fs.partitions} partitions, and slices support only one"
        if fs and (files := of_machine(fs)):
            return f"{next(iter(files))} is a setting of the whole machine, so of both sides"
    if key.open_loop or not setup.loads[workload].sliced:
        return PACED if key.open_loop else f"{workload} cannot take turns"
    if whole := [metric for metric in metrics if metric in NEVER_SLICED]:
        return f"{whole[0]} is one of whole repetitions: turns are too short for it"
    tail = next((metric for metric in metrics if metric in LATENCIES), None)
    if tail and _defers(setup, key):
        return (
            f"{workload} defers work, which is completed between turns, so that its {tail} is one "
            "of whole repetitions"
        )
    return None


def why_oversubscribed(workers_per_cpu: int) -> str | None:
    """Why so many workers per CPU cannot take turns; None if they can."""
    if workers_per_cpu == 1:
        return None
    return (
        f"with workers_per_cpu = {workers_per_cpu} a turn of milliseconds is too short for the "
        "scheduler to let each worker run"
    )


def why_one_image(setups: Collection[Setup]) -> str | None:
    """Why sides of one aged image cannot take turns; None if they can."""
    first, *others = [fs for setup in setups for fs in setup.filesystems.values()]
    if first is None or first.aged is None or any(other != first for other in others):
        return None
    return "both sides are copies of one aged image, whose UUID can be mounted only once at a time"


def _defers(setup: Setup, key: CellKey) -> bool:
    described = setup.loads[key.workload].descriptor
    return described.puts_off or described.defers_frees or _is_steady(key)


def _is_steady(key: CellKey) -> bool:
    """Whether the workload removes what it adds."""
    return bool(key.options.get("keep"))


def add_settling(slicing: Slicing, setups: Collection[Setup], key: CellKey) -> Slicing:
    """Add the steps that keep deferred work of a cell's workload out of the other side's turns."""
    described = [setup.loads[key.workload].descriptor for setup in setups]
    return replace(
        slicing,
        consumes=any(one.consumes for one in described) and not _is_steady(key),
        settle=any(one.puts_off for one in described),
        drain=DRAIN if _is_steady(key) or any(one.defers_frees for one in described) else 0.0,
    )


def set_up_order(seed: int, key: CellKey) -> dict[str, str]:
    """Side -> slot, in the order in which they are set up.

    The order in which the sides are made, and their media, determine where their blocks and pages
    lie. So each of the four arrangements comes once in four repetitions, in random order.
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
    metrics: Collection[str] = (),
) -> list[Cell]:
    """Measure one repetition of a point on both sides, and store its two cells.

    A cell that lacks a latency among the `metrics` fails, because the turns are too short for it.
    Failures are recorded in the cells; if one side fails, the other's cell is invalid. Raises
    Interrupted and Stopped.
    """
    cells = {side: new_cell(keys[side]) for side in SIDES}
    with session.recorded(list(cells.values())), contextlib.ExitStack() as stack:
        # Even a change of a mount, which is noticed at the end, invalidates both cells.
        stack.callback(invalidate_partner, cells.values())
        targets = stack.enter_context(_placed(session, setups, cells, seed))
        turns: dict[str, SlicedLoad] = {}
        for side, target in targets.items():
            setup = setups[side]
            asked = _asked(setup, target, slicing)
            try:
                turns[side] = stack.enter_context(in_turns(*asked, setup.limits, session.do))
            except (LoadEnded, LoadTimeout) as error:
                raise FscaleError(
                    f"side {side} did not become ready: {error}", fault=error.fault
                ) from None
        coin = random.Random(f"{seed} {keys['A'].point} {keys['A'].repetition}")
        try:
            _alternate(turns, cells, slicing, coin, Watch(*targets.values()))
            _refuse_without(cells.values(), metrics)
        except LoadTimeout as error:
            raise FscaleError(f"{error}; the workload was killed", fault=error.fault) from None
    return list(cells.values())


def preview_pair(
    session: Session,
    setups: Mapping[str, Setup],
    keys: Mapping[str, CellKey],
    slicing: Slicing,
    seed: int,
) -> None:
    """Print the commands of a pair; the session has a dry executor."""
    cells = {side: new_cell(keys[side]) for side in SIDES}
    with _placed(session, setups, cells, seed) as targets:
        for side, target in targets.items():
            load, longest, settings = _asked(setups[side], target, slicing)
            session.do.run(load.command(longest, settings, (3, 4)))


@contextlib.contextmanager
def _placed(
    session: Session, setups: Mapping[str, Setup], cells: Mapping[str, Cell], seed: int
) -> Iterator[dict[str, Target]]:
    """Both sides' file systems during the `with` block, in the order in which they were made."""
    with contextlib.ExitStack() as stack:
        for side in SIDES:
            session.setup = setups[side]
            if reason := session.lacking(cells[side].key):
                raise FscaleError(reason)
        stack.enter_context(session.shared(cells["A"].key.medium, SLOTS))
        targets = {}
        for side, slot in set_up_order(seed, cells["A"].key).items():
            session.setup = setups[side]
            targets[side], _ = stack.enter_context(session.placed(cells[side], slot))
        yield targets


def _asked(setup: Setup, target: Target, slicing: Slicing) -> tuple[Load, Target, LoadSettings]:
    """The load, target and settings of a side; the duration is its longest work in all turns.

    The stock that is prepared must last for that duration.
    """
    longest = target.key.model_copy(update={"duration": slicing.stocked_seconds})
    settings = turn_settings(setup.settings, slicing.seconds, settle=slicing.settle)
    return setup.loads[target.key.workload], replace(target, key=longest), settings


def _alternate(
    turns: Mapping[str, SlicedLoad],
    cells: Mapping[str, Cell],
    slicing: Slicing,
    coin: random.Random,
    watch: Watch,
) -> None:
    """Let the sides take their turns, and enter the results.

    Others disturb both sides, because a turn is too short to tell whose.

    Raises LoadTimeout, and FscaleError if operations are too long for turns, or the turns too few.
    """
    slices = alternate_turns(turns, slicing, coin)
    others_cpus, disturbed = watch.end().judge()
    for side in SIDES:
        outcome = turns[side].end()
        copy_outcome(cells[side], outcome)
        cells[side].extra["others_cpus"], cells[side].disturbed = others_cpus, disturbed
        cells[side].slices = slices[side]
        cells[side].latency = _latency(outcome, slices[side], slicing)
    invalidate_partner(cells.values())
    for side, taken in slices.items():
        each = [turn.ops / _workers(cells[side]) for turn in taken if turn.seconds]
        if cells[side].status == "ok" and each and median(each) < MIN_OPS:
            raise FscaleError(
                f"a worker did only {median(each):.3g} operations in a turn of "
                f"{1000 * slicing.seconds:g} ms; slices need at least {MIN_OPS}",
                fault="machine" if disturbed else "user",
            )
        if cells[side].status == "ok" and (why := _why_no_pair(taken, slicing)):
            raise FscaleError(why, fault="machine")


def _why_no_pair(slices: Sequence[Slice], slicing: Slicing) -> str | None:
    """Why the turns of a side are too few for the ratio of a pair; None if they are enough.

    Without a ratio the pair would be judged by its whole work, as if it were no pair.
    """
    timed = Counter(turn.block for turn in slices if turn.seconds)
    whole = sum(turns == BLOCK // 2 for turns in timed.values())
    if whole >= MIN_BLOCKS:
        return None
    return (
        f"only {whole} of {slicing.blocks} blocks have all their turns, and a pair needs "
        f"{MIN_BLOCKS}: other processes kept the CPUs, or the stock was used up; stop them, or use "
        "a larger device or max_stock"
    )


def _latency(outcome: Outcome, slices: Sequence[Slice], slicing: Slicing) -> dict[str, Any] | None:
    """The latencies of the kept turns, block by block; None if they were not recorded by turn."""
    if outcome.turn_latencies is None:
        return None
    # Here, because its library takes its time to load.
    from fscale.model.histogram import summarise_blocks  # noqa: PLC0415

    blocks: dict[int, Counter[int]] = defaultdict(Counter)
    for number, turn in enumerate(slices, slicing.warmup + 1):
        blocks[turn.block].update(outcome.turn_latencies.get(number, {}))
    return summarise_blocks(list(blocks.values()))


def _refuse_without(cells: Collection[Cell], metrics: Collection[str]) -> None:
    for cell in cells:
        for metric in LATENCIES if cell.status == "ok" else ():
            if metric in metrics and (reason := why_none(cell.latency, metric)):
                raise FscaleError(f"in slices, {reason}", fault="user")


def _workers(cell: Cell) -> int:
    return len(cell.bench.workers) if cell.bench else cell.key.cores


def alternate_turns(
    turns: Mapping[str, TurnTaker], slicing: Slicing, coin: random.Random
) -> dict[str, list[Slice]]:
    """Let the sides take turns until one ends; keep only whole blocks.

    Raises LoadTimeout.
    """
    slices: dict[str, list[Slice]] = {side: [] for side in SIDES}

    def take(side: str) -> Turn:
        turn = turns[side].take()
        time.sleep(slicing.drain)
        return turn

    with contextlib.suppress(LoadEnded):
        for _ in range(slicing.warmup):
            for side in SIDES:
                take(side)  # warms the caches
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


def invalidate_partner(cells: Collection[Cell]) -> None:
    """If one cell of a pair failed, invalidate the other."""
    if any(cell.status != "ok" for cell in cells):
        for cell in cells:
            if cell.status == "ok":
                cell.status, cell.reason = "invalid", "the other side of its pair failed"
