# SPDX-License-Identifier: GPL-2.0-only
"""Rare operations count: a pause in one turn of ten is never "same", however the others look."""

from collections.abc import Iterable, Iterator

import numpy as np
import pytest

from fscale.analysis.compare.judge import judge
from fscale.analysis.compare.meanrate import Work, mean_change, work_needed
from fscale.analysis.compare.model import Judgement, Subject
from fscale.analysis.compare.observations import Observations, Test
from fscale.analysis.compare.sequential import growing
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sliced import FIRST_LOOK, ratios_of
from fscale.analysis.metrics import THROUGHPUT
from fscale.model.results import Cell, Slice
from tests.support.synthetic import cell, key

OPERATION = 5e-5
RAMP = 0.1
LOST = 1 / 11
"""of the time, where a pause comes after ten times its length of work"""


def worker(
    rng: np.random.Generator, length: float, pause: float, every: float
) -> tuple[float, float]:
    """Operations and seconds of one worker in a turn, as microbench/core/slices.c counts them.

    The operation under way when the ramp ends counts by its part, the one at the end as a whole.
    """
    begin, now, ops, seconds = RAMP * length, 0.0, 0.0, 0.0
    while now < length:
        step = min(rng.exponential(every), length - now)
        counted = max(0.0, now + step - max(now, begin))
        ops, seconds, now = ops + counted / OPERATION, seconds + counted, now + step
        if now < length:
            counted = max(0.0, now + pause - max(now, begin))
            ops, seconds, now = ops + counted / pause, seconds + counted, now + pause
    return ops, seconds


def turns(
    rng: np.random.Generator, workers: int, pause: float, length: float, blocks: int
) -> Iterator[Slice]:
    """The turns of a side; without a pause all work at nearly the same rate."""
    for block in range(blocks):
        for _ in range(2):
            each = [worker(rng, length, pause or 1e-9, pause * 10 or 1e9) for _ in range(workers)]
            ops, seconds = np.sum(each, axis=0)
            seconds *= np.exp(rng.normal(0, 0.01)) / workers
            yield Slice(block=block, ops=round(ops), seconds=seconds, cpu_seconds=seconds)


WORK = work_needed(Settings().pause)


def judged(
    seed: int, workers: int, pause: float, lengths: Iterable[float], blocks: int = 16
) -> Judgement:
    """The verdict on pairs with turns of these lengths, whose new side has pauses."""
    rng = np.random.default_rng(seed)
    sides: list[dict[int, Cell]] = [{}, {}]
    for number, length in enumerate(lengths, 1):
        for side, own in zip(sides, (0.0, pause), strict=True):
            slices = list(turns(rng, workers, own, length, blocks))
            side[number] = cell(key(number, cores=workers), 1000, slices=slices)
    ratios = ratios_of(*sides, THROUGHPUT)
    values = Observations("ext4", dict.fromkeys(ratios, 1e6))
    subject = Subject(
        workload="DRBL", filesystem="ext4", medium="ram", mode="buffered", cores=(workers,),
        duration=1,
    )  # fmt: skip
    looks = growing(FIRST_LOOK, len(ratios))
    (judgement,) = judge(
        [Test(subject, THROUGHPUT, values, values, True, looks, ratios)], Settings()
    )
    return judgement


SHORT = [0.01] * 21
LONGER = [0.01] * 6 + [0.1] * 9


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
