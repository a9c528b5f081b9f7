# SPDX-License-Identifier: GPL-2.0-only
"""Turns of simulated workers, one side of which pauses once in a while, and the verdict on them."""

from collections.abc import Iterable, Iterator

import numpy as np

from fscale.analysis.compare.judge import judge
from fscale.analysis.compare.meanrate import work_needed
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
