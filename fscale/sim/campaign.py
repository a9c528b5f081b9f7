# SPDX-License-Identifier: GPL-2.0-only
"""Boots the guests of a sweep, several at a time, and stores each cell when it is done."""

import contextlib
import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fscale.farm.engine import Engine
from fscale.model.errors import Exit, FscaleError
from fscale.model.results import Cell, CellKey
from fscale.model.runs import now, recorded
from fscale.model.terminal import print_line
from fscale.runner.progress import Reporter, duration
from fscale.sim import cells, emulator
from fscale.sim.boot import Boot, BootError
from fscale.sim.emulator import BootFiles
from fscale.sim.plan import GuestPoint, order, script
from fscale.sim.sweep import PreparedSweep, boots, cost, rules
from fscale.sim.tasks import boot_elsewhere
from fscale.vm import replace_dir

POLL_SECONDS = 0.5
KEPT = "guest"


class SweepError(FscaleError):
    """Guests ended early repeatedly."""

    code = Exit.FAILED


class SweepReporter(Reporter):
    """Estimates the time left from the cost of cells: those with the most cores come first."""

    def __init__(self, keys: Sequence[CellKey], done: Sequence[CellKey]) -> None:
        super().__init__(len(keys), len(done))
        self._cost = sum(cost(key) for key in keys) - sum(cost(key) for key in done)
        self._spent = 0.0

    def ends(self, cell: Cell) -> None:
        """See Reporter."""
        self._spent += cost(cell.key)
        super().ends(cell)

    def _left(self) -> str:
        if not self._spent:
            return "?"
        each = (time.monotonic() - self._started) / self._spent
        return duration(each * max(0.0, self._cost - self._spent))


@dataclass
class _Running:
    boot: Boot
    points: list[GuestPoint]
    cpu: int
    told_up: bool = False


def show(prepared: PreparedSweep, jobs: int) -> None:
    """Print the boots and points of `run` without simulating them."""
    for number, points in enumerate(boots(prepared, jobs), 1):
        ordered = order(points)
        seed = ordered[0].seed
        print_line(f"# boot {number}: {len(ordered)} points, seed {seed}")
        print_line(shlex.join(_command(prepared, ordered, 0, BootFiles(_EXAMPLE))))
        for line in _script(prepared, ordered).splitlines():
            print_line(line)


_EXAMPLE = Path("RUN")


def run(prepared: PreparedSweep, jobs: int, engine: Engine | None = None) -> list[Cell]:
    """Simulate all unfinished cells, and return all cells of the sweep.

    Without an engine, `jobs` guests at a time run on this machine.

    Raises:
        Interrupted: the user stopped it; finished cells are kept.
        SweepError: guests ended early without finishing a point.
    """
    store, about = prepared.store, prepared.run
    done = prepared.done
    reporter = SweepReporter(prepared.cells, done)
    if prepared.resumed:
        reporter.say(f"resuming: {len(done)} cells are finished")
    for warning in about.warnings:
        reporter.say(f"note: {warning}")
    with recorded(about, store), reporter:
        if engine is None:
            boot_here(prepared, first_cpus(jobs), reporter)
        else:
            boot_elsewhere(prepared, engine, reporter.ends, reporter.say)
    return [cell for key in prepared.cells if (cell := store.load_cell(key))]


def first_cpus(jobs: int) -> list[int]:
    """A CPU for each of the guests that run at a time; with more guests than CPUs they share."""
    cpus = sorted(os.sched_getaffinity(0))[:jobs]
    return [cpus[slot % len(cpus)] for slot in range(jobs)]


def boot_here(prepared: PreparedSweep, cpus: Sequence[int], reporter: SweepReporter) -> None:
    """Simulate the unfinished cells on this machine, a guest at a time on each of the CPUs.

    Raises:
        SweepError: guests ended early without finishing a point.
    """
    waiting = boots(prepared, len(cpus))
    free = list(cpus)
    fruitless = 0
    running: list[_Running] = []
    with contextlib.ExitStack() as all_boots:
        while waiting or running:
            while waiting and free:
                running.append(_start(prepared, waiting.pop(0), free.pop(0), all_boots))
            time.sleep(POLL_SECONDS)
            for one in list(running):
                rest, ended = _follow(one, prepared, reporter)
                if not ended:
                    continue
                running.remove(one)
                free.append(one.cpu)
                one.boot.close()
                if rest:
                    fruitless = fruitless + 1 if len(rest) == len(one.points) else 0
                    waiting.append(rest)
                if fruitless == 2:
                    raise SweepError(
                        "two consecutive guests ended without finishing a point; see the warnings "
                        "above"
                    )


def _follow(
    one: _Running, prepared: PreparedSweep, reporter: SweepReporter
) -> tuple[list[GuestPoint], bool]:
    """Process the output of a boot: the points that are left, and whether it has ended."""
    store = prepared.store
    at = now()
    try:
        results = one.boot.poll()
    except BootError as error:
        replace_dir.replace(store.directory / KEPT, one.boot.logs())
        reporter.say(f"warning: {error}\nThe logs of the guest are in {store.directory / KEPT}")
        rest = one.boot.unfinished
        if error.point is not None and one.boot.up is not None:
            lost = next(point for point in rest if point.number == error.point)
            cell = cells.failed(lost.key, error, at)
            store.save_cell(cell)
            reporter.ends(cell)
            rest = [point for point in rest if point is not lost]
        return rest, True
    if one.boot.up is not None and not one.told_up:
        one.told_up = True
        reporter.say(f"a guest with {prepared.vcpus} CPUs is up after {one.boot.up:.0f} s")
    if results:
        symbols = one.boot.symbols()
    for measured in results:
        freed = prepared.freed.get(measured.point.key.id)
        words = [freed.words] if freed else []
        types = prepared.types.get(measured.point.key.filesystem)
        precision = prepared.sweep.windows.precision
        cell = cells.cell(measured, symbols, types, at, words, precision)
        store.save_cell(cell)
        reporter.ends(cell)
    return [], one.boot.ended


def _start(
    prepared: PreparedSweep, points: list[GuestPoint], cpu: int, all_boots: contextlib.ExitStack
) -> _Running:
    ordered = order(points)
    boot = all_boots.enter_context(
        Boot(ordered, _script(prepared, ordered), rules(prepared, ordered))
    )
    start(prepared, boot, ordered, cpu)
    return _Running(boot, ordered, cpu)


def start(prepared: PreparedSweep, boot: Boot, points: Sequence[GuestPoint], cpu: int) -> None:
    """Start QEMU for a boot, bound to the host's CPU `cpu`."""
    boot.start(_command(prepared, points, cpu, boot.place), prepared.emulator.environment())


def _script(prepared: PreparedSweep, points: Sequence[GuestPoint]) -> str:
    sweep = prepared.sweep
    return script(
        points, prepared.filesystems, prepared.media, sweep.windows, sweep.memory_mib << 20
    )


def _command(
    prepared: PreparedSweep, points: Sequence[GuestPoint], cpu: int, place: BootFiles
) -> list[str]:
    sweep = prepared.sweep
    return emulator.command(
        prepared.emulator,
        prepared.kernel,
        prepared.initramfs,
        prepared.plugin,
        prepared.parameters,
        next((types.slab for types in prepared.types.values()), None),
        prepared.sockets,
        points[0].seed if points else sweep.seed,
        cpu,
        place,
        emulator.kernel_line(sweep.append),
    )
