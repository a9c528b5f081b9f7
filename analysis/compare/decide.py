# SPDX-License-Identifier: GPL-2.0-only
"""The verdict on one test, once it is known what its data say and how many tests there are."""

from dataclasses import dataclass
from itertools import compress
from math import log
from statistics import median

import numpy as np

from analysis.compare import sliced
from analysis.compare.effect import (
    Effect,
    deviation,
    outliers,
    repetitions_needed,
    smallest_change,
)
from analysis.compare.measured import Measured, Test
from analysis.compare.ranktest import Floats
from analysis.compare.repetitions import minimum_repetitions
from analysis.compare.settings import PEAK, Judgement, Sample, Settings
from analysis.compare.sliced import MIN_PAIRS, Paired

DISTURBED_SHARE = 0.25
# Times the CPU time that others took by which a rate may fall: they take caches and locks, too.
DISTURBANCE = 3.0
NOISY = 0.25


@dataclass(frozen=True)
class Evidence:
    """What the data of one test say, before the family is looked at."""

    level: float
    p: float
    effect: Effect
    spread: float
    paired: Paired | None = None


def decide(test: Test, e: Evidence, q: float, family: int, settings: Settings) -> Judgement:
    """The verdict on a test whose p-value is `q` when adjusted for the whole family."""
    margin = _margin(test, settings)
    low, high = 1 - margin, 1 / (1 - margin)
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
    if significant and e.effect.high < 1 and e.effect.ratio < low:
        judgement.verdict = "faster" if test.counted else "slower"
    elif significant and e.effect.low > 1 and e.effect.ratio > high:
        judgement.verdict = "slower" if test.counted else "faster"
    elif low <= e.effect.low and e.effect.high <= high:
        judgement.verdict = "same"
        judgement.reason = "a change smaller than the margin" if significant else ""
    else:
        needing = sliced.pairs_needed if e.paired else repetitions_needed
        needed = needing(e.spread, e.effect.ratio, margin, level, e.level)
        if needed is not None:
            if not test.ratios:
                needed = max(needed, minimum_repetitions(settings, family, test.interleaved))
            needed = min((look for look in test.looks if look >= needed), default=needed)
            judgement.more_repetitions = max(1, needed - test.repetitions)
        judgement.reason = why_undecided(judgement, e.effect, significant)
    retract_if_disturbed(judgement)
    return judgement


def why_undecided(judgement: Judgement, effect: Effect, significant: bool) -> str:
    """Why a test has no verdict, in words."""
    if significant and effect.low <= 1 <= effect.high:
        return "the distributions differ, their medians do not clearly: look at the values"
    sees = judgement.smallest_change or 0
    if sees > NOISY and judgement.metric != PEAK:
        return f"too noisy: only a change above {sees:.0%} would show"
    if judgement.more_repetitions is None:
        return "too near the margin's edge for any practical number of repetitions"
    return "the data cannot tell"


def retract_if_disturbed(judgement: Judgement) -> None:
    """Take back a change that others' load explains: they moved one side only."""
    share = max(s.disturbed / len(s.values) for s in (judgement.base, judgement.new))
    changed = judgement.verdict in ("slower", "faster")
    if changed and share > DISTURBED_SHARE and not judgement.interleaved and _explained(judgement):
        judgement.verdict = "undecided"
        judgement.reason = (
            f"{share:.0%} of a side's repetitions ran beside others' load, and the sides were "
            "not interleaved: use `fscale ab`"
        )


def _explained(judgement: Judgement) -> bool:
    """Whether what others took from a side is enough for its change."""
    lost = [s.lost for s in (judgement.base, judgement.new) if s.disturbed]
    known = [share for share in lost if share is not None]
    if judgement.ratio is None or len(known) < len(lost):
        return True
    return abs(log(judgement.ratio)) <= DISTURBANCE * sum(known)


def too_few(test: Test, family: int, settings: Settings) -> Judgement:
    """Undecided, with how many repetitions, or pairs, it takes at least."""
    needed = MIN_PAIRS
    if not test.ratios:
        needed = minimum_repetitions(settings, family, test.interleaved)
    needed = test.looks[0] if test.looks else needed
    judgement = undecided(test, _margin(test, settings))
    judgement.reason = f"{test.repetitions} of at least {needed} repetitions"
    judgement.more_repetitions = max(1, needed - test.repetitions)
    return judgement


def _margin(test: Test, settings: Settings) -> float:
    if test.counted:
        return settings.count_margin
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


def side_of(side: Measured, counted: bool) -> Sample:
    """One side as it is shown: of counts the spread is that of the count plus one event."""
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
