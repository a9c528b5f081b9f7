# SPDX-License-Identifier: GPL-2.0-only
"""The ratios of sliced pairs and what many say together, in figures that can be checked by hand."""

from math import exp, log, sqrt

import pytest
from scipy.stats import t

from fscale.analysis.compare.sliced import (
    Paired,
    PairRatio,
    paired,
    pairs_needed,
    ratios_of,
    smallest_change,
)
from fscale.analysis.metrics import CPU_EFFICIENCY, INSTRUCTIONS, THROUGHPUT
from fscale.model.results import Cell, Slice
from tests.support import synthetic
from tests.support.synthetic import cell

KEY = synthetic.key()


def turned(rates: list[float], seconds: float = 1.0, cpu_seconds: float = 0.5) -> Cell:
    """Two turns a block, of which the second did nothing."""
    turns = [
        Slice(block=b, ops=ops, seconds=seconds, cpu_seconds=cpu_seconds)
        for b, rate in enumerate(rates)
        for ops in (round(2 * rate * seconds), 0)
    ]
    return cell(KEY, 100.0, slices=turns)


def ratio(base: Cell, new: Cell, metric: str = THROUGHPUT) -> PairRatio | None:
    return ratios_of({7: base}, {7: new}, metric).get(7)


def test_the_ratio_of_a_pair() -> None:
    base = turned([1000.0] * 5, seconds=0.5)
    new = turned([1000 * exp(x / 10) for x in (1, 2, 3, 4, 10)], seconds=2.0)
    found = ratio(base, new)
    assert found is not None
    # Of the 15 means of pairs 0.1, 0.15, 0.2, 0.2, 0.25, 0.25, 0.3, ... the eighth.
    assert found.log == pytest.approx(0.3, abs=1e-3)
    # The median deviation is 0.1; times 1.4826, and the standard error of the centre of five.
    assert found.error == pytest.approx(0.14826 * sqrt(3.14159 / 3 / 5), rel=1e-2)
    assert (found.blocks, found.seconds) == (5, 0.5)


def test_each_metric_has_its_own_ratio() -> None:
    base, new = turned([1000.0] * 6), turned([2000.0] * 6, cpu_seconds=0.25)
    rate, efficiency = ratio(base, new), ratio(base, new, CPU_EFFICIENCY)
    assert rate is not None
    assert efficiency is not None
    assert (rate.log, efficiency.log) == pytest.approx((log(2), log(4)))
    for side, instructions in ((base, 300), (new, 900)):
        side.counts = {"instructions": instructions}
    counted = ratio(base, new, INSTRUCTIONS)
    assert counted is not None
    assert (counted.log, counted.error) == (pytest.approx(log(3)), 0.0)
    assert ratio(turned([1.0] * 6), new, INSTRUCTIONS) is None


def test_blocks_count_where_both_sides_have_both_turns() -> None:
    good = turned([1000.0] * 6)
    assert good.slices is not None
    for change in ({"seconds": 0.0}, {"block": 99}):
        for side in (0, 1):
            odd = good.model_copy(
                update={"slices": [good.slices[0].model_copy(update=change), *good.slices[1:]]}
            )
            pair = (odd, good) if side else (good, odd)
            for metric in (THROUGHPUT, CPU_EFFICIENCY):
                found = ratio(*pair, metric)
                assert found is not None
                assert found.blocks == 5
    assert ratio(turned([0.5] * 5), turned([0.5] * 5)) is not None
    idle = good.model_copy(
        update={"slices": [s.model_copy(update={"ops": 0}) for s in good.slices]}
    )
    assert ratio(idle, good) is None
    unused = good.model_copy(
        update={"slices": [s.model_copy(update={"cpu_seconds": 0.0}) for s in good.slices]}
    )
    assert ratio(good, unused, CPU_EFFICIENCY) is None
    assert ratio(good, unused) is not None
    assert ratio(turned([1000.0] * 4), good) is None
    assert ratio(cell(KEY, 1.0), good) is None
    assert ratios_of({1: good, 3: good}, {2: good, 3: good}, THROUGHPUT).keys() == {3}


def of(*logs: float, error: float = 0.0) -> dict[int, PairRatio]:
    return {r: PairRatio(x, error) for r, x in enumerate(logs, 1)}


def test_pairs_are_judged_by_students_t() -> None:
    found = paired(of(-0.1, -0.2, -0.3, -0.2, -0.2), None, 0.95)
    # The mean is -0.2, the deviation sqrt(0.005), and t = -0.2 / sqrt(0.001) = 6.325 at 4.
    assert found.between == pytest.approx(sqrt(0.005))
    assert (found.within, found.deviation) == (0.0, found.between)
    assert found.p == pytest.approx(0.0032, abs=5e-5)
    half = 2.7764 * sqrt(0.001)
    assert (found.effect.ratio, found.effect.low, found.effect.high) == pytest.approx(
        (exp(-0.2), exp(-0.2 - half), exp(-0.2 + half)), rel=1e-4
    )
    assert paired(of(0.1, 0.2, 0.3, 0.2, 0.2), None, 0.95).p == pytest.approx(found.p)
    assert paired(of(-0.1, -0.2, -0.3, -0.2, -0.2, 9.0), 5, 0.95) == found
    narrow = paired(of(-0.1, -0.2, -0.3, -0.2, -0.2), None, 0.5).effect
    assert narrow.high == pytest.approx(exp(-0.2 + 0.7407 * sqrt(0.001)), rel=1e-4)


def test_pairs_are_no_better_than_their_blocks() -> None:
    ratios = {1: PairRatio(0.1, 0.03), 2: PairRatio(0.1, 0.04), 3: PairRatio(0.1, 0.0)}
    found = paired(ratios, None, 0.95)
    assert found.between == pytest.approx(0)
    assert found.within == found.deviation == pytest.approx(0.05 / sqrt(3))
    # t = 0.1 / (0.05 / 3) = 6 at two degrees of freedom.
    assert found.p == pytest.approx(0.02667, abs=1e-5)


def test_pairs_without_any_spread_are_certain() -> None:
    assert paired(of(0.0, 0.0, 0.0), None, 0.95).p == 1.0
    sure = paired(of(0.5, 0.5, 0.5), None, 0.95)
    assert (sure.p, sure.effect.low, sure.effect.high) == (0.0, exp(0.5), exp(0.5))


def test_the_deviation_is_the_larger_one() -> None:
    effect = paired(of(0.0, 0.0), None, 0.95).effect
    assert Paired(1.0, effect, 0.1, 0.2).deviation == 0.2
    assert Paired(1.0, effect, 0.3, 0.2).deviation == 0.3


def test_what_so_many_pairs_show() -> None:
    # t(0.995, 8) = 3.3554 and t(0.95, 8) = 1.8595, over three.
    assert smallest_change(0.03, 9, 0.01, 0.95) == pytest.approx(
        1 - exp(-(3.3554 + 1.8595) * 0.01), rel=1e-4
    )
    # One pair is taken with one degree of freedom: 63.657 and 6.3138.
    assert smallest_change(0.001, 1, 0.01, 0.95) == pytest.approx(
        1 - exp(-(63.657 + 6.3138) * 0.001), rel=1e-4
    )
    assert smallest_change(0.001, 2, 0.01, 0.95) == pytest.approx(
        1 - exp(-(63.657 + 6.3138) * 0.001 / sqrt(2)), rel=1e-4
    )


def test_the_pairs_that_a_decision_needs() -> None:
    def needed(deviation: float, ratio: float) -> int | None:
        return pairs_needed(deviation, ratio, 0.05, 0.01, 0.95)

    # t(0.995, n - 1) x 0.05 / sqrt(n) falls below log(1.1) = 0.0953 between 5 (0.103) and 6 (0.082)
    assert needed(0.05, 1.1) == needed(0.05, 1 / 1.1) == 6
    # t(0.975, n - 1) x 0.05 / sqrt(n) falls below -log(0.95) = 0.0513 between 6 (0.0525) and 7.
    assert needed(0.05, 1.0) == 7
    # Within the margin only what is left of it: 0.0513 - log(1.02) = 0.0315.
    assert needed(0.05, 1.02) == needed(0.05, 1 / 1.02) == 13
    assert needed(0.0, 1.0) == needed(0.0, 1.1) == 4
    assert needed(10.0, 1.0) is None
    assert needed(10.0, 1.1) is None
    assert pairs_needed(0.01, 0.5, 0.5, 0.01, 0.95) is None
    assert pairs_needed(0.0, 0.5, 0.5, 0.01, 0.95) == 4
    # t(0.995, 5) = 4.032 and t(0.995, 4) = 4.604: 0.0905 and 0.1133.
    assert needed(0.055, 1.1) == 6


@pytest.mark.parametrize(("more", "needed"), [(-1e-6, 1000), (1e-6, None)])
def test_a_thousand_pairs_are_the_most(more: float, needed: int | None) -> None:
    deviation = log(1.1) * sqrt(1000) / float(t.isf(0.005, 999)) * (1 + more)
    assert pairs_needed(deviation, 1.1, 0.05, 0.01, 0.95) == needed
