# SPDX-License-Identifier: GPL-2.0-only
"""How a pair is cut into turns of the two sides."""

from dataclasses import dataclass, replace

BLOCK = 4
"""turns: A B B A or B A A B"""


@dataclass(frozen=True)
class Slicing:
    """`seconds` of a turn, number of `blocks` of four turns, `warmup` turns per side."""

    seconds: float = 0.01
    blocks: int = 16
    warmup: int = 1
    settle: bool = False
    """whether deferred work of a turn is written out before the next turn"""
    drain: float = 0.0
    """seconds to wait after a turn for objects that the kernel frees later"""
    consumes: bool = False
    """whether a stock, as large as the medium, limits the work of a pair"""
    stock: float = 1.0
    """how many times the work of a pair a stock has to last for, by the rate of its pilot"""

    @property
    def stocked_seconds(self) -> float:
        """The seconds of one side's work in a pair, as long as its stock has to last."""
        return self.stock * self.seconds * (self.blocks * BLOCK / 2 + self.warmup)


DEFAULT = Slicing()
LONGER_SECONDS = 0.1
LARGER_STOCK = 4.0
"""for a pilot that runs cold or on a busy machine, and therefore up to three times as slowly"""


def lengthen(slicing: Slicing) -> Slicing | None:
    """Turns that do more work per pair, for what is rare; None if the medium has no room for it."""
    if slicing.consumes:
        return None
    return replace(slicing, seconds=max(slicing.seconds, LONGER_SECONDS))
