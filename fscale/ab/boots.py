# SPDX-License-Identifier: GPL-2.0-only
"""Compares two kernels in boots interleaved as A B B A; each repetition is a boot."""

from abc import abstractmethod
from collections.abc import Callable

from fscale.ab import record
from fscale.ab.guests import Booted, BootPlan, boot_directory, refuse_other_builds, relabel
from fscale.ab.local import turns
from fscale.ab.plan import MOST_REPETITIONS
from fscale.ab.point import SIDES
from fscale.ab.record import Looks
from fscale.analysis.compare.repetitions import tests_of
from fscale.analysis.compare.sequential import WHOLE_STEP, resumed, schedule
from fscale.model.results import Cell, CellKey
from fscale.model.store import Store
from fscale.vm.steps import Steps


class Boots(Booted):
    """See fscale.ab.loop.Source."""

    def __init__(self, plan: BootPlan, steps: Steps) -> None:
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
        """See Booted."""
        return [(side, number) for number in range(1, last + 1) for side in SIDES]

    def round(self, first: int, wanted: Callable[[CellKey], bool]) -> list[Cell]:
        """Boot each side twice, one boot after the other; skip boots that are complete."""
        made: list[tuple[str, int]] = self.boots(first - 1)
        for name, repetition in self._turns(first):
            self.boot(name, repetition)
            made.append((name, repetition))
            refuse_other_builds(self.plan.output, made)
        self.round_ended()
        return [
            relabel(cell, name, repetition)
            for name, repetition in self._turns(first)
            for cell in Store(boot_directory(self.plan.output, name, repetition)).cells()
            if wanted(cell.key)
        ]

    def round_ended(self) -> None:
        """Do nothing. A source may store boots of which only the others show what they lack."""

    def _turns(self, first: int) -> list[tuple[str, int]]:
        return turns(f"{self.plan.seed} boots {first}", first)

    @abstractmethod
    def boot(self, name: str, repetition: int) -> None:
        """Boot a side and measure all cells into its directory, unless that is complete."""
