# SPDX-License-Identifier: GPL-2.0-only
"""Measures both sides in simulated guests, which count the cost of an operation.

A count hardly differs from boot to boot, so one round has all boots of both sides, and there are no
interim looks (analysis/compare/counted.py).
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from fscale.ab import loop, record
from fscale.ab.loop import Aim, EveryPointAtOnce, Progress, Quiet
from fscale.ab.point import SIDES, PairedPoint, place
from fscale.ab.record import Looks
from fscale.analysis.compare.settings import Settings
from fscale.farm.engine import Engine
from fscale.model import runs
from fscale.model.errors import Interrupted
from fscale.model.results import Cell
from fscale.model.store import Store
from fscale.sim import campaign
from fscale.sim.sweep import PreparedSweep


def side_directory(output: Path, side: str) -> Path:
    """The directory with the boots of side "A" or "B", which form a run of their own."""
    return output / "boots" / side


class Simulated(EveryPointAtOnce):
    """See fscale.ab.loop.Source. FscaleError if the output contains another comparison."""

    looks = Looks()

    def __init__(
        self,
        output: Path,
        sides: Mapping[str, PreparedSweep],
        texts: Mapping[str, str],
        jobs: int,
        engine: Engine | None = None,
    ) -> None:
        """`sides`: "A" and "B"; `texts`: as the user named them; `jobs`: guests at a time.

        With an `engine`, the guests run on its machines.
        """
        self._engine = engine
        self._sides = sides
        self.texts = texts
        self._jobs = jobs
        self._seeds = sides["A"].sweep.repetitions
        self.store = Store(output)
        self.run = runs.merge_sides(
            output,
            {name: side.run for name, side in sides.items()},
            texts,
            repetitions=self._seeds,
            planned_cells=sum(len(side.cells) for side in sides.values()),
        )
        guests = {name: side.run.machine.guest for name, side in sides.items()}
        self.run.machine.guest = {**(guests["A"] or {}), "B": guests["B"]}
        if old := self.store.load_run():
            runs.resume(old, self.run, output)
        a, b = ({place(key): key for key in sides[name].cells} for name in SIDES)
        self.points = [PairedPoint(a[one], b[one], together=self._seeds) for one in a if one in b]

    @property
    def aim(self) -> Aim:
        """When the run ends."""
        return Aim(Settings(metrics=("count",)), self.run.seed, self._seeds)

    def measure(self, batch: Sequence[PairedPoint], first: int) -> list[tuple[PairedPoint, Cell]]:
        """Boot all unfinished cells; cells that only one side has are stored as well."""
        del first
        points = {place(point.base): point for point in batch}
        measured = []
        for name, side in self._sides.items():
            try:
                cells = campaign.run(side, self._jobs, self._engine)
            except Interrupted:  # its text names the directory of the side
                raise Interrupted("the guests were stopped") from None
            for cell in cells:
                key = cell.key.model_copy(update={"side": name})
                relabelled = cell.model_copy(update={"key": key, "id": key.id})
                self.store.save_cell(relabelled)
                if point := points.get(place(key)):
                    measured.append((point, relabelled))
        return measured

    def save(self, progress: Progress) -> None:
        """All cells are stored already."""


def execute(source: Simulated) -> None:
    """Simulate both sides; cells that an earlier, interrupted call finished are kept.

    Raises:
        FscaleError: no point is good on side A, or guests ended repeatedly.
        Interrupted: the user interrupted it.
    """
    texts, settings = source.texts, source.aim.settings
    record.save(source.store, texts["A"], texts["B"], source.looks, settings)
    with runs.recorded(source.run, source.store):
        loop.measure(source, source.aim, math.inf, Quiet())
