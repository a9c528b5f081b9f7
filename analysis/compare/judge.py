# SPDX-License-Identifier: GPL-2.0-only
"""Turns pairs of samples into verdicts and controls the false discovery rate over all tests."""

import hashlib
from collections.abc import Sequence
from math import comb

import numpy as np
import scipy

from fscale.analysis.compare.decide import Evidence, decide, too_few
from fscale.analysis.compare.effect import Effect, effect, spread_of
from fscale.analysis.compare.meanrate import SHARE
from fscale.analysis.compare.model import Judgement
from fscale.analysis.compare.observations import Test
from fscale.analysis.compare.ranktest import p_value
from fscale.analysis.compare.repetitions import minimum_repetitions, repetitions_to_reach
from fscale.analysis.compare.sequential import weight
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sliced import MIN_PAIRS, paired
from fscale.model.errors import FscaleError


def judge(tests: Sequence[Test], settings: Settings, *, refuse: bool = True) -> list[Judgement]:
    """Judge all tests together.

    Slower or faster: significant after Benjamini and Hochberg (J. R. Stat. Soc. B 57, 1995), the
    ratio is beyond the margin, and the interval excludes 1. Same: the interval lies within the
    margin (two one-sided tests, Schuirmann 1987). Undecided: all others.

    Raises:
        FscaleError: no test has enough repetitions; the message says how many are needed. Without
            `refuse`, all tests are undecided instead.
    """
    weighed = [(test, _weigh(test, settings)) for test in tests]
    family = sum(e is not None for _, e in weighed)
    if refuse:
        refuse_too_few(tests, family, settings)
    adjusted = iter(scipy.stats.false_discovery_control([e.p for _, e in weighed if e]))
    return [
        decide(test, evidence, float(next(adjusted)), family, settings)
        if evidence
        else too_few(test, family, settings)
        for test, evidence in weighed
    ]


def refuse_too_few(tests: Sequence[Test], family: int, settings: Settings) -> None:
    """Raise an FscaleError if none of the tests could ever be significant by itself."""
    level = settings.fdr / max(1, family)
    if not tests or any(
        len(t.ratios) >= MIN_PAIRS
        or 2 / comb(len(t.base.values) + len(t.new.values), len(t.new.values)) <= level
        for t in tests
    ):
        return
    if pairs := max(len(t.ratios) for t in tests):
        raise FscaleError(
            f"too few pairs in slices: there are at most {pairs}, and a verdict needs at least "
            f"{MIN_PAIRS}; run the same command again to resume, or give more --max-minutes"
        )
    # With enough repetitions, all tests would be in the family.
    tested, interleaved = sum(t.repetitions > 0 for t in tests), any(t.interleaved for t in tests)
    needed = minimum_repetitions(settings, tested, interleaved)
    more = (
        f"run the command again to resume, with more --max-minutes or --repetitions {needed}"
        if interleaved
        else f"measure both sides with --repetitions {needed}"
    )
    raise FscaleError(
        f"too few repetitions: there are at most {max(t.repetitions for t in tests)} per side, but "
        f"it takes at least {needed} to detect a single change among {tested} tests at a false "
        f"discovery rate of {settings.fdr:g}; {more}"
    )


def _weigh(test: Test, settings: Settings) -> Evidence | None:
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
    return Evidence(level, p, change, spread_of(samples))


def _weigh_pairs(test: Test, settings: Settings) -> Evidence | None:
    # A pair that has no ratio was looked at all the same.
    looks = [n for n in test.looks if n <= max(test.ratios)]
    if test.repetitions < MIN_PAIRS or (test.looks and not looks):
        return None
    shares = [weight(k) for k, _ in enumerate(looks, 1)] or [1.0]
    level = 1 - (1 - settings.confidence) * shares[-1]
    typical = mean = 1.0
    for n, share in zip(looks or (None,), shares, strict=True):
        at_look = paired(test.ratios, n, level) if _count(test, n) >= MIN_PAIRS else None
        if at_look and at_look.mean:
            typical = min(typical, at_look.p / share / (1 - SHARE))
            mean = min(mean, at_look.mean.p / share / SHARE)
        elif at_look:
            typical = min(typical, at_look.p / share)
    if at_look is None:
        return None
    p = min(typical, mean)
    return Evidence(level, p, at_look.effect, at_look.deviation, at_look, typical, mean)


def _count(test: Test, upto: int | None) -> int:
    return sum(upto is None or r <= upto for r in test.ratios)


def running(test: Test, settings: Settings) -> Effect | None:
    """The effect that a look now would show for a sliced test; None with fewer than two pairs."""
    if len(test.ratios) < 2:
        return None
    looks = sum(n < test.repetitions for n in test.looks) + 1
    share = weight(looks) if test.looks else 1.0
    now = paired(test.ratios, None, 1 - (1 - settings.confidence) * share)
    return now.effect if now else None
