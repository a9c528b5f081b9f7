# SPDX-License-Identifier: GPL-2.0-only
"""A point, which is measured on both sides: a workload on a file system at a core count."""

from dataclasses import dataclass

from fscale.ab.slicing import Slicing
from fscale.model.results import CellKey

SIDES = ("A", "B")
# Both sides run on the same machine, so controls would not tell them apart. A cell that is measured
# again would leave its place beside the other side's.
ONE_EACH = {"repetitions": 1, "control": 0, "remeasure": 0}
"""keys of the suite of a side in each round"""


def place(key: CellKey) -> tuple[str, str, int]:
    """The identity of a point, without the file system, which may differ between the sides."""
    return key.load, key.mode, key.cores


@dataclass(frozen=True)
class PairedPoint:
    """A point on both sides; the repetition and the side of the keys are filled in later."""

    base: CellKey
    new: CellKey
    slicing: Slicing | None = None
    """None: whole repetitions"""
    waits: bool = False
    """whether only rare operations are left to be judged, so that it waits for all other points"""
    together: int = 2
    """whole repetitions of each side per round: A B B A"""

    @property
    def name(self) -> str:
        """The name of side A's point, under which results are kept."""
        return self.base.point

    @property
    def step(self) -> int:
        """Repetitions of each side per round; in slices, pairs per round."""
        return 1 if self.slicing else self.together

    def key(self, side: str, repetition: int) -> CellKey:
        """The cell of side "A" or "B"."""
        key = self.base if side == "A" else self.new
        return key.model_copy(update={"side": side, "repetition": repetition})
