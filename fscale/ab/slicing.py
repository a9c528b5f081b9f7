# SPDX-License-Identifier: GPL-2.0-only
"""How a pair of both sides is cut into turns."""

from dataclasses import dataclass

BLOCK = 4
"""turns: A B B A or B A A B"""


@dataclass(frozen=True)
class Slicing:
    """How a pair is cut. Seconds of a turn, how many blocks of four turns, turns to warm up."""

    seconds: float = 0.01
    blocks: int = 16
    warmup: int = 1
    settle: bool = False
    """whether what a turn puts off is written out before the next one"""
    drain: float = 0.0
    """seconds after a turn, for what it frees later"""

    @property
    def side_seconds(self) -> float:
        """What one side works at most in a pair."""
        return self.seconds * (self.blocks * BLOCK / 2 + self.warmup)


DEFAULT = Slicing()
