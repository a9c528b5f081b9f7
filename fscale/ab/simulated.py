# SPDX-License-Identifier: GPL-2.0-only
"""Both sides in simulated guests, of which what an operation takes is counted.

A count hardly differs from boot to boot, so a round is all boots of both sides, and nothing is
looked at before (analysis/compare/counted.py).
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from analysis.compare.settings import Settings
from fscale.ab import loop, record
from fscale.ab.loop import Aim, EveryPointAtOnce, Progress, Quiet
from fscale.ab.point import SIDES, Point, place
from fscale.ab.record import Looks
from fscale.model import runs
from fscale.model.errors import Interrupted
from fscale.model.results import Cell
from fscale.model.store import Store
from sim import campaign
from sim.sweep import Prepared


def side_directory(output: Path, side: str) -> Path:
    """Where the boots of side "A" or "B" are, a run of their own."""
    return output / "boots" / side


class Simulated(EveryPointAtOnce):
    """See fscale.ab.loop.Source. FscaleError where the output holds another comparison."""

    looks = Looks()

    def __init__(
        self, output: Path, sides: Mapping[str, Prepared], texts: Mapping[str, str], jobs: int
    ) -> None:
        """`sides` are "A" and "B", `texts` as they were named, `jobs` guests at a time."""
        self._sides = sides
        self._texts = texts
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
        self.points = [Point(a[one], b[one], together=self._seeds) for one in a if one in b]

    @property
    def aim(self) -> Aim:
        """When it ends."""
        return Aim(Settings(metrics=("count",)), self.run.seed, self._seeds)

    def measure(self, batch: Sequence[Point], first: int) -> list[tuple[Point, Cell]]:
        """Boot all that is not finished; what only one side has is stored, too."""
        del first
        points = {place(point.base): point for point in batch}
        found = []
        for name, side in self._sides.items():
            for cell in campaign.run(side, self._jobs):
                key = cell.key.model_copy(update={"side": name})
                own = cell.model_copy(update={"key": key, "id": key.id})
                self.store.save_cell(own)
                if point := points.get(place(key)):
                    found.append((point, own))
        return found

    def keep(self, progress: Progress) -> None:
        """Write what there is; all cells are stored already."""
        del progress
        self.save("interrupted")

    def save(self, how: runs.State) -> None:
        """Write run.json and ab.json."""
        self.run.state = how
        self.run.finished = runs.now()
        self.store.save_run(self.run)
        record.save(self.store, self._texts["A"], self._texts["B"], self.looks)


def execute(source: Simulated) -> None:
    """Simulate both sides; what an earlier, interrupted call finished is kept.

    Raises:
        FscaleError: no point is good on side A, or guests end again and again.
        Interrupted: by the user.
    """
    source.save("interrupted")
    try:
        loop.measure(source, source.aim, math.inf, Quiet())
    except Interrupted as error:
        raise Interrupted(
            f"the guests were ended; finished cells are in {source.store.directory}, and the same "
            "command goes on from there"
        ) from error
    source.save("complete")
