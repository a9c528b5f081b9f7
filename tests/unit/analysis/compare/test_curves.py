# SPDX-License-Identifier: GPL-2.0-only
"""Curves as tests: which there are, the values of each repetition, and the ratios of pairs."""

import math
from typing import Any

import numpy as np
import pytest

from fscale.analysis.compare.curves import curve_tests, peak_cores
from fscale.analysis.compare.model import Subject
from fscale.analysis.compare.observations import Observations
from fscale.analysis.compare.observations import Test as Compared
from fscale.analysis.compare.sliced import PairRatio
from fscale.analysis.metrics import CPU_EFFICIENCY, DOUBLING, PEAK, SPEEDUP, THROUGHPUT

Values = dict[int, float]


def point(cores: int, base: Values, new: Values, metric: str = THROUGHPUT, **more: Any) -> Compared:
    subject = Subject(
        workload="DRBL", filesystem="ext4", medium="ram", mode="buffered", cores=(cores,),
        duration=1,
    )  # fmt: skip
    return Compared(
        subject, metric, Observations("ext4", base, 1, 1), Observations("xfs", new, 0, 0), **more
    )


def curves(points: list[Compared]) -> dict[str, Compared]:
    return {test.metric: test for test in curve_tests(points, 0.05)}


def test_two_core_counts_have_a_speed_up_and_three_a_slope_and_a_peak() -> None:
    same = {1: 1.0}
    points = [point(n, same, same) for n in (4, 1, 2)]
    assert curves(points[:1]) == {}
    assert list(curves(points[:2])) == [SPEEDUP]
    assert list(curves(points)) == [SPEEDUP, DOUBLING, PEAK]
    assert curves([point(n, same, same, CPU_EFFICIENCY) for n in (1, 2)]) == {}
    other = point(8, same, same)
    # A lone point does not hide the curve that comes after it.
    lone = Compared(
        other.subject.model_copy(update={"medium": "disk"}), THROUGHPUT, other.base, other.new
    )
    assert list(curves([lone, *points[:2]])) == [SPEEDUP]
    elsewhere = other.subject.model_copy(update={"medium": "disk"})
    assert curves([points[0], Compared(elsewhere, THROUGHPUT, other.base, other.new)]) == {}


def test_a_repetition_of_a_curve_is_made_of_the_same_of_its_points() -> None:
    found = curves(
        [
            point(2, {1: 15.0, 2: 20.0}, {1: 10.0, 2: 10.0}, interleaved=True, looks=(8,)),
            point(1, {1: 10.0, 2: 10.0, 3: 9.0}, {1: 10.0, 3: 10.0}, interleaved=True, looks=(8,)),
            point(4, {1: 40.0, 2: 19.5, 3: 9.0}, {1: 20.0, 2: 10.0}, interleaved=True, looks=(8,)),
        ]
    )
    for test in found.values():
        assert test.subject.cores == (1, 2, 4)
        assert (test.interleaved, test.looks, test.ratios) == (True, (8,), {})
        assert (test.base.filesystem, test.new.filesystem) == ("ext4", "xfs")
        # Of three repetitions of BASE two are whole, and of two of NEW one.
        assert (test.base.unusable, test.new.unusable) == (1, 1)
        assert (test.base.disturbed, test.new.disturbed) == (1, 0)
    assert (found[SPEEDUP].base.values, found[SPEEDUP].new.values) == ({1: 4, 2: 1.95}, {1: 2})
    assert found[PEAK].base.values == {1: 4, 2: 2}
    assert found[DOUBLING].base.values == pytest.approx({1: 2, 2: 1.95**0.5})
    assert found[DOUBLING].new.values == pytest.approx({1: 2**0.5})


def test_the_peak_is_reached_within_the_margin() -> None:
    cores = np.array([1.0, 2])
    assert peak_cores((cores, np.array([95.0, 100])), 0.05) == 1
    assert peak_cores((cores, np.array([94.9, 100])), 0.05) == 2


def test_no_more_repetitions_are_disturbed_than_there_are() -> None:
    points = [point(1, {1: 1.0}, {}), point(2, {2: 1.0}, {})]
    (found,) = curves(points).values()
    assert (found.base.values, found.base.disturbed, found.base.unusable) == ({}, 0, 1)


def test_pairs_of_a_curve_have_ratios_and_no_peak() -> None:
    own = {
        1: {1: PairRatio(0.1, 0.03, 7, 0.5), 2: PairRatio(0.5, 0.1), 3: PairRatio(0, 0)},
        2: {1: PairRatio(0.2, 0.05, 5, 0.2), 2: PairRatio(0.5, 0.1)},
        4: {1: PairRatio(0.4, 0.04, 9, 0.3), 2: PairRatio(0.5, 0.1)},
    }
    points = [point(n, {1: 1.0, 2: 1.0}, {1: 1.0, 2: 1.0}, ratios=own[n]) for n in own]
    found = curves(points)
    assert set(found) == {SPEEDUP, DOUBLING}
    speedup, doubling = found[SPEEDUP].ratios, found[DOUBLING].ratios
    assert set(speedup) == set(doubling) == {1, 2}
    # The last less the first; by least squares over log2 of 1, 2, 4 that is a half for a doubling.
    assert speedup[1].log == pytest.approx(0.3)
    assert speedup[1].error == pytest.approx(math.hypot(0.03, 0.04))
    assert (speedup[1].blocks, speedup[1].seconds) == (5, 0.5)
    assert doubling[1].log == pytest.approx(0.15)
    assert doubling[1].error == pytest.approx(math.hypot(0.03, 0.04) / 2)
    assert (speedup[2].log, doubling[2].log) == pytest.approx((0, 0))
    whole = [*points[:2], point(4, {1: 1.0}, {1: 1.0})]
    assert set(curves(whole)) == {SPEEDUP, DOUBLING, PEAK}
    assert curves(whole)[SPEEDUP].ratios == {}


def test_the_slope_of_pairs_is_by_least_squares() -> None:
    logs = {1: 0.0, 2: 0.0, 8: 0.7}
    points = [point(n, {1: 1.0}, {1: 1.0}, ratios={1: PairRatio(x, 0.1)}) for n, x in logs.items()]
    # x - mean: -4/3, -1/3, 5/3, of which the squares are 42/9.
    slope = curves(points)[DOUBLING].ratios[1]
    assert slope.log == pytest.approx(0.7 * (5 / 3) / (42 / 9))
    assert slope.error == pytest.approx(0.1 / math.sqrt(42 / 9))
