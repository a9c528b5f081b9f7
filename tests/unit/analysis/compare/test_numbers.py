# SPDX-License-Identifier: GPL-2.0-only
"""How many tests, repetitions and looks a comparison takes, and how large a change shows."""

import re
import warnings
from math import comb, exp, sqrt

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, norm, t

from fscale.analysis.compare.effect import (
    centred,
    deviation,
    effect,
    outliers,
    repetitions_needed,
    smallest_change,
    spread_of,
)
from fscale.analysis.compare.ranktest import (
    EXACT_LIMIT,
    RankSamples,
    aligned,
    normal_p_value,
    p_value,
)
from fscale.analysis.compare.repetitions import (
    Shortage,
    curves_of,
    minimum_repetitions,
    repetitions_to_reach,
    shortage,
    smallest_p,
)
from fscale.analysis.compare.repetitions import (
    tests_of as count_tests,
)
from fscale.analysis.compare.sequential import growing, schedule, weight
from fscale.analysis.compare.settings import Settings
from fscale.model.results import CellKey
from tests.support import synthetic


def keys(counts: list[int], repetitions: int = 1, **changes: object) -> list[CellKey]:
    return [synthetic.key(r, cores=n, **changes) for r in range(1, repetitions + 1) for n in counts]


@pytest.mark.parametrize(
    ("repetitions", "blocked", "ways"),
    [
        (1, False, 2), (4, False, 70), (4, True, 70), (7, True, comb(14, 7)),
        (8, False, comb(16, 8)), (8, True, 70 * 70), (11, True, 70 * comb(14, 7)),
        (12, True, 70**3), (3, True, 20),
    ],
)  # fmt: skip
def test_the_smallest_p_is_two_of_all_arrangements(
    repetitions: int, blocked: bool, ways: int
) -> None:
    assert smallest_p(repetitions, blocked) == pytest.approx(min(1, 2 / ways))


def test_nothing_has_no_smaller_p_than_one() -> None:
    assert smallest_p(0, False) == 1.0


def test_a_level_is_reached_with_the_fewest_repetitions() -> None:
    assert repetitions_to_reach(1.0, False) == 1
    assert repetitions_to_reach(2 / 70, False) == 4
    assert repetitions_to_reach(2 / 70 - 1e-9, False) == 5
    assert [minimum_repetitions(Settings(), m, False) for m in (0, 1, 2, 50, 500)] == [
        5, 5, 6, 8, 10,
    ]  # fmt: skip


def test_the_tests_that_points_will_make() -> None:
    both, efficiency = Settings(), Settings(metrics=("per-cpu-second",))
    assert [curves_of(keys(n)) for n in ([1], [1, 2], [1, 2, 4], [1, 2, 4, 8])] == [0, 1, 3, 3]
    assert curves_of(keys([1, 2], 3)) == 1
    assert (
        curves_of(keys([1, 2]) + keys([1, 2, 4], filesystem="xfs") + keys([8], mode="direct")) == 4
    )
    assert count_tests(keys([1, 2]), both) == 2 * 2 + 1
    assert count_tests(keys([1, 2]), Settings(metrics=("throughput",))) == 2 + 1
    assert count_tests(keys([1, 2]), efficiency) == 2
    assert count_tests(keys([1, 2]), Settings(metrics=("count",))) == 0


def test_a_shortage_is_said_up_to_the_last_repetition() -> None:
    # Two metrics at two core counts and a curve: 0.01 / 5 takes 7, as 2 / C(14, 7) = 0.0006.
    assert shortage(keys([1, 2], 7), Settings()) is None
    found = shortage(keys([1, 2], 6), Settings())
    assert found == Shortage(6, 5, 7)
    assert re.findall(r"\d+", str(found)) == ["6", "7", "5"]
    # 0.002 / 5 takes 8, and 9 only where the runs are interleaved in blocks.
    assert shortage(keys([1, 2], 8), Settings(fdr=0.002)) is None
    profiled = keys([1, 2], 9, profile="locks")
    assert shortage(keys([1, 2], 6) + profiled, Settings()) == found


def test_looks_of_a_run() -> None:
    assert [weight(k) for k in (1, 2, 3)] == pytest.approx([1 / 2, 1 / 6, 1 / 12])
    # 0.005 takes 6 (blocks of four have none of less than 0.002), and then 40% more, even.
    assert schedule(0.01, 1, 40) == (6, 8, 12, 18, 26, 36)
    assert schedule(0.01, 0, 6) == (6,)
    assert schedule(0.01, 1, 5) == ()
    assert schedule(0.5, 1, 12) == (4, 6, 8, 12)  # 3 would do, and an even number is taken
    # 0.00225 takes 6, and a half of that 7; 0.0004 takes 9 in blocks, where 8 would do without.
    assert schedule(0.0045, 1, 8) == (6, 8)
    assert schedule(0.0008, 1, 10) == (10,)
    assert growing(4, 20) == (4, 6, 8, 11, 15)
    assert growing(4, 21) == (4, 6, 8, 11, 15, 21)
    assert growing(1, 3) == (1, 2, 3)


def blocks(base: list[float], new: list[float]) -> RankSamples:
    return RankSamples.interleaved(dict(enumerate(base, 1)), dict(enumerate(new, 1)))


def test_repetitions_fall_into_blocks_of_four() -> None:
    found = blocks([1.0] * 9, [2.0] * 4)
    assert found.block.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0]
    assert found.new.tolist() == [False] * 9 + [True] * 4
    assert found.value.tolist() == [1.0] * 9 + [2.0] * 4
    assert found.blocked
    # A side that stopped early does not decide where the last block begins.
    assert blocks([1.0] * 3, [2.0] * 8).block.tolist() == [0] * 3 + [0] * 4 + [1] * 4
    assert not blocks([1.0] * 7, [2.0] * 7).blocked
    assert blocks([], []).block.tolist() == []
    alone = RankSamples.independent(np.array([1.0, 2]), np.array([3.0]))
    assert (alone.value.tolist(), alone.new.tolist(), alone.block.tolist()) == (
        [1, 2, 3], [False, False, True], [0, 0, 0],
    )  # fmt: skip


def test_blocks_are_aligned_by_their_median_and_estimates_between_the_sides() -> None:
    e = np.exp
    samples = blocks([e(1), e(2), e(3), e(9), *[e(20)] * 4], [e(4), e(5), e(6), e(7), *[e(30)] * 4])
    found = aligned(samples)
    assert found == pytest.approx([-3.5, -2.5, -1.5, 4.5, *[-5] * 4, -0.5, 0.5, 1.5, 2.5, *[5] * 4])
    base, new = centred(samples)
    # Medians 2.5 and 5.5 in the first block, 20 and 30 in the second.
    assert base == pytest.approx([-3, -2, -1, 5, *[-5] * 4])
    assert new == pytest.approx([0, 1, 2, 3, *[5] * 4])


def test_a_block_with_one_side_only_says_nothing_of_the_difference() -> None:
    one_sided = blocks([1.0] * 8, [exp(1)] * 4)
    base, new = centred(one_sided)
    assert (base.tolist(), new.tolist()) == ([-0.5] * 4, [0.5] * 4)
    apart = RankSamples(np.exp([1.0, 2.0]), np.array([False, True]), np.array([0, 1]))
    assert [side.tolist() for side in centred(apart)] == [[1.0], [2.0]]


@pytest.mark.parametrize("seed", range(3))
def test_large_blocks_have_the_normal_limit(seed: int) -> None:
    """It is near the exact distribution, just below the bound and just above it."""
    r = np.random.default_rng(seed)
    half = EXACT_LIMIT // 2
    base, new = np.exp(r.normal(0, 1, half)), np.exp(r.normal(0.3, 1, half))
    exact = p_value(RankSamples.independent(base, new))
    assert exact == pytest.approx(mannwhitneyu(base, new, method="exact").pvalue, rel=1e-9)
    limit = p_value(RankSamples.independent(base, np.append(new, np.median(new))))
    assert limit == pytest.approx(exact, rel=0.15)
    same = np.ones(EXACT_LIMIT)
    assert p_value(RankSamples.independent(same, same)) == 1.0


def test_means_and_variances_of_blocks_add_up_in_the_normal_limit() -> None:
    # Means 1 x 4 and 2 x 5; variances 1 x 2 / 3 x 4 and 2 x 2 / 4 x 20 / 3: together 14 and 28 / 3.
    blocks_of_ranks = [(np.array([2, 4, 6]), 1), (np.array([2, 4, 6, 8]), 2)]
    for observed in (20, 8):
        expected = 2 * norm.sf((6 - 1) / sqrt(28 / 3))
        assert normal_p_value(blocks_of_ranks, observed) == pytest.approx(expected)
    assert normal_p_value(blocks_of_ranks, 14) == 1.0
    lone = (np.array([2]), 1)
    assert normal_p_value([*blocks_of_ranks, lone], 22) == pytest.approx(expected)
    assert normal_p_value([lone], 2) == 1.0


def test_robust_deviation() -> None:
    assert deviation(np.array([])) == deviation(np.array([3.0])) == 0.0
    assert deviation(np.array([1.0, 3.0])) == pytest.approx(1.4826, rel=1e-3)
    assert deviation(np.array([1.0, 2.0, 3.0, 4.0, 90.0])) == pytest.approx(1.4826, rel=1e-3)
    # With more than a half equal the median deviation is 0, which no noise is.
    assert deviation(np.array([1.0, 1.0, 1.0, 3.0])) == pytest.approx(1.0)


def test_outliers_are_beyond_three_and_a_half_deviations() -> None:
    bulk = [-1.0, -1.0, 0.0, 1.0, 1.0]
    for edge, out in ((3.5 * 1.4826 - 0.01, False), (3.5 * 1.4826 + 0.01, True)):
        for value in (edge, -edge):
            # Two more keep the median and its deviation.
            found = outliers(np.array([*bulk, value, 0.5 if value < 0 else -0.5, -1.0, 1.0]))
            assert found.tolist() == [False] * 5 + [out] + [False] * 3
    with warnings.catch_warnings(action="error"):
        none = outliers(np.array([]))
    assert none.tolist() == []
    assert none.dtype == np.bool_
    assert outliers(np.array([3.0])).tolist() == [False]
    assert outliers(np.array([0.0, 0.0, 0.0, 1e-9])).tolist() == [False] * 4
    assert outliers(np.array([1.0, 1.0, 1.0, 1.0 + 1e-10, 1.1])).tolist() == [False] * 4 + [True]


def test_spread_is_over_both_sides_by_their_freedom() -> None:
    even, odd = np.exp([0.0, 2.0]), np.exp([0.0, 4.0, 8.0, 8.0])
    unit = 1.4826
    # Median deviations 1 and 2, with 1 and 3 degrees of freedom.
    expected = unit * sqrt((1 * 1**2 + 3 * 2**2) / 4)
    assert spread_of(RankSamples.independent(even, odd)) == pytest.approx(expected, rel=1e-3)
    lone = np.array([5.0])
    assert spread_of(RankSamples.independent(lone, lone)) == 0.0
    assert spread_of(RankSamples.independent(lone, np.array([]))) == 0.0
    assert spread_of(RankSamples.independent(lone, even)) == pytest.approx(unit, rel=1e-3)


def test_smallest_change_by_the_t_distribution() -> None:
    # t(18): 2.8784 at 0.005 and 1.7341 at 0.05; times sqrt(2 / 10 x pi / 3).
    assert smallest_change(0.02, 10, 0.01, 0.95) == pytest.approx(
        1 - exp(-(2.8784 + 1.7341) * 0.02 * sqrt(0.2 * 3.14159 / 3)), rel=1e-4
    )
    # One repetition has no degree of freedom; it is taken as one: 63.657 and 6.3138.
    assert smallest_change(0.01, 1, 0.01, 0.95) == pytest.approx(
        1 - exp(-(63.657 + 6.3138) * 0.01 * sqrt(2 * 3.14159 / 3)), rel=1e-4
    )


def test_repetitions_needed_by_the_t_distribution() -> None:
    def needed(spread: float, ratio: float) -> int | None:
        return repetitions_needed(spread, ratio, 0.05, 0.01, 0.95)

    # Beyond the margin it must become significant: t(0.995, 2n - 2) x 0.05 x sqrt(2/n x pi/3)
    # falls below log(1.1) = 0.0953 between n = 7 (0.0835 < 0.0953) and n = 6 (0.0936).
    assert needed(0.05, 1.1) == needed(0.05, 1 / 1.1)
    assert needed(0.05, 1.1) == 6
    # Within it, the interval must fit: t(0.975, 2n - 2) x 0.05 x sqrt(2/n x pi/2) <= 0.0513.
    assert needed(0.05, 1.0) == 13
    assert needed(0.0, 1.0) == needed(0.0, 1.1) == 2
    assert needed(10.0, 1.1) is None
    assert needed(10.0, 1.0) is None
    # t(0.995, 4) = 4.604 and t(0.975, 4) = 2.776: three do, and two are far from it.
    assert needed(0.02, 1.1) == 3
    assert needed(0.01, 1.0) == 3
    assert needed(0.017, 1.0) == 3


@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_at_the_margins_edge_no_number_is_enough(ratio: float) -> None:
    assert repetitions_needed(0.01, ratio, 0.5, 0.01, 0.95) is None
    assert repetitions_needed(0.0, ratio, 0.5, 0.01, 0.95) == 2


@pytest.mark.parametrize(("more", "needed"), [(-1e-6, 1000), (1e-6, None)])
def test_a_thousand_repetitions_are_the_most(more: float, needed: int | None) -> None:
    width = t.isf(0.005, 2 * 1000 - 2) * sqrt(2 / 1000 * np.pi / 3)
    spread = float(np.log(1.1) / width * (1 + more))
    with warnings.catch_warnings(action="error"):
        assert repetitions_needed(spread, 1.1, 0.05, 0.01, 0.95) == needed


def test_where_bca_is_undefined_the_percentiles_are_taken() -> None:
    """The median stays with any one value left out, so that the jackknife has no spread."""
    values = np.exp([1.0, 2, 3, 4, 10, 10, 10, 16.1, 17.2, 18.3, 19.4])
    samples = RankSamples.independent(values, values * np.e)
    seen = []
    for seed in range(5):
        one, same = (effect(samples, 0.95, 99, np.random.default_rng(seed)) for _ in "ab")
        assert one == same
        assert 0 < one.low < one.ratio < one.high < np.inf
        seen.append(one.low)
    assert len(set(seen)) > 1


def test_an_interval_holds_its_ratio_and_narrows_with_confidence() -> None:
    base = np.array([100.0, 101.0, 99.0, 100.5, 98.5, 102.0])
    samples = RankSamples.independent(base, 1.1 * base[::-1] + np.arange(6) / 10)
    wide, narrow = (
        effect(samples, confidence, 999, np.random.default_rng(1)) for confidence in (0.99, 0.5)
    )
    assert wide.low < narrow.low <= narrow.ratio <= narrow.high < wide.high
    assert (
        wide.ratio
        == narrow.ratio
        == pytest.approx(np.median(samples.value[6:]) / np.median(base), rel=1e-3)
    )
