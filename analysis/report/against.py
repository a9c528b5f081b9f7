# SPDX-License-Identifier: GPL-2.0-only
"""Judges each run of a report against the first, as `fscale compare` does."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.model import Comparison, Judgement, Subject
from fscale.analysis.compare.repetitions import minimum_repetitions
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import sides_of
from fscale.analysis.members import Member
from fscale.analysis.metrics import THROUGHPUT
from fscale.model.errors import FscaleError


@dataclass(frozen=True)
class Against:
    """The comparison of a run with the first one; `refused`: why they cannot be compared."""

    label: str
    comparison: Comparison | None = None
    refused: str | None = None

    @cached_property
    def rates(self) -> dict[Subject, Judgement]:
        """The judgements on the throughput of single points."""
        judged = self.comparison.judgements if self.comparison else []
        return {
            j.subject: j for j in judged if j.metric == THROUGHPUT and len(j.subject.cores) == 1
        }

    @property
    def needed(self) -> int:
        """The fewest repetitions that can detect one change among all tests."""
        if self.comparison is None:
            return 0
        tests = len(self.comparison.judgements)
        return minimum_repetitions(self.comparison.settings, tests, interleaved=False)

    @property
    def judged(self) -> bool:
        """Whether any point had enough repetitions for a verdict."""
        return any(j.p is not None for j in self.rates.values())


def against_first(members: Sequence[Member], allow: tuple[str, ...]) -> dict[str, Against]:
    """Judge the runs after the first: label -> comparison.

    As in `compare`, a difference that makes the figures mean different things is refused unless
    `allow` names it. Too few repetitions are not a refusal: all verdicts are undecided instead.
    """
    first, *others = members
    comparisons = {}
    for member in others:
        label = str(member.label)
        sides = sides_of(
            (first.results, first.cells), (member.results, member.cells), (str(first.label), label)
        )
        try:
            judged = compare(sides, Settings(allow_different=allow), refuse_few=False)
        except FscaleError as error:
            comparisons[label] = Against(label, refused=str(error))
        else:
            comparisons[label] = Against(label, judged)
    return comparisons
