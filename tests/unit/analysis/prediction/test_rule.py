# SPDX-License-Identifier: GPL-2.0-only
"""The rule of a prediction and the width of its interval, worked out by hand."""

import math

import pytest

from docs.scripts.record import record_text
from fscale.analysis.prediction import rule
from fscale.analysis.prediction.record import FILE, Record, Width, records

MEASURED = {1: 100.0, 2: 150.0}
SIMULATED = {1: 10.0, 2: 20.0, 8: 60.0, 16: 400.0}


def test_the_anchor_is_the_most_cores_that_both_have() -> None:
    assert rule.anchor(MEASURED, SIMULATED) == 2
    assert rule.anchor({1: 1.0, 2: 1.0, 4: 1.0}, SIMULATED) == 2
    assert rule.anchor(MEASURED, {1: 1.0, 8: 1.0}) is None
    assert rule.anchor({2: 1.0}, SIMULATED) is None  # the base alone


def test_the_curves_meet_at_the_anchor() -> None:
    assert rule.scaled(MEASURED, SIMULATED, 2, 2) == 150
    assert rule.scaled(MEASURED, SIMULATED, 2, 8) == 450


def test_a_speedup_is_at_most_linear() -> None:
    assert rule.speedup(MEASURED, SIMULATED, 2, 8) == 4.5
    assert rule.speedup(MEASURED, SIMULATED, 2, 16) == 16
    beside_a_writer = {2: 100.0, 4: 300.0}
    assert rule.speedup(beside_a_writer, {2: 1.0, 4: 3.0, 8: 90.0}, 4, 8) == 7


def test_a_misfit_has_the_sign_of_the_measurement() -> None:
    assert rule.misfit(MEASURED, SIMULATED, 2) == pytest.approx(math.log(1.5 / 2))


def test_a_half_width_is_an_error_of_the_right_rank() -> None:
    nine = [0.1, -0.2, 0.3, -0.4, 0.5, -0.6, 0.7, -0.8, 0.9]
    assert rule.half_width(nine, 0.8) == 0.8  # the 8th of 9: 0.8 of 10
    assert rule.half_width(nine, 0.9) == 0.9
    assert rule.half_width(nine, 0.95) == math.inf


def test_intervals_hold_as_many_as_they_say() -> None:
    """Of any numbers, the share that intervals from all others hold is the level at least."""
    errors = [math.sin(n) for n in range(1, 40)]
    held = sum(
        abs(error) <= rule.half_width([*errors[:n], *errors[n + 1 :]])
        for n, error in enumerate(errors)
    )
    assert 0.8 * len(errors) <= held <= 0.8 * len(errors) + 2


RECORD = Record({"speedup": {2: {4: 0.2, 8: 0.5, 16: 0.3}, 4: {16: 0.1}}}, {2: 0.7, 4: 0.8})


@pytest.mark.parametrize(
    ("anchor", "cores", "width"),
    [
        (2, 4, Width(0.2, True)),
        (2, 6, Width(0.5, True)),
        (2, 16, Width(0.5, True)),  # not known better than 8
        (2, 32, Width(0.5, False)),  # 0.3 * 4 / 3 is less
        (2, 128, Width(0.6, False)),  # 6 doublings instead of 3
        (4, 16, Width(0.1, True)),
        (3, 6, Width(0.2, False)),  # as from 2 to 4
        (8, 32, Width(0.1, False)),  # as from 4 to 16
    ],
)
def test_a_width_is_that_of_the_record_or_extended(anchor: int, cores: int, width: Width) -> None:
    found = RECORD.width("speedup", anchor, cores)
    assert (found.log, found.recorded) == (pytest.approx(width.log), width.recorded)


def test_the_misfit_is_that_of_the_largest_known_anchor() -> None:
    assert [RECORD.misfit(anchor) for anchor in (2, 3, 4, 16)] == [0.7, 0.7, 0.8, 0.8]


def test_the_record_is_made_of_the_committed_data() -> None:
    assert FILE.read_text() == record_text(), "run `make generated`"
    assert records().keys() == {"this machine", "another machine"}
