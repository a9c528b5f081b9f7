# SPDX-License-Identifier: GPL-2.0-only
"""Rare operations count: a pause in one turn of ten is never "same", however the others look."""

import numpy as np
import pytest

from fscale.analysis.compare.meanrate import Work, mean_change
from tests.support.pauses import LONGER, LOST, SHORT, WORK, judged


@pytest.mark.parametrize("workers", [1, 2, 16])
@pytest.mark.parametrize("pause", [0.005, 0.02, 0.03, 0.1, 0.3])
@pytest.mark.parametrize("lengths", [SHORT[:6], SHORT], ids=["six", "twenty-one"])
def test_pauses_are_never_same(workers: int, pause: float, lengths: list[float]) -> None:
    verdicts = [
        judged(seed, workers, pause, lengths).verdict for seed in range(4 if workers < 16 else 1)
    ]
    assert set(verdicts) <= {"slower", "undecided"}


@pytest.mark.parametrize("pause", [0.02, 0.1, 0.3])
def test_pauses_are_not_same_in_longer_turns_either(pause: float) -> None:
    verdicts = [judged(seed, 1, pause, LONGER, blocks=16).verdict for seed in range(20)]
    assert "same" not in verdicts
    assert pause > 0.05 or verdicts.count("slower") > 10


def test_a_pause_of_twenty_milliseconds_is_found_by_the_mean_rate_alone() -> None:
    found = [judged(seed, 1, 0.02, SHORT) for seed in range(10)]
    slower = [j for j in found if j.verdict == "slower"]
    assert len(slower) >= 7
    for j in slower:
        assert "typical turns change by" in j.reason
        assert j.low is not None and j.high is not None
        assert j.low < 1 - LOST < j.high


def test_an_operation_longer_than_a_turn_weighs_what_it_costs() -> None:
    means = [judged(seed, 16, 0.1, SHORT).mean_ratio for seed in range(3)]
    assert np.mean(np.array(means)) == pytest.approx(1 - LOST, abs=0.02)


def test_same_needs_as_much_work_as_shows_rare_pauses() -> None:
    short = judged(1, 1, 0, SHORT)
    assert (short.verdict, short.rare_operations) == ("undecided", True)
    assert "do not exclude rare pauses of up to 300 ms" in short.reason
    assert short.work_seconds is not None and short.work_seconds < WORK
    longer = judged(1, 1, 0, LONGER)
    assert (longer.verdict, longer.rare_operations) == ("same", False)
    assert longer.work_seconds is not None and longer.work_seconds > WORK


def test_nothing_changed_raises_no_alarm() -> None:
    verdicts = {judged(seed, 2, 0, SHORT[:6]).verdict for seed in range(100)}
    assert verdicts == {"undecided"}


def work(ops: float, seconds: float) -> tuple[Work]:
    return (Work(1000, 1.0, ops, seconds, seconds),)


def test_the_mean_rate_is_of_sums() -> None:
    pairs = {1: work(1000, 1.0), 2: work(1000, 1.0), 3: work(500, 1.5)}
    found = mean_change(pairs, 0.95)
    assert found is not None
    assert found.effect.ratio == pytest.approx((2500 / 3.5) / 1000)
    assert found.effect.low < found.effect.ratio < found.effect.high
    assert found.work == pytest.approx(3.5)


def test_without_operations_there_is_no_mean_rate() -> None:
    assert mean_change({1: work(0, 1.0), 2: work(0, 1.0)}, 0.95) is None
    assert mean_change({1: work(10, 1.0)}, 0.95) is None
    assert mean_change({1: (), 2: ()}, 0.95) is None
