# SPDX-License-Identifier: GPL-2.0-only
"""Two kernels, or two modules, in slices: pairs of boots, until it is decided.

The unit is a pair of boots with fresh file systems. Where counted work is judged, each pair has a
second one of guests that count instructions, and a side's cell carries both.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace

from analysis.compare.sequential import resumed
from analysis.compare.settings import COUNT, INSTRUCTIONS
from analysis.compare.sliced import FIRST_LOOK_OF_BOOTS
from fscale.ab import guest_turns, record
from fscale.ab.guests import (
    GuestPlan,
    Guests,
    boot_directory,
    complete,
    relabelled,
)
from fscale.ab.plan import MOST_REPETITIONS
from fscale.ab.point import SIDES
from fscale.ab.record import Looks
from fscale.ab.slices import excuse
from fscale.ab.slicing import Slicing
from fscale.model.errors import FscaleError
from fscale.model.results import Cell, CellKey
from fscale.model.store import Store
from vm import untrusted
from vm.paused_guest import Gone, Held
from vm.qemu import INSTRUCTIONS_A_SECOND, LINE_DEVICE
from vm.steps import Steps

# An emulated guest translates code when it first runs, so it warms up for a second, after a pilot.
TIMED = Slicing(seconds=0.05, blocks=40, warmup=20)
# A counting cell, in seconds of 500 million instructions. It takes no turns: nothing that the host
# does is in the count.
COUNTED_SECONDS = 1.0
# The pilot, which says how much a workload will consume, runs cold: three times as slowly.
STOCK = 4
# A counting guest's clock goes on while it is idle. What it executes in a tick is less than this.
MOST_IDLE = 0.01
NOT_COUNTED = "not_counted"
COUNTED_BOOT = "-counted"


class GuestPairs(Guests):
    """See fscale.ab.loop.Source."""

    slicing = TIMED

    def __init__(self, plan: GuestPlan, steps: Steps) -> None:
        super().__init__(plan, steps)
        self._looked = record.looked(self.store)
        self._stored: dict[int, list[Cell]] = defaultdict(list)
        if self.old is None:
            return
        for cell in self.store.cells():
            if cell.key.repetition <= self.old.suite["repetitions"]:
                self._stored[cell.key.repetition].append(cell)

    @property
    def looks(self) -> Looks:
        """See Source."""
        if self.plan.repetitions:
            return Looks()
        return Looks(pairs=resumed(self._looked or (FIRST_LOOK_OF_BOOTS,), MOST_REPETITIONS))

    @property
    def kinds(self) -> dict[str, bool]:
        """The boots of a pair: what their sides' names end in, and whether they count."""
        metrics = self.plan.settings.metrics
        if set(metrics) == {"count"}:
            return {"": True}
        return {"": False} | ({COUNTED_BOOT: True} if "count" in metrics else {})

    def boots(self, last: int) -> list[tuple[str, int]]:
        """See Guests."""
        numbers = range(1, last + 1)
        return [(name + ending, n) for n in numbers for ending in self.kinds for name in SIDES]

    def round(self, first: int, wanted: Callable[[CellKey], bool]) -> list[Cell]:
        """A pair of boots of each kind."""
        cells = self._stored.get(first) or self._pair(first, wanted)
        uncounted = [str(c.extra[NOT_COUNTED]) for c in cells if NOT_COUNTED in c.extra]
        self.warnings += [f"{text}: no instructions" for text in uncounted]
        return cells

    def _pair(self, number: int, wanted: Callable[[CellKey], bool]) -> list[Cell]:
        self.steps.note(f"pair of boots {number}: {' against '.join(self.plan.texts.values())}")
        whole: dict[tuple[str, str], Cell] = {}
        for ending, counts in self.kinds.items():
            for cell in self.measured(number, ending, counts, wanted):
                if counts:
                    _count(cell)
                place = self.plan.name(cell.key), cell.key.side or ""
                _join(whole.setdefault(place, cell), cell)
        for name in {name for name, _ in whole}:
            excuse([whole[name, side] for side in SIDES if (name, side) in whole])
        return list(whole.values())

    def measured(
        self, number: int, ending: str, counts: bool, wanted: Callable[[CellKey], bool]
    ) -> list[Cell]:
        """Boot both sides and let them measure: their cells."""
        plan, directories, found = self.plan, {}, []
        with ExitStack() as stack:
            held = {}
            for name, side in plan.sides.items():
                directory = directories[name] = boot_directory(plan.output, name + ending, number)
                untrusted.remove(directory)
                guest = replace(side.guest, accelerator="tcg-icount") if counts else side.guest
                job = side.parts.added(plan.job(side, directory, number, *_options(counts)))
                log = directory.with_suffix(".log")
                held[name] = stack.enter_context(Held(guest, plan.emulator, job, log, self.steps))
            turns = [] if counts else self._turns(held, number, wanted)
            for one in held.values():
                one.ended()
        for name, directory in directories.items():
            if not complete(directory):
                raise FscaleError(f"`fscale run` failed in a guest; see {directory}.log")
            slices = {keys.keys[name].id: keys.slices[name] for keys in turns}
            for cell in Store(directory).cells():
                if counts and wanted(cell.key):
                    found.append(relabelled(cell, name, number))
                elif cell.id in slices:
                    found.append(relabelled(cell, name, number))
                    found[-1].slices = slices[cell.id]
        return found

    def _turns(
        self, held: Mapping[str, Held], number: int, wanted: Callable[[CellKey], bool]
    ) -> list[guest_turns.Measured]:
        plan = self.plan
        try:
            return list(guest_turns.measure(held, TIMED, plan.seed + number, plan.name, wanted))
        except Gone:
            for guest in held.values():
                guest.explain()
            raise


def _options(counts: bool) -> list[str]:
    """Of `fscale run` in a guest of a pair."""
    if counts:
        return ["--duration", str(COUNTED_SECONDS)]
    return [
        *("--duration", f"{STOCK * TIMED.side_seconds:g}"),
        *("--turns", LINE_DEVICE, "--turn-seconds", str(TIMED.seconds)),
    ]


def _idle(cell: Cell) -> float:
    """The share of its windows that the CPUs under test were idle."""
    if not cell.cpu:
        return 0.0
    times = cell.cpu.model_dump()
    total = sum(times.values())
    return (cell.cpu.idle + cell.cpu.iowait) / total if total else 0.0


def _count(cell: Cell) -> None:
    """Take a counting guest's seconds for what they are.

    Its clock also goes on while it is idle, and by as much as it has to wait: then there is no
    count. With several cores one may wait for another, so that only a single one can be checked.
    """
    if cell.key.cores == 1 and (idle := _idle(cell)) > MOST_IDLE:
        cell.extra[NOT_COUNTED] = f"{cell.key.workload}: the counting guest was idle for {idle:.0%}"
        return
    if cell.status == "ok" and cell.ops:
        each = cell.seconds * INSTRUCTIONS_A_SECOND / cell.ops
        cell.counts = {INSTRUCTIONS.removeprefix(COUNT): each}


def _join(timed: Cell, counted: Cell) -> None:
    """Enter what the counting guests did into the cell of those that were timed."""
    timed.counts = counted.counts
    timed.extra |= {k: v for k, v in counted.extra.items() if k == NOT_COUNTED}
    if timed.status == "ok" and counted.status != "ok":
        timed.status = counted.status
        timed.reason = f"in a guest that counts instructions: {counted.reason}"
