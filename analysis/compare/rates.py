# SPDX-License-Identifier: GPL-2.0-only
"""The verdict on a rate of a sliced run, from its typical turns and its mean rate."""

from dataclasses import dataclass
from math import ceil

from fscale.analysis.compare.effect import Effect
from fscale.analysis.compare.meanrate import LOSS, MeanChange, work_needed
from fscale.analysis.compare.model import Judgement, Verdict

VERDICTS: dict[int, Verdict] = {-1: "slower", 1: "faster"}


@dataclass(frozen=True)
class Rates:
    """The change of the typical turns (the pairs' robust centres) and of the mean rate."""

    typical: Effect
    typical_significant: bool
    mean: MeanChange
    mean_significant: bool


def beyond(effect: Effect, margin: float) -> int:
    """-1 if the ratio is below the margin and its interval below 1, 1 if above; else 0."""
    if effect.high < 1 and effect.ratio < 1 - margin:
        return -1
    return 1 if effect.low > 1 and effect.ratio > 1 / (1 - margin) else 0


def within(effect: Effect, margin: float) -> bool:
    """Whether the whole interval lies within the margin."""
    return 1 - margin <= effect.low and effect.high <= 1 / (1 - margin)


def decide_rate(judgement: Judgement, rates: Rates, pause: float) -> None:
    """Enter the verdict on the mean rate, which rare operations belong to.

    Where the typical turns agree with it, their narrower interval is shown. "Same" needs both, and
    so much work that pauses of `pause` seconds would have been seen.
    """
    margin, mean = judgement.margin, rates.mean
    judgement.mean_ratio = mean.effect.ratio
    judgement.mean_low, judgement.mean_high = mean.effect.low, mean.effect.high
    judgement.work_seconds = mean.work
    typical = beyond(rates.typical, margin) if rates.typical_significant else 0
    direction = beyond(mean.effect, margin) if rates.mean_significant else 0
    if direction:
        judgement.verdict = VERDICTS[direction]
        agree = mean.effect.low <= rates.typical.ratio <= mean.effect.high
        if typical != direction or not agree:
            judgement.reason = f"by rare operations: typical turns change by {_text(rates.typical)}"
            judgement.ratio = mean.effect.ratio
            judgement.low, judgement.high = mean.effect.low, mean.effect.high
    elif typical < 0 and mean.effect.low < 1 - margin:
        judgement.verdict = "slower"
    elif typical > 0 and mean.effect.high > 1 / (1 - margin):
        judgement.verdict = "faster"
    elif typical:
        judgement.rare_operations = True
        judgement.reason = (
            f"typical turns are {VERDICTS[typical]}, the mean rate is not: {_text(mean.effect)}"
        )
    elif within(rates.typical, margin):
        _look_for_rare(judgement, mean, pause)


def _look_for_rare(judgement: Judgement, mean: MeanChange, pause: float) -> None:
    """Decide what is the same in its typical turns."""
    needed = work_needed(pause)
    # A mean is less precise than a robust centre, so its interval has a wider margin.
    margin = judgement.margin
    agree = 1 - margin <= mean.effect.ratio <= 1 / (1 - margin)
    agree = agree and within(mean.effect, max(margin, LOSS))
    if agree and mean.work >= needed:
        judgement.verdict = "same"
        return
    judgement.rare_operations, judgement.lacks_only_work = True, agree
    if not agree:
        judgement.reason = (
            f"typical turns are the same, the mean rate may not be: {_text(mean.effect)}"
        )
        return
    judgement.reason = (
        f"typical turns are the same, but {mean.work:.2g} s of work do not exclude rare pauses of "
        f"up to {1000 * pause:g} ms; {needed:.2g} s would"
    )
    pairs = judgement.pairs or 1
    judgement.more_repetitions = max(1, ceil((needed / mean.work - 1) * pairs))


def _text(effect: Effect) -> str:
    return f"{effect.ratio - 1:+.1%} [{effect.low - 1:+.1%}, {effect.high - 1:+.1%}]"
