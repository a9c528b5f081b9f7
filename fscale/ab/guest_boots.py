# SPDX-License-Identifier: GPL-2.0-only
"""Compares two kernels or modules in boots interleaved as A B B A; each repetition is a boot."""

import sys
from collections.abc import Callable

from fscale.ab import record
from fscale.ab.guests import (
    GuestPlan,
    Guests,
    boot_directory,
    complete,
    refuse_other_builds,
    relabel,
)
from fscale.ab.local import turns
from fscale.ab.plan import MOST_REPETITIONS
from fscale.ab.point import SIDES
from fscale.ab.record import Looks
from fscale.analysis.compare.repetitions import tests_of
from fscale.analysis.compare.sequential import WHOLE_STEP, resumed, schedule
from fscale.model.errors import FscaleError
from fscale.model.results import Cell, CellKey
from fscale.model.store import Store
from fscale.vm import guest as guests
from fscale.vm.guest import GuestError
from fscale.vm.steps import Steps
from fscale.vm.tasks import GuestJob


class GuestBoots(Guests):
    """See fscale.ab.loop.Source."""

    def __init__(self, plan: GuestPlan, steps: Steps) -> None:
        """Keep the looks of a run to resume."""
        super().__init__(plan, steps)
        self._looked = record.stored_looks(self.store).whole

    @property
    def looks(self) -> Looks:
        """When to look: the same schedule as for whole repetitions on this machine."""
        settings = self.plan.settings
        if self.plan.repetitions or not self.points:
            return Looks()
        tests = tests_of([point.base for point in self.points], settings)
        planned = schedule(settings.fdr, tests, MOST_REPETITIONS)
        return Looks(resumed(self._looked or planned, MOST_REPETITIONS, WHOLE_STEP))

    def boots(self, last: int) -> list[tuple[str, int]]:
        """See Guests."""
        return [(side, number) for number in range(1, last + 1) for side in SIDES]

    def round(self, first: int, wanted: Callable[[CellKey], bool]) -> list[Cell]:
        """Boot each side twice, one boot after the other; skip boots that are complete."""
        cells = []
        made: list[tuple[str, int]] = self.boots(first - 1)
        for name, repetition in self._turns(first):
            self._boot(name, repetition)
            made.append((name, repetition))
            refuse_other_builds(self.plan.output, made)
            store = Store(boot_directory(self.plan.output, name, repetition))
            cells += [relabel(cell, name, repetition) for cell in store.cells() if wanted(cell.key)]
        return cells

    def first_round(self) -> list[GuestJob]:
        """See Guests."""
        return [self._planned(name, repetition) for name, repetition in self._turns(1)]

    def _turns(self, first: int) -> list[tuple[str, int]]:
        return turns(f"{self.plan.seed} boots {first}", first)

    def _planned(self, name: str, repetition: int) -> GuestJob:
        side = self.plan.sides[name]
        directory = boot_directory(self.plan.output, name, repetition)
        return GuestJob(side.guest, side.parts.added(self.plan.job(side, directory, repetition)))

    def _boot(self, name: str, repetition: int) -> None:
        boot, side = self._planned(name, repetition), self.plan.sides[name]
        if complete(boot.output):
            return
        self.steps.note(f"boot {repetition} of side {name}: {side.variant.text}")
        # Standard output is reserved for the comparison, which may be JSON.
        outcome = guests.run(
            boot.guest, self.plan.emulator, boot.job, self.steps, output=sys.stderr.buffer
        )
        if outcome.end != "finished":
            raise GuestError(outcome)
        if not complete(boot.output):
            raise FscaleError(
                f"`fscale run` failed in the guest of {side.variant.text}; see its output above"
            )
