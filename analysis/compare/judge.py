# SPDX-License-Identifier: GPL-2.0-only
"""Turns pairs of samples into verdicts, with the false discovery rate controlled over all."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress
from math import comb, log
from statistics import median

import numpy as np
import scipy

from analysis.compare import sliced
from analysis.compare.effect import (
    Effect,
    deviation,
    effect,
    outliers,
    repetitions_needed,
    smallest_change,
    spread_of,
)
from analysis.compare.ranktest import Floats, Samples, p_value
from analysis.compare.repetitions import minimum_repetitions, repetitions_to_reach
from analysis.compare.sequential import weight
from analysis.compare.settings import COUNT, PEAK, Judgement, Sample, Settings, Subject
from analysis.compare.sliced import LEAST_PAIRS, Paired, PairRatio, paired
from fscale.model.errors import FscaleError

DISTURBED_SHARE = 0.25
# Times the CPU time that others took by which a rate may fall: they take caches and locks, too.
DISTURBANCE = 3.0
NOISY = 0.25


@dataclass(frozen=True)
class Measured:
    """One side of a test: repetition -> value, and how many repetitions gave none."""

    filesystem: str
    values: dict[int, float]
    unusable: int = 0
    disturbed: int = 0
    lost: float | None = None
    """share of its CPU time that others took from the median disturbed repetition; None: unknown"""


@dataclass(frozen=True)
class Test:
    """One metric of one subject on both sides, before it is judged.

    `looks`: repetitions a side after which a sequential run looked at the data; empty when it
    looked once, at the end.
    """

    subject: Subject
    metric: str
    base: Measured
    new: Measured
    interleaved: bool = False
    looks: tuple[int, ...] = ()
    ratios: dict[int, PairRatio] = field(default_factory=dict)
    """repetition -> NEW over BASE, where both sides of it were mounted at once and took turns"""

    @property
    def repetitions(self) -> int:
        """Repetitions on the side that has fewer; of a sliced run, pairs."""
        if self.ratios:
            return len(self.ratios)
        return min(len(self.base.values), len(self.new.values))

    @property
    def counted(self) -> bool:
        """Whether the metric is counted work, of which more is worse."""
        return self.metric.startswith(COUNT)

    def samples(self, upto: int | None = None) -> Samples:
        """The samples of the first `upto` repetitions, as the tests see them.

        Counts are taken plus one event, so that a margin of 1% means 1% of the count and 0.01
        events an operation: rare events may double without being a finding.
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
            return Samples.interleaved(base, new)
        return Samples.independent(*(np.array(list(s.values())) for s in (base, new)))


@dataclass(frozen=True)
class _Evidence:
    """What the data of one test say, before the family is looked at."""

    level: float
    p: float
    effect: Effect
    spread: float
    paired: Paired | None = None


def judge(tests: Sequence[Test], settings: Settings, *, refuse: bool = True) -> list[Judgement]:
    """Judge all tests together.

    Slower or faster: significant after Benjamini and Hochberg (J. R. Stat. Soc. B 57, 1995), the
    ratio beyond the margin, and the interval without 1. Same: the interval lies within the
    margin (two one-sided tests, Schuirmann 1987). Undecided: all else.

    Raises:
        FscaleError: no test has the repetitions to be judged; the message says how many it takes.
            Without `refuse` all are undecided then.
    """
    weighed = [(test, _weigh(test, settings)) for test in tests]
    family = sum(e is not None for _, e in weighed)
    if refuse:
        refuse_too_few(tests, family, settings)
    adjusted = iter(scipy.stats.false_discovery_control([e.p for _, e in weighed if e]))
    return [
        _verdict(test, evidence, float(next(adjusted)), family, settings)
        if evidence
        else _too_few(test, family, settings)
        for test, evidence in weighed
    ]


def refuse_too_few(tests: Sequence[Test], family: int, settings: Settings) -> None:
    """Raise an FscaleError where not one of the tests could ever be significant by itself."""
    level = settings.fdr / max(1, family)
    if not tests or any(
        len(t.ratios) >= LEAST_PAIRS
        or 2 / comb(len(t.base.values) + len(t.new.values), len(t.new.values)) <= level
        for t in tests
    ):
        return
    if pairs := max(len(t.ratios) for t in tests):
        raise FscaleError(
            f"too few pairs in slices: at most {pairs}, and nothing is judged with less than "
            f"{LEAST_PAIRS}; the same command goes on, or give it more time with --max-minutes"
        )
    # With enough repetitions all of them would be in the family.
    tested = sum(t.repetitions > 0 for t in tests)
    needed = minimum_repetitions(settings, tested, any(t.interleaved for t in tests))
    raise FscaleError(
        f"too few repetitions: at most {max(t.repetitions for t in tests)} a side, but a single "
        f"change among {tested} tests is found at a false discovery rate of "
        f"{settings.fdr:g} only with {needed} or more; measure both sides "
        f"with --repetitions {needed}"
    )


def _weigh(test: Test, settings: Settings) -> _Evidence | None:
    if test.ratios:
        return _weigh_pairs(test, settings)
    if test.repetitions < repetitions_to_reach(settings.fdr, test.interleaved):
        return None
    looks = [n for n in test.looks if n <= test.repetitions]
    if test.looks and not looks:
        return None
    if looks:
        p = min(1.0, *(p_value(test.samples(n)) / weight(k) for k, n in enumerate(looks, 1)))
        samples, share = test.samples(looks[-1]), weight(len(looks))
    else:
        samples, share = test.samples(), 1.0
        p = p_value(samples)
    level = 1 - (1 - settings.confidence) * share
    key = hashlib.sha256(f"{test.subject.name} {test.metric}".encode()).digest()
    rng = np.random.default_rng([settings.seed, int.from_bytes(key[:8])])
    change = effect(samples, level, settings.resamples, rng)
    return _Evidence(level, p, change, spread_of(samples))


def _weigh_pairs(test: Test, settings: Settings) -> _Evidence | None:
    looks = [n for n in test.looks if n <= test.repetitions]
    if test.repetitions < LEAST_PAIRS or (test.looks and not looks):
        return None
    share = weight(len(looks)) if looks else 1.0
    level = 1 - (1 - settings.confidence) * share
    last = paired(test.ratios, looks[-1] if looks else None, level)
    p = min(
        1.0,
        *(paired(test.ratios, n, level).p / weight(k) for k, n in enumerate(looks, 1)),
        *([] if looks else [last.p]),
    )
    return _Evidence(level, p, last.effect, last.deviation, last)


def running(test: Test, settings: Settings) -> Effect | None:
    """What a look now would say of a sliced test; None with less than two pairs."""
    if len(test.ratios) < 2:
        return None
    looks = sum(n < test.repetitions for n in test.looks) + 1
    share = weight(looks) if test.looks else 1.0
    return paired(test.ratios, None, 1 - (1 - settings.confidence) * share).effect


def _verdict(test: Test, e: _Evidence, q: float, family: int, settings: Settings) -> Judgement:
    margin = _margin(test, settings)
    low, high = 1 - margin, 1 / (1 - margin)
    level = settings.fdr / family
    judgement = _undecided(test, margin)
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
        judgement.reason = _why_undecided(judgement, e.effect, significant)
    _excuse_disturbed(judgement)
    return judgement


def _why_undecided(judgement: Judgement, effect: Effect, significant: bool) -> str:
    if significant and effect.low <= 1 <= effect.high:
        return "the distributions differ, their medians do not clearly: look at the values"
    sees = judgement.smallest_change or 0
    if sees > NOISY and judgement.metric != PEAK:
        return f"too noisy: only a change above {sees:.0%} would show"
    if judgement.more_repetitions is None:
        return "too near the margin's edge for any practical number of repetitions"
    return "the data cannot tell"


def _excuse_disturbed(judgement: Judgement) -> None:
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


def _too_few(test: Test, family: int, settings: Settings) -> Judgement:
    needed = LEAST_PAIRS
    if not test.ratios:
        needed = minimum_repetitions(settings, family, test.interleaved)
    needed = test.looks[0] if test.looks else needed
    judgement = _undecided(test, _margin(test, settings))
    judgement.reason = f"{test.repetitions} of at least {needed} repetitions"
    judgement.more_repetitions = max(1, needed - test.repetitions)
    return judgement


def _margin(test: Test, settings: Settings) -> float:
    if test.counted:
        return settings.count_margin
    return settings.slice_margin if test.ratios else settings.margin


def _undecided(test: Test, margin: float) -> Judgement:
    return Judgement(
        subject=test.subject,
        metric=test.metric,
        base=_side(test.base, test.counted),
        new=_side(test.new, test.counted),
        interleaved=test.interleaved,
        margin=margin,
        verdict="undecided",
    )


def _side(side: Measured, counted: bool) -> Sample:
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
