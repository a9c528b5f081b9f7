# SPDX-License-Identifier: GPL-2.0-only
"""Makes a cell from the output of a guest and of the plugin."""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pydantic import ValidationError

from fscale.model import fault
from fscale.model.bench import BenchOutput
from fscale.model.catalogue import explain
from fscale.model.errors import Exit
from fscale.model.fault import Fault
from fscale.model.results import Cell, CellKey, Status
from fscale.model.simulation import (
    ANOTHER,
    KINDS,
    FunctionWait,
    FunctionWork,
    HotLine,
    LineUser,
    SimulatedWindow,
    Simulation,
)
from fscale.sim.boot import BootError, PointResult
from fscale.sim.kerneltypes import Types
from fscale.sim.output import PluginLine, PluginWindow, Transfers
from fscale.sim.precision import half_width, throughput
from fscale.sim.rules import CODE, DATA, LINE_BYTES, rule
from fscale.sim.symbols import KERNEL, Symbols

# An instruction stands for an object where at least this part of what it takes is of it.
OWN_PART = 0.8
# Of lines: so many, and all that so many operations move; beyond these nobody reads.
LINES = 12
MOVED = 0.2
USERS = 16
# The functions beyond these have less than a hundredth of a file system operation.
FUNCTIONS = 250
PROGRAM = "(the program)"
# If a line has several static objects, those count that cause at least this part of its moves.
OBJECT_PART = 0.05


def cell(
    measured: PointResult,
    symbols: Symbols,
    types: Types | None,
    started: str,
    free: Sequence[str],
    precision: float | None,
) -> Cell:
    """The cell of a point; a failed one has the reason.

    `started` is UTC, ISO 8601; `precision` that of the requested windows (sim/plan.py).
    """
    key = measured.point.key
    bench, reason = _bench(measured)
    status: Status = bench.status if bench else "error"
    if bench and bench.error:
        reason = f"{bench.reason}: {bench.error.call} {bench.error.path or ''}: {bench.error.name}"
    if bench and measured.status == Exit.SKIPPED:
        status = "skipped"
    simulated = simulation(measured, symbols, types, free)
    simulated.precision = precision
    windows = simulated.windows
    ops, seconds = sum(w.ops for w in windows), sum(w.seconds for w in windows)
    if status == "ok" and not (ops and seconds):
        status, reason = "error", "the simulator reported no timed window"
    return Cell(
        id=key.id,
        key=key,
        status=status,
        reason=reason,
        fault=_fault(bench) if status == "error" else None,
        started=started,
        wall_seconds=measured.host_seconds,
        ops=ops,
        seconds=seconds,
        # Windows that end by precision must not leave out any of them.
        ops_per_second=rate(windows) if precision is None else throughput(windows),
        cpu_control="hotplug",
        cpus=list(range(key.cores)),
        bench=bench,
        counts=counts(simulated) if ops else None,
        simulation=simulated if windows else None,
    )


def _fault(bench: BenchOutput | None) -> Fault:
    return fault.of_bench(bench.error) if bench and bench.error else "filesystem"


def rate(windows: Sequence[SimulatedWindow]) -> float:
    """Operations per simulated second in the median window, because a tick may disturb one."""
    rates = [window.ops / window.seconds for window in windows if window.seconds]
    return statistics.median(rates) if rates else 0.0


def failed(key: CellKey, error: BootError, started: str) -> Cell:
    """The cell of a point that hung or whose guest broke."""
    return Cell(
        id=key.id,
        key=key,
        status="error",
        reason=str(error),
        fault=error.fault,
        started=started,
        wall_seconds=0,
    )


def counts(simulated: Simulation) -> dict[str, float]:
    """The counts per operation, which do not depend on the noise of the host."""
    ops = simulated.total("ops")
    return {
        "instructions": simulated.total("instructions") / ops,
        **{
            f"{kind} transfers": simulated.transfers(kind) / ops for kind in KINDS if kind != "free"
        },
    }


def simulation(
    measured: PointResult, symbols: Symbols, types: Types | None, free: Sequence[str]
) -> Simulation:
    """The windows of a point, and its hottest lines with names."""
    windows = [_window(window) for window in measured.windows]
    return Simulation(
        seed=measured.point.seed,
        free=list(free),
        windows=windows,
        half_width=half_width(windows),
        lines=lines(measured.windows, symbols, types),
        code=code(measured.code, symbols),
        waits=waits(measured.windows, symbols),
        host_seconds=round(measured.host_seconds, 2),
        cpu_seconds=measured.cpu_seconds,
    )


def _bench(measured: PointResult) -> tuple[BenchOutput | None, str | None]:
    if measured.failed is not None:
        return None, measured.failed
    try:
        bench = BenchOutput.model_validate_json(measured.bench or "")
    except ValidationError as error:
        why = measured.stderr or explain(error)
        return None, f"the microbenchmark failed in the guest (exit code {measured.status}): {why}"
    return bench, bench.reason


def _window(window: PluginWindow) -> SimulatedWindow:
    return SimulatedWindow(
        ops=window.ops,
        seconds=window.ns / 1e9,
        instructions=window.instructions,
        cycles=window.cycles,
        stall=window.stall,
        queue=window.queue,
        spin=window.spin,
        idle=window.idle,
        words=window.words,
        transfers=_transfers(window.transfers),
        host_seconds=window.host_seconds,
        cpu_seconds=window.cpu_seconds,
    )


def _transfers(moved: Transfers) -> dict[str, int]:
    return {kind: getattr(moved, kind) for kind in KINDS}


def code(blocks: Iterable[tuple[str, int]], symbols: Symbols) -> list[FunctionWork]:
    """The functions with the most instructions."""
    done: Counter[str] = Counter()
    for pc, instructions in blocks:
        done[_function(int(pc, 16), symbols)] += instructions
    return [FunctionWork(function=name, instructions=n) for name, n in done.most_common(FUNCTIONS)]


def waits(windows: Iterable[PluginWindow], symbols: Symbols) -> list[FunctionWait]:
    """The functions that wait longest for lines, among the instructions that the plugin lists."""
    waited: Counter[str] = Counter()
    for pc in (pc for window in windows for pc in window.pcs):
        waited[_function(int(pc.pc, 16), symbols)] += pc.stall
    return [FunctionWait(function=name, stall=n) for name, n in waited.most_common(FUNCTIONS)]


def _function(address: int, symbols: Symbols) -> str:
    return symbols.function(address) if address >= KERNEL.start else PROGRAM


def lines(windows: Sequence[PluginWindow], symbols: Symbols, types: Types | None) -> list[HotLine]:
    """The lines of all windows, summed by their address, those with the longest waits first.

    Only lines of the LINES kinds of object with the longest waits are kept; the lock of each inode
    is one kind.
    """
    places: dict[str, list[PluginLine]] = defaultdict(list)
    transfers: Counter[int] = Counter()
    for window in windows:
        transfers.update({int(pc.pc, 16): pc.transfers for pc in window.pcs})
        for line in window.lines:
            places[line.pa].append(line)
    hot_lines = [_line(same, symbols, types, transfers) for same in places.values()]
    hot_lines.sort(key=lambda line: -line.wait)
    waited: Counter[str] = Counter()
    for hot in hot_lines:
        waited[hot.thing] += hot.wait
    most = {thing for thing, _ in waited.most_common(LINES)}
    enough = MOVED * sum(window.ops for window in windows)
    return [hot for hot in hot_lines if hot.thing in most or hot.moves() >= enough]


def _line(
    same: list[PluginLine], symbols: Symbols, types: Types | None, transfers: Mapping[int, int]
) -> HotLine:
    users: dict[str, LineUser] = {}
    for pc in (pc for line in same for pc in line.pcs):
        name = symbols.function(int(pc.pc, 16))
        user = users.setdefault(name, LineUser(function=name, reads=0, writes=0, stall=0))
        user.reads += pc.reads
        user.writes += pc.writes
        user.stall += pc.stall
        user.words += pc.words
    return HotLine(
        object=_object(same, symbols) + _members(same, types),
        physical=same[-1].pa,
        virtual=same[-1].va,
        transfers={kind: sum(getattr(line, kind) for line in same) for kind in KINDS},
        stall=sum(line.stall for line in same),
        queue=sum(line.queue for line in same),
        spin=sum(line.spin for line in same),
        words=_words(same, symbols, types),
        users=sorted(users.values(), key=lambda user: (-user.stall, -user.words))[:USERS],
        rules=_rules(same, symbols, transfers),
    )


def _object(same: list[PluginLine], symbols: Symbols) -> str:
    """The objects in a line; of several static objects, all by which it is taken, most first."""
    start = int(same[-1].va, 16)
    moves: Counter[str] = Counter()
    for pc in (pc for line in same for pc in line.pcs):
        name = static_object(int(pc.va, 16) if pc.va else start, symbols)
        if name is None:
            return symbols.object(start)
        moves[name] += pc.reads + pc.writes
    return _most_taken(moves) or symbols.object(start)


def static_object(address: int, symbols: Symbols) -> str | None:
    """The per-CPU variable or static object at an address; None for other memory."""
    if name := symbols.per_cpu(address):
        return name
    symbol = symbols.find(address) if address >= KERNEL.start else None
    if symbol is None:
        return None
    # Objects that begin in the line have no offset; a longer one has the line's offset.
    return str(replace(symbol, offset=max(0, symbol.offset - address % LINE_BYTES)))


def _most_taken(moves: Counter[str]) -> str:
    """The objects in a line by which it is taken, most first."""
    least = OBJECT_PART * moves.total()
    return ", ".join(name for name, times in moves.most_common() if times >= least)


def _members(same: list[PluginLine], types: Types | None) -> str:
    """For slab memory, a colon and the members in the line, the most taken first.

    The line may reach into another object of the slab.
    """
    last = same[-1]
    if types is None or last.cache is None:
        return ""
    start = int(last.object, 16)
    moves: Counter[str] = Counter()
    outside = 0
    for pc in (pc for line in same for pc in line.pcs):
        inside = int(pc.va or last.va, 16) - start
        if 0 <= inside < last.size:
            moves[types.member(last.cache, inside)] += pc.reads + pc.writes
        else:
            outside += pc.reads + pc.writes
    if not moves:
        return f": {last.cache}"
    other = f", {ANOTHER}{last.cache}" if outside > OBJECT_PART * moves.total() else ""
    return f": {_most_taken(moves)}{other}"


def _words(same: list[PluginLine], symbols: Symbols, types: Types | None) -> dict[str, int]:
    """The words taken, by the static object or member that they are of, as far as it is known."""
    last = same[-1]
    taken: Counter[str] = Counter()
    for pc in (pc for line in same for pc in line.pcs if pc.words):
        address = int(pc.va or last.va, 16)
        inside = address - int(last.object, 16)
        name = static_object(address, symbols)
        if types and last.cache and 0 <= inside < last.size:
            name = types.member(last.cache, inside)
        taken[name or symbols.object(int(last.va, 16))] += pc.words
    return dict(taken.most_common())


def _rules(same: list[PluginLine], symbols: Symbols, transfers: Mapping[int, int]) -> list[str]:
    """The rules that identify the object of a line in another boot.

    A static object keeps its address. Other objects are identified by the instructions that take
    them, if these take hardly any other line: code of locks and lists takes all locks and lists.
    """
    last = same[-1]
    virtual = int(last.va, 16)
    users = [pc for line in same for pc in line.pcs]
    moves: Counter[int] = Counter()
    if virtual >= KERNEL.start:
        for pc in users:
            moves[int(pc.va or last.va, 16)] += pc.reads + pc.writes
        most = max(moves, key=moves.__getitem__, default=virtual)
        told = [rule(symbols, DATA, range(most, most + 1))]
    else:
        for pc in users:
            moves[int(pc.pc, 16)] += pc.reads + pc.writes
        own = [pc for pc, times in moves.items() if times >= OWN_PART * transfers.get(pc, math.inf)]
        told = [rule(symbols, CODE, range(pc, pc + 1)) for pc in own]
    return sorted(words for words in told if words)
