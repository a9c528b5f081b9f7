# SPDX-License-Identifier: GPL-2.0-only
"""The input of a verdict: one metric of one subject, measured on both sides."""

from dataclasses import dataclass, field

import numpy as np

from fscale.analysis.compare.model import Subject
from fscale.analysis.compare.ranktest import RankSamples
from fscale.analysis.compare.sliced import PairRatio
from fscale.analysis.metrics import COUNT, LATENCIES


@dataclass(frozen=True)
class Observations:
    """One side of a test: repetition -> value, and the numbers of repetitions without a value."""

    filesystem: str
    values: dict[int, float]
    unusable: int = 0
    disturbed: int = 0
    lost: float | None = None
    """median over disturbed repetitions of the CPU time share lost to others; None: unknown"""
    lacking: int = 0
    """good repetitions without a value; their operations may have been the slow ones"""
    missing: str = ""
    """why they have none, the most frequent reason"""

    @property
    def gap(self) -> str:
        """A clause that says which part of the good repetitions has no value; empty if none."""
        if not self.lacking or not self.values:
            return self.missing
        good = self.lacking + len(self.values)
        return f"{self.lacking} of {good} good repetitions have no value: {self.missing}"


@dataclass(frozen=True)
class Test:
    """One metric of one subject on both sides, before it is judged.

    `looks`: repetitions per side after which a sequential run looked at the data; empty if it
    looked once, at the end.
    """

    subject: Subject
    metric: str
    base: Observations
    new: Observations
    interleaved: bool = False
    looks: tuple[int, ...] = ()
    ratios: dict[int, PairRatio] = field(default_factory=dict)
    """repetition -> NEW over BASE, if both sides were mounted at once and took turns"""

    @property
    def repetitions(self) -> int:
        """Repetitions on the side that has fewer; in a sliced run, pairs."""
        if self.ratios:
            return len(self.ratios)
        return min(len(self.base.values), len(self.new.values))

    @property
    def gaps(self) -> str:
        """Why good repetitions of a side have no value; empty if all have one."""
        sides = {"BASE": self.base, "NEW": self.new}
        return "; ".join(f"{name}: {side.gap}" for name, side in sides.items() if side.gap)

    @property
    def counted(self) -> bool:
        """Whether the metric is a count, to which one event is added."""
        return self.metric.startswith(COUNT)

    @property
    def more_is_worse(self) -> bool:
        """Whether a ratio above 1 is a regression: of counts and of latencies."""
        return self.counted or self.metric in LATENCIES

    def samples(self, upto: int | None = None) -> RankSamples:
        """The samples of the first `upto` repetitions, as the tests use them.

        One event is added to each count, so that a margin of 1% means 1% of the count plus 0.01
        events per operation: rare events may double without being a finding.
        """
        base, new = (
            {
                r: v + 1 if self.counted else v
                for r, v in sorted(side.values.items())
                if upto is None or r <= upto
            }
            for side in (self.base, self.new)
        )
        if self.interleaved:
            return RankSamples.interleaved(base, new)
        return RankSamples.independent(*(np.array(list(s.values())) for s in (base, new)))
