# SPDX-License-Identifier: GPL-2.0-only
"""The statistics against scipy, against enumeration and against their own promises."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, permutation_test, rankdata

from fscale.analysis.compare import effect as effects
from fscale.analysis.compare.ranktest import (
    RankSamples,
    aligned,
    p_value,
)
from fscale.analysis.compare.repetitions import repetitions_to_reach, smallest_p
from fscale.analysis.compare.sequential import schedule, weight

positive = st.floats(min_value=0.1, max_value=1e9)


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(st.integers(2, 9), st.integers(2, 9), st.integers(0, 1000), st.floats(0, 2))
@settings(max_examples=40, deadline=None)
def test_one_block_is_the_exact_mann_whitney_test(n: int, m: int, seed: int, shift: float) -> None:
    r = rng(seed)
    base, new = np.exp(r.normal(0, 1, n)), np.exp(r.normal(shift, 1, m))
    theirs = mannwhitneyu(base, new, method="exact").pvalue
    assert p_value(RankSamples.independent(base, new)) == pytest.approx(theirs, rel=1e-9)


def test_ties_need_no_correction() -> None:
    base, new = np.array([1.0, 2, 2, 3, 3, 3]), np.array([2.0, 3, 3, 4, 4])
    pooled = rankdata(np.concatenate([base, new]))
    theirs = permutation_test(
        [pooled[base.size :], pooled[: base.size]],
        lambda x, y: np.sum(x),
        vectorized=False,
        n_resamples=np.inf,
    ).pvalue
    assert p_value(RankSamples.independent(base, new)) == pytest.approx(theirs)


def test_blocks_match_an_enumeration_of_their_arrangements() -> None:
    r = rng(3)
    samples = RankSamples.interleaved(
        {i: float(np.exp(r.normal())) for i in range(1, 9)},
        {i: float(np.exp(r.normal(0.7))) for i in range(1, 9)},
    )
    assert np.unique(samples.block).size == 2
    ranks = rankdata(aligned(samples))
    observed = ranks[samples.new].sum()
    halves = [
        [sum(c) for c in itertools.combinations(ranks[samples.block == b], 4)] for b in (0, 1)
    ]
    sums = np.add.outer(*halves).ravel()
    expected = 2 * min(np.mean(sums <= observed + 1e-9), np.mean(sums >= observed - 1e-9))
    assert p_value(samples) == pytest.approx(min(1.0, expected))


def test_alignment_takes_off_drift_between_blocks() -> None:
    r = rng(4)
    drift = {i: 10.0 ** ((i - 1) // 4) for i in range(1, 13)}
    base = {i: d * float(np.exp(r.normal(0, 0.01))) for i, d in drift.items()}
    new = {i: 0.9 * d * float(np.exp(r.normal(0, 0.01))) for i, d in drift.items()}
    interleaved = RankSamples.interleaved(base, new)
    independent = RankSamples.independent(np.array([*base.values()]), np.array([*new.values()]))
    assert p_value(interleaved) < 1e-4
    assert p_value(independent) > 0.1
    change = effects.effect(interleaved, 0.95, 999, rng())
    assert change.ratio == pytest.approx(0.9, rel=0.02)
    assert 0.88 < change.low < change.high < 0.92


def test_aligned_blocks_do_not_depend_on_their_level() -> None:
    r = rng(9)
    base, new = ({i: float(np.exp(r.normal())) for i in range(1, 9)} for _ in "AB")
    level = {i: 100.0 ** ((i - 1) // 4) for i in base}
    drifted = RankSamples.interleaved(
        {i: v * level[i] for i, v in base.items()}, {i: v * level[i] for i, v in new.items()}
    )
    still = RankSamples.interleaved(base, new)
    assert aligned(drifted) == pytest.approx(aligned(still))
    assert p_value(drifted) == pytest.approx(p_value(still))


def test_a_remainder_joins_the_last_block() -> None:
    values = dict.fromkeys(range(1, 11), 1.0)
    _, counts = np.unique(RankSamples.interleaved(values, values).block, return_counts=True)
    assert counts.tolist() == [8, 12]
    # A missing repetition does not shift the blocks of the others.
    holes = {r: 1.0 for r in values if r != 2}
    _, counts = np.unique(RankSamples.interleaved(holes, values).block, return_counts=True)
    assert counts.tolist() == [7, 12]


@pytest.mark.broad
@given(st.lists(positive, min_size=3, max_size=12), st.lists(positive, min_size=3, max_size=12))
@settings(max_examples=60, deadline=None)
def test_sides_can_be_exchanged(base: list[float], new: list[float]) -> None:
    a, b = np.array(base), np.array(new)
    forth, back = RankSamples.independent(a, b), RankSamples.independent(b, a)
    assert p_value(forth) == pytest.approx(p_value(back), abs=1e-12)
    one, other = (effects.effect(s, 0.95, 999, rng()) for s in (forth, back))
    assert one.ratio == pytest.approx(1 / other.ratio)
    assert one.low <= one.ratio <= one.high


@pytest.mark.parametrize("blocked", [False, True])
def test_the_fewest_repetitions_are_the_fewest(blocked: bool) -> None:
    for level in (0.01, 1e-3, 1e-5):
        n = repetitions_to_reach(level, blocked)
        assert smallest_p(n, blocked) <= level < smallest_p(n - 1, blocked)
        down, up = np.linspace(1, 2, n), np.linspace(300, 301, n)
        if blocked:
            samples = RankSamples.interleaved(dict(enumerate(down, 1)), dict(enumerate(up, 1)))
        else:
            samples = RankSamples.independent(down, up)
        assert p_value(samples) == pytest.approx(smallest_p(n, blocked))


@pytest.mark.broad
def test_interval_covers_the_ratio() -> None:
    r = rng(6)
    tries, hits = 300, 0
    for _ in range(tries):
        base, new = np.exp(r.normal(0, 0.05, 10)), 0.9 * np.exp(r.normal(0, 0.05, 10))
        change = effects.effect(RankSamples.independent(base, new), 0.95, 999, r)
        hits += change.low <= 0.9 <= change.high
    # 95% less four binomial standard deviations.
    assert hits / tries > 0.90


@pytest.mark.parametrize(
    ("base", "new", "low", "high"),
    [
        ([5.0] * 6, [4.0] * 6, 0.8, 0.8),
        ([5.0] * 6, [4.0, 4.0, 4.0, 4.0, 4.0, 5.0], 0.8, 0.9),
        ([1.0, 2.0], [1.0, 2.0], 0.5, 2.0),
    ],
)
def test_degenerate_data_have_an_interval(
    base: list[float], new: list[float], low: float, high: float
) -> None:
    change = effects.effect(
        RankSamples.independent(np.array(base), np.array(new)), 0.95, 999, rng()
    )
    assert change.low == pytest.approx(low)
    assert change.high <= high + 1e-9
    assert np.isfinite([change.low, change.high]).all()


@pytest.mark.broad
def test_the_visible_change_is_the_one_that_is_found() -> None:
    spread, n, level, r = 0.04, 12, 0.01, rng(7)
    visible = effects.smallest_change(spread, n, level, 0.9)
    found = sum(
        p_value(
            RankSamples.independent(
                np.exp(r.normal(0, spread, n)), (1 - visible) * np.exp(r.normal(0, spread, n))
            )
        )
        <= level
        for _ in range(400)
    )
    assert 0.85 < found / 400 < 0.95


@pytest.mark.slow
def test_peeking_keeps_the_error_rate() -> None:
    r, level, tries = rng(8), 0.05, 600
    looks = schedule(level, 1, 40)
    alarms = naive = 0
    for _ in range(tries):
        base, new = (dict(enumerate(np.exp(r.normal(0, 0.05, 40)), 1)) for _ in "AB")
        ps = [
            p_value(
                RankSamples.interleaved(
                    {i: base[i] for i in range(1, n + 1)}, {i: new[i] for i in range(1, n + 1)}
                )
            )
            for n in looks
        ]
        alarms += min(p / weight(k) for k, p in enumerate(ps, 1)) <= level
        naive += min(ps) <= level
    assert alarms / tries <= level
    assert naive / tries > level  # or the test would show nothing
