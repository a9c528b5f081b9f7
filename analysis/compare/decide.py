# SPDX-License-Identifier: GPL-2.0-only
"""The verdict on one test, from the evidence in its data and the number of tests."""

from dataclasses import dataclass
from itertools import compress
from math import log
from statistics import median

import numpy as np

from fscale.analysis.compare import sliced
from fscale.analysis.compare.effect import (
    Effect,
    deviation,
    outliers,
    repetitions_needed,
    smallest_change,
)
from fscale.analysis.compare.model import Judgement, Sample
from fscale.analysis.compare.observations import Observations, Test
from fscale.analysis.compare.ranktest import Floats
from fscale.analysis.compare.rates import VERDICTS, Rates, beyond, decide_rate, within
from fscale.analysis.compare.repetitions import minimum_repetitions
from fscale.analysis.compare.settings import DISTURBED_SHARE, Settings
from fscale.analysis.compare.sliced import MIN_PAIRS, Paired
from fscale.analysis.metrics import LATENCIES, PEAK

# Other processes may lower a rate by this many times the CPU time that they took, because they
# also use caches and locks.
DISTURBANCE = 3.0
NOISY = 0.25


@dataclass(frozen=True)
class Evidence:
    """The evidence in the data of one test, before adjusting for the family of tests."""

    level: float
    p: float
    effect: Effect
    spread: float
    paired: Paired | None = None
    typical_p: float = 1.0
    """of the pairs' robust centres alone"""
    mean_p: float = 1.0
    """of the mean rate alone"""


def decide(test: Test, e: Evidence, q: float, family: int, settings: Settings) -> Judgement:
    """The verdict on a test whose p-value is `q` when adjusted for the whole family."""
    margin = _margin(test, settings)
    level = settings.fdr / family
    judgement = undecided(test, margin)
    judgement.ratio, judgement.low, judgement.high = e.effect.ratio, e.effect.low, e.effect.high
    judgement.level, judgement.p, judgement.q = e.level, e.p, q
    if e.paired:
        ratios = test.ratios.values()
        judgement.pairs = len(ratios)
        judgement.blocks = round(median(r.blocks for r in ratios))
        judgement.slice_seconds = median(r.seconds for r in ratios)
        judgement.between_pairs, judgement.within_pairs = e.paired.between, e.paired.within
    smallest = sliced.smallest_change if e.paired else smallest_change
    judgement.smallest_change = smallest(e.spread, test.repetitions, level, settings.power)
    significant = q <= settings.fdr
    if e.paired and e.paired.mean:
        decide_rate(judgement, rates_of(e, q, settings), settings.pause)
    elif significant and (direction := beyond(e.effect, margin)):
        judgement.verdict = VERDICTS[-direction if test.more_is_worse else direction]
    elif within(e.effect, margin):
        judgement.verdict = "same"
    if judgement.verdict == "same":
        judgement.reason = "the change is smaller than the margin" if significant else ""
    elif judgement.verdict == "undecided" and not judgement.rare_operations:
        needing = sliced.pairs_needed if e.paired else repetitions_needed
        needed = needing(e.spread, e.effect.ratio, margin, level, e.level)
        if needed is not None:
            if not test.ratios:
                needed = max(needed, minimum_repetitions(settings, family, test.interleaved))
            needed = min((look for look in test.looks if look >= needed), default=needed)
            judgement.more_repetitions = max(1, needed - test.repetitions)
        judgement.reason = why_undecided(judgement, e.effect, significant)
    retract_if_disturbed(judgement)
    if test.gaps:
        # Slow repetitions are those that lack a value, so the others do not stand for them.
        judgement.verdict, judgement.reason = "undecided", test.gaps
        judgement.more_repetitions = None
    return judgement


def rates_of(e: Evidence, q: float, settings: Settings) -> Rates:
    """Each of the two p-values is adjusted as the smaller one was for the family."""
    assert e.paired and e.paired.mean
    adjustment = q / e.p if e.p else 1.0
    typical, mean = (p * adjustment <= settings.fdr for p in (e.typical_p, e.mean_p))
    return Rates(e.effect, typical, e.paired.mean, mean)


def why_undecided(judgement: Judgement, effect: Effect, significant: bool) -> str:
    """Why a test has no verdict, in words."""
    if significant and effect.low <= 1 <= effect.high:
        return "the distributions differ, but their medians not clearly: look at the values"
    sees = judgement.smallest_change or 0
    if sees > NOISY and judgement.metric != PEAK:
        return f"too noisy: only a change above {sees:.0%} would be detected"
    if judgement.more_repetitions is None:
        return "too close to the margin for any practical number of repetitions"
    return "the data are not conclusive"


def retract_if_disturbed(judgement: Judgement) -> None:
    """Retract what the load of others explains if the sides were not interleaved.

    That is a change, or that there is none.
    """
    share = max(s.disturbed / len(s.values) for s in (judgement.base, judgement.new))
    explained = {"slower": _explains_change, "faster": _explains_change, "same": _hides_change}
    explains = explained.get(judgement.verdict)
    if explains and share > DISTURBED_SHARE and not judgement.interleaved and explains(judgement):
        judgement.verdict = "undecided"
        judgement.reason = (
            f"other processes disturbed {share:.0%} of a side's repetitions, and the sides were "
            "not interleaved: use `fscale ab`"
        )


def _explains_change(judgement: Judgement) -> bool:
    """Whether the CPU time that other processes took is enough to explain the change."""
    lost = [s.lost for s in (judgement.base, judgement.new) if s.disturbed]
    known = [share for share in lost if share is not None]
    if judgement.ratio is None or len(known) < len(lost):
        return True
    return abs(log(judgement.ratio)) <= DISTURBANCE * sum(known)


def _hides_change(judgement: Judgement) -> bool:
    """Whether others took more than the margin from one side, and not from the other."""
    base, new = (s.lost or 0.0 if s.disturbed else 0.0 for s in (judgement.base, judgement.new))
    return abs(base - new) > judgement.margin


def too_few(test: Test, family: int, settings: Settings) -> Judgement:
    """An undecided judgement that says how many repetitions, or pairs, are needed at least."""
    needed = MIN_PAIRS
    if not test.ratios:
        needed = minimum_repetitions(settings, family, test.interleaved)
    needed = test.looks[0] if test.looks else needed
    judgement = undecided(test, _margin(test, settings))
    if test.gaps:
        judgement.reason = test.gaps
        return judgement
    unit = "pairs" if test.ratios else "repetitions"
    judgement.reason = f"too few {unit}: {test.repetitions} of at least {needed}"
    judgement.more_repetitions = max(1, needed - test.repetitions)
    return judgement


def _margin(test: Test, settings: Settings) -> float:
    if test.counted:
        return settings.count_margin
    if test.metric in LATENCIES:
        return settings.latency_margin
    return settings.slice_margin if test.ratios else settings.margin


def undecided(test: Test, margin: float) -> Judgement:
    """A judgement without a verdict."""
    return Judgement(
        subject=test.subject,
        metric=test.metric,
        base=side_of(test.base, test.counted),
        new=side_of(test.new, test.counted),
        interleaved=test.interleaved,
        margin=margin,
        verdict="undecided",
    )


def side_of(side: Observations, counted: bool) -> Sample:
    """One side as it is shown; the spread of counts is computed from the count plus one event."""
    values = np.array(list(side.values.values()))
    logs: Floats = np.log(values + 1 if counted else values)
    return Sample(
        filesystem=side.filesystem,
        values=side.values,
        median=float(np.median(values)) if values.size else None,
        cv=deviation(logs) if values.size > 1 else None,
        outliers=list(compress(side.values, outliers(logs))),
        unusable=side.unusable,
        disturbed=side.disturbed,
        lost=side.lost,
    )
