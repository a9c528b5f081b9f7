# SPDX-License-Identifier: GPL-2.0-only
"""Compares two kernels or modules in slices: measures pairs of boots until all is decided.

The unit is a pair of boots with fresh file systems. If counts are judged, each pair is followed by
a second pair of guests that count instructions, and a side's cell holds both results.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace

from fscale.ab import guest_turns, record
from fscale.ab.guests import (
    GuestPlan,
    Guests,
    boot_directory,
    complete,
    relabel,
)
from fscale.ab.plan import MOST_REPETITIONS
from fscale.ab.point import SIDES
from fscale.ab.record import Looks
from fscale.ab.slices import invalidate_partner
from fscale.ab.slicing import LARGER_STOCK, Slicing
from fscale.analysis.compare.sequential import resumed
from fscale.analysis.compare.sliced import FIRST_LOOK_OF_BOOTS
from fscale.analysis.metrics import COUNT, INSTRUCTIONS
from fscale.farm.engine import Engine
from fscale.model.errors import FscaleError
from fscale.model.results import Cell, CellKey
from fscale.model.store import Store
from fscale.vm import untrusted
from fscale.vm.paused_guest import GuestGone, PausedGuest
from fscale.vm.qemu import INSTRUCTIONS_A_SECOND, LINE_DEVICE
from fscale.vm.steps import Steps
from fscale.vm.tasks import Elsewhere, GuestJob

# An emulated guest translates code on first execution, so it warms up for a second after a pilot.
TIMED = Slicing(seconds=0.05, blocks=40, warmup=20, stock=LARGER_STOCK)
# Length of a counting cell; a second is 500 million instructions. It takes no turns, because load
# on the host does not change the count.
COUNTED_SECONDS = 1.0
# The largest idle share with which a count is used: a counting guest's clock advances while it is
# idle. What it executes in a tick is less than this.
MOST_IDLE = 0.01
NOT_COUNTED = "not_counted"
COUNTED_BOOT = "-counted"


class GuestPairs(Guests):
    """See fscale.ab.loop.Source."""

    slicing = TIMED

    def __init__(self, plan: GuestPlan, steps: Steps, engine: Engine | None = None) -> None:
        """With an `engine`, guests that count run on its machines; others cannot."""
        super().__init__(plan, steps)
        self._elsewhere = Elsewhere(engine, plan.emulator, steps.note) if engine else None
        self._looked = record.stored_looks(self.store).pairs
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
        """The kinds of boots in a pair: suffix of the side's name -> whether the guests count."""
        metrics = self.plan.settings.metrics
        if set(metrics) == {"count"}:
            return {"": True}
        return {"": False} | ({COUNTED_BOOT: True} if "count" in metrics else {})

    def boots(self, last: int) -> list[tuple[str, int]]:
        """See Guests."""
        numbers = range(1, last + 1)
        return [(name + ending, n) for n in numbers for ending in self.kinds for name in SIDES]

    def first_round(self) -> list[GuestJob]:
        """See Guests."""
        return [
            self._boot(name, 1, ending, counts)
            for ending, counts in self.kinds.items()
            for name in self.plan.sides
        ]

    def round(self, first: int, wanted: Callable[[CellKey], bool]) -> list[Cell]:
        """Measure a pair of boots of each kind, or return the stored cells."""
        cells = self._stored.get(first) or self._pair(first, wanted)
        uncounted = [str(c.extra[NOT_COUNTED]) for c in cells if NOT_COUNTED in c.extra]
        self.warnings += [f"{text}, so its instructions are not judged" for text in uncounted]
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
            invalidate_partner([whole[name, side] for side in SIDES if (name, side) in whole])
        return list(whole.values())

    def measured(
        self, number: int, ending: str, counts: bool, wanted: Callable[[CellKey], bool]
    ) -> list[Cell]:
        """Boot both sides, let them measure, and return their cells."""
        boots = {name: self._boot(name, number, ending, counts) for name in self.plan.sides}
        turns: list[guest_turns.MeasuredTurns] = []
        if self._elsewhere:
            # They were booted with an earlier pair, or by an interrupted call.
            if not all(complete(boot.output) for boot in boots.values()):
                self._elsewhere.run(self._missing(number, self._elsewhere.slots))
        else:
            turns = self._measure_pair(boots, number, counts, wanted)
        cells = []
        for name, boot in boots.items():
            if not complete(boot.output):
                raise FscaleError(
                    f"`fscale run` failed in the guest of side {name}; see {boot.output}.log"
                )
            slices = {keys.keys[name].id: keys.slices[name] for keys in turns}
            for cell in Store(boot.output).cells():
                if counts and wanted(cell.key):
                    cells.append(relabel(cell, name, number))
                elif cell.id in slices:
                    cells.append(relabel(cell, name, number))
                    cells[-1].slices = slices[cell.id]
                    cells[-1].latency = None  # it is that of the turns for warming up, too
        return cells

    def _boot(self, name: str, number: int, ending: str, counts: bool) -> GuestJob:
        """A boot of a side."""
        side = self.plan.sides[name]
        guest = replace(side.guest, accelerator="tcg-icount") if counts else side.guest
        directory = boot_directory(self.plan.output, name + ending, number)
        job = self.plan.job(side, directory, number, *_options(counts))
        return GuestJob(guest, side.parts.added(job))

    def _missing(self, first: int, slots: int) -> list[GuestJob]:
        """What is not there of the pairs from `first` on that the next look needs.

        The pairs are as many as `slots` guests at once count.
        """
        needed = self.plan.repetitions or next(n for n in self.looks.pairs if n >= first)
        numbers = range(first, min(needed, first + -(-slots // 2) - 1) + 1)
        boots = [self._boot(name, n, "", True) for n in numbers for name in self.plan.sides]
        return [boot for boot in boots if not complete(boot.output)]

    def _measure_pair(
        self,
        boots: Mapping[str, GuestJob],
        number: int,
        counts: bool,
        wanted: Callable[[CellKey], bool],
    ) -> list[guest_turns.MeasuredTurns]:
        """Boot both sides on this machine, and let them take turns, unless they count."""
        with ExitStack() as stack:
            held = {}
            for name, boot in boots.items():
                untrusted.remove(boot.output)
                log = boot.output.with_suffix(".log")
                held[name] = stack.enter_context(
                    PausedGuest(boot.guest, self.plan.emulator, boot.job, log, self.steps)
                )
            turns = [] if counts else self._turns(held, number, wanted)
            for one in held.values():
                one.finish()
        return turns

    def _turns(
        self, held: Mapping[str, PausedGuest], number: int, wanted: Callable[[CellKey], bool]
    ) -> list[guest_turns.MeasuredTurns]:
        plan = self.plan
        try:
            return list(guest_turns.measure(held, TIMED, plan.seed + number, plan.name, wanted))
        except GuestGone:
            for guest in held.values():
                guest.raise_cause()
            raise


def _options(counts: bool) -> list[str]:
    """The options of `fscale run` in a guest of a pair."""
    if counts:
        return ["--duration", str(COUNTED_SECONDS)]
    return [
        *("--duration", f"{TIMED.stocked_seconds:g}"),
        *("--turns", LINE_DEVICE, "--turn-seconds", str(TIMED.seconds)),
    ]


def _idle(cell: Cell) -> float:
    """The share of the cell's windows in which the CPUs under test were idle."""
    if not cell.cpu:
        return 0.0
    times = cell.cpu.model_dump()
    total = sum(times.values())
    return (cell.cpu.idle + cell.cpu.iowait) / total if total else 0.0


def _count(cell: Cell) -> None:
    """Convert a counting guest's seconds to instructions per operation.

    The guest's clock also advances while it is idle, by the time that it waits. Such a cell gets no
    count. With several cores, one may wait for another, so this is checked with one core only.
    """
    if cell.key.cores == 1 and (idle := _idle(cell)) > MOST_IDLE:
        cell.extra[NOT_COUNTED] = f"{cell.key.workload}: the counting guest was idle for {idle:.0%}"
        return
    if cell.status == "ok" and cell.ops:
        each = cell.seconds * INSTRUCTIONS_A_SECOND / cell.ops
        cell.counts = {INSTRUCTIONS.removeprefix(COUNT): each}


def _join(timed: Cell, counted: Cell) -> None:
    """Copy the counts of the counting guest into the cell of the timed guest."""
    timed.counts = counted.counts
    timed.extra |= {k: v for k, v in counted.extra.items() if k == NOT_COUNTED}
    if timed.status == "ok" and counted.status != "ok":
        timed.status = counted.status
        timed.reason = f"in a guest that counts instructions: {counted.reason}"
