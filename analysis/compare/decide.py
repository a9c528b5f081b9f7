# SPDX-License-Identifier: GPL-2.0-only
"""The verdict on one test, from the evidence in its data and the number of tests."""

from dataclasses import dataclass
from itertools import compress
from math import ceil, log
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
from fscale.analysis.compare.meanrate import PAUSE, WORK, MeanChange
from fscale.analysis.compare.model import Judgement, Sample, Verdict
from fscale.analysis.compare.observations import Observations, Test
from fscale.analysis.compare.ranktest import Floats
from fscale.analysis.compare.repetitions import minimum_repetitions
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sliced import MIN_PAIRS, Paired
from fscale.analysis.metrics import LATENCIES, PEAK

DISTURBED_SHARE = 0.25
# Other processes may lower a rate by this many times the CPU time that they took, because they
# also use caches and locks.
DISTURBANCE = 3.0
NOISY = 0.25
VERDICTS: dict[int, Verdict] = {-1: "slower", 1: "faster"}


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
        _decide_rate(judgement, e, e.paired.mean, q, settings.fdr)
        if judgement.rare_operations:
            return judgement
    elif significant and _beyond(e.effect, margin):
        judgement.verdict = VERDICTS[_beyond(e.effect, margin) * (-1 if test.more_is_worse else 1)]
    elif _within(e.effect, margin):
        judgement.verdict = "same"
    if judgement.verdict == "same":
        judgement.reason = "the change is smaller than the margin" if significant else ""
    elif judgement.verdict == "undecided":
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


def _beyond(effect: Effect, margin: float) -> int:
    """-1 if the ratio is below the margin and its interval below 1, 1 if above; else 0."""
    if effect.high < 1 and effect.ratio < 1 - margin:
        return -1
    return 1 if effect.low > 1 and effect.ratio > 1 / (1 - margin) else 0


def _within(effect: Effect, margin: float) -> bool:
    return 1 - margin <= effect.low and effect.high <= 1 / (1 - margin)


def _decide_rate(judgement: Judgement, e: Evidence, mean: MeanChange, q: float, fdr: float) -> None:
    """Decide on a rate of a sliced run: the mean rate is judged, which rare operations belong to.

    Where the typical turns (the pairs' robust centres) agree with it, their narrower interval is
    shown. "Same" needs both, and so much work that rare pauses would have been seen.
    """
    margin = judgement.margin
    judgement.mean_ratio = mean.effect.ratio
    judgement.mean_low, judgement.mean_high = mean.effect.low, mean.effect.high
    judgement.work_seconds = mean.work
    adjustment = q / e.p if e.p else 1.0
    typical = _beyond(e.effect, margin) if e.typical_p * adjustment <= fdr else 0
    rate = _beyond(mean.effect, margin) if e.mean_p * adjustment <= fdr else 0
    agree = mean.effect.low <= e.effect.ratio <= mean.effect.high
    if rate:
        judgement.verdict = VERDICTS[rate]
        if typical != rate or not agree:
            judgement.reason = (
                f"by rare operations: typical turns change by {e.effect.ratio - 1:+.1%} "
                f"[{e.effect.low - 1:+.1%}, {e.effect.high - 1:+.1%}]"
            )
            judgement.ratio, judgement.low, judgement.high = (
                mean.effect.ratio, mean.effect.low, mean.effect.high,
            )  # fmt: skip
    elif typical < 0 and mean.effect.low < 1 - margin:
        judgement.verdict = "slower"
    elif typical > 0 and mean.effect.high > 1 / (1 - margin):
        judgement.verdict = "faster"
    elif typical:
        judgement.rare_operations = True
        judgement.reason = (
            f"typical turns are {VERDICTS[typical]}, the mean rate is not: {_rate(mean)}"
        )
    elif _within(e.effect, margin):
        if _within(mean.effect, margin) and mean.enough_work:
            judgement.verdict = "same"
            return
        judgement.rare_operations = True
        judgement.more_repetitions = _pairs_of_work(judgement, mean)
        judgement.reason = (
            f"typical turns are the same, the mean rate may not be: {_rate(mean)}"
            if not _within(mean.effect, margin)
            else f"typical turns are the same, but {mean.work:.2g} s of work do not exclude rare "
            f"pauses of up to {1000 * PAUSE:g} ms; {WORK:.2g} s would"
        )


def _rate(mean: MeanChange) -> str:
    return f"{mean.effect.ratio - 1:+.1%} [{mean.effect.low - 1:+.1%}, {mean.effect.high - 1:+.1%}]"


def _pairs_of_work(judgement: Judgement, mean: MeanChange) -> int:
    """How many more pairs like these exclude rare pauses, at least one."""
    return max(1, ceil((WORK - mean.work) / mean.work * (judgement.pairs or 1)))


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
    """Retract a change that the load of other processes explains if sides were not interleaved."""
    share = max(s.disturbed / len(s.values) for s in (judgement.base, judgement.new))
    changed = judgement.verdict in ("slower", "faster")
    if (
        changed
        and share > DISTURBED_SHARE
        and not judgement.interleaved
        and _explains_change(judgement)
    ):
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


def too_few(test: Test, family: int, settings: Settings) -> Judgement:
    """An undecided judgement that says how many repetitions, or pairs, are needed at least."""
    needed = MIN_PAIRS
    if not test.ratios:
        needed = minimum_repetitions(settings, family, test.interleaved)
    needed = test.looks[0] if test.looks else needed
    judgement = undecided(test, _margin(test, settings))
    sides = {"BASE": test.base.missing, "NEW": test.new.missing}
    if missing := [f"{name}: {reason}" for name, reason in sides.items() if reason]:
        judgement.reason = "; ".join(missing)
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
