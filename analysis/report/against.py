# SPDX-License-Identifier: GPL-2.0-only
"""Each run of a report against the first, judged as `fscale compare` judges."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from analysis.compare.compare import compare
from analysis.compare.repetitions import minimum_repetitions
from analysis.compare.settings import THROUGHPUT, Comparison, Judgement, Settings, Subject
from analysis.compare.sides import sides_of
from analysis.report.members import Member
from fscale.model.errors import FscaleError


@dataclass(frozen=True)
class Against:
    """What is to be said of a run beside the first one; `refused`: why they are not compared."""

    label: str
    comparison: Comparison | None = None
    refused: str | None = None

    @cached_property
    def rates(self) -> dict[Subject, Judgement]:
        """The judgements on throughput of single points."""
        judged = self.comparison.judgements if self.comparison else []
        return {
            j.subject: j for j in judged if j.metric == THROUGHPUT and len(j.subject.cores) == 1
        }

    @property
    def needed(self) -> int:
        """Repetitions with which one change among all tests can be found at all."""
        if self.comparison is None:
            return 0
        tests = len(self.comparison.judgements)
        return minimum_repetitions(self.comparison.settings, tests, interleaved=False)

    @property
    def judged(self) -> bool:
        """Whether any point had the repetitions for a verdict."""
        return any(j.p is not None for j in self.rates.values())


def against_first(members: Sequence[Member], allow: tuple[str, ...]) -> dict[str, Against]:
    """The runs after the first by their labels.

    A difference that makes the figures mean different things is refused as `compare` refuses it,
    unless `allow` names it. Too few repetitions are no refusal: all is undecided then.
    """
    first, *others = members
    found = {}
    for member in others:
        label = str(member.label)
        sides = sides_of(
            (first.results, first.cells), (member.results, member.cells), (str(first.label), label)
        )
        try:
            judged = compare(sides, Settings(allow_different=allow), refuse_few=False)
        except FscaleError as error:
            found[label] = Against(label, refused=str(error))
        else:
            found[label] = Against(label, judged)
    return found
