# SPDX-License-Identifier: GPL-2.0-only
"""Scores of predicted curves, worked out by hand."""

import math

import pytest

from fscale.analysis import skill
from fscale.analysis.skill import Pair


def pair(predicted: list[float], measured: list[float]) -> Pair:
    counts = (1, 8, 16)
    return Pair(
        "DWOM",
        "ext4",
        dict(zip(counts, predicted, strict=True)),
        dict(zip(counts, measured, strict=True)),
    )


def test_speedups_are_divided_by_the_control() -> None:
    rates = {1: 10.0, 8: 40.0, 16: 60.0}
    assert skill.speedups(rates) == {1: 1.0, 8: 4.0, 16: 6.0}
    control = {1: 100.0, 8: 800.0, 16: 1200.0}
    assert skill.speedups(rates, control) == {1: 1.0, 8: 4.0, 16: pytest.approx(8.0)}


def test_errors_are_logarithms_without_the_base() -> None:
    found = pair([1, 2, 4], [1, 4, 4]).errors
    assert found == {8: pytest.approx(-math.log(2)), 16: 0.0}


def test_peak_and_slope() -> None:
    assert skill.peak({1: 1.0, 8: 3.0, 16: 3.0}) == 8
    assert [skill.slope({8: 1.0, 16: last}) for last in (2.0, 1.0, 0.5)] == [1, 0, -1]


def test_contended_is_below_half_of_linear() -> None:
    assert pair([1, 2, 4], [1, 6, 7.9]).contended
    assert not pair([1, 2, 4], [1, 6, 8.0]).contended


def test_a_score() -> None:
    found = skill.score(
        [
            pair([1, 2, 2], [1, 2, 1]),  # twice too much; slope wrong, both have their peak at 8
            pair([1, 0.5, 0.25], [1, 0.5, 0.25]),
            pair([1, 3, 4], [1, 3, 8]),
        ]
    )
    assert (found.curves, found.slopes, found.peaks) == (3, 2, 3)
    assert found.error == pytest.approx(math.log(2))
    assert found.signed == pytest.approx(0.0)


def test_amdahl_goes_through_one_and_two_cores() -> None:
    law = skill.amdahl({2: 1.6})
    assert [law(1), law(2)] == [pytest.approx(1), pytest.approx(1.6)]
    assert skill.amdahl({2: 0.8})(16) < 0.8
    assert skill.amdahl({2: 2.5})(16) == pytest.approx(16)


def test_trivial_predictors() -> None:
    made = skill.trivial([pair([1, 9, 9], [1, 2, 4])], {("DWOM", "ext4"): 1.0})
    assert made["linear"][0].predicted == {1: 1.0, 8: 8.0, 16: 16.0}
    assert set(made["flat"][0].predicted.values()) == {1.0}
    assert set(made["Amdahl's law"][0].predicted.values()) == {1.0}
    assert made["linear"][0].measured == {1: 1, 8: 2, 16: 4}


def test_only_what_both_sides_have_is_matched() -> None:
    predicted = {("A", "x"): {1: 1.0, 8: 4.0, 80: 9.0}, ("B", "x"): {1: 1.0, 8: 2.0}}
    measured = {("A", "x"): {1: 2.0, 4: 4.0, 8: 4.0}, ("C", "x"): {1: 1.0, 8: 2.0}}
    (only,) = skill.matched(predicted, measured)
    assert (only.workload, only.predicted, only.measured) == (
        "A",
        {1: 1.0, 8: 4.0},
        {1: 1.0, 8: 2.0},
    )
