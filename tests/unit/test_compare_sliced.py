# SPDX-License-Identifier: GPL-2.0-only
"""Sliced pairs: what their blocks say, what the pairs say together, and how often that errs."""

import math
import random
from collections.abc import Callable

import pytest

from analysis.compare.compare import AbRecord
from analysis.compare.curves import curve_tests
from analysis.compare.judge import judge
from analysis.compare.pairs import pair
from analysis.compare.sequential import growing
from analysis.compare.settings import CPU_EFFICIENCY, THROUGHPUT, Settings
from analysis.compare.sliced import LEAST_BLOCKS, PairRatio, paired, ratios_of
from fscale.model.errors import FscaleError
from fscale.model.results import Cell, CellKey, Slice
from tests.synthetic import cell

SETTINGS = Settings(margin=0.02, metrics=("throughput", "per-cpu-second"))


def key(side: str, repetition: int, cores: int = 1) -> CellKey:
    return CellKey(
        workload="DRBL", filesystem="ext4", medium="ram", mode="buffered", cores=cores,
        repetition=repetition, duration=1, side=side,
    )  # fmt: skip


def sliced(side: str, repetition: int, rates: list[float], cores: int = 1) -> Cell:
    """A cell whose block b ran at rates[b], in two turns of 20 ms, on a whole CPU."""
    turns = [
        Slice(block=block, ops=round(rate * 0.018), seconds=0.018, cpu_seconds=0.018)
        for block, rate in enumerate(rates)
        for _ in range(2)
    ]
    whole = cell(key(side, repetition, cores), sum(rates) / len(rates))
    return whole.model_copy(update={"slices": turns})


def run(
    pairs: int, change: float, rng: random.Random, *, blocks: int = 40, cores: int = 1
) -> tuple[list[Cell], list[Cell]]:
    """Pairs with 1% between them, 6% between blocks, and a neighbour in one block of ten."""
    sides: tuple[list[Cell], list[Cell]] = ([], [])
    for repetition in range(1, pairs + 1):
        drift = [1e6 * math.exp(rng.gauss(0, 0.3)) for _ in range(blocks)]
        for side, own, factor in (("A", sides[0], 1.0), ("B", sides[1], 1 + change)):
            layout = math.exp(rng.gauss(0, 0.007))
            rates = [
                factor * layout * d * math.exp(rng.gauss(0, 0.04)) * rng.choice([0.5] + [1] * 19)
                for d in drift
            ]
            own.append(sliced(side, repetition, rates, cores))
    return sides


def verdicts(sides: tuple[list[Cell], list[Cell]], looks: tuple[int, ...] = ()) -> dict[str, str]:
    tests = pair(*sides, interleaved=True, looks=looks, metrics=SETTINGS.metrics).tests
    return {j.metric: j.verdict for j in judge(tests, SETTINGS)}


def test_a_pairs_ratio_is_the_median_of_its_blocks() -> None:
    base = sliced("A", 1, [1e6] * 9)
    new = sliced("B", 1, [1.1e6] * 8 + [1e5])  # a neighbour in the last one
    found = ratios_of({1: base}, {1: new}, THROUGHPUT)[1]
    assert found.log == pytest.approx(math.log(1.1), abs=1e-4)
    half = new.model_copy(
        update={"slices": [s.model_copy(update={"cpu_seconds": 0.009}) for s in new.slices or ()]}
    )
    found = ratios_of({1: base}, {1: half}, CPU_EFFICIENCY)[1]
    assert found.log == pytest.approx(math.log(2.2), abs=1e-4)


def test_blocks_that_are_not_whole_do_not_count() -> None:
    base, new = (sliced(side, 1, [1e6] * LEAST_BLOCKS) for side in "AB")
    assert ratios_of({1: base}, {1: new}, THROUGHPUT)
    assert new.slices
    uncertain = [new.slices[0].model_copy(update={"seconds": 0.0}), *new.slices[1:]]
    broken = new.model_copy(update={"slices": uncertain})
    assert not ratios_of({1: base}, {1: broken}, THROUGHPUT)
    assert not ratios_of({1: base}, {2: new}, THROUGHPUT)


def test_pairs_that_agree_by_chance_are_no_better_than_their_blocks() -> None:
    close = {r: PairRatio(0.01, 0.02) for r in range(1, 5)}
    found = paired(close, None, 0.95)
    assert found.between == pytest.approx(0)
    assert found.effect.low < 1 < found.effect.high
    assert found.p > 0.3


def test_a_small_change_is_found_in_few_pairs_and_no_change_is_none() -> None:
    rng = random.Random(5)
    tries = 60
    slower = [verdicts(run(6, -0.05, rng)) for _ in range(tries)]
    assert sum(v[THROUGHPUT] == "slower" for v in slower) >= 0.95 * tries
    nothing = [verdicts(run(10, 0, rng)) for _ in range(tries)]
    assert all(v[THROUGHPUT] in ("same", "undecided") for v in nothing)
    assert sum(v[THROUGHPUT] == "same" for v in nothing) > tries / 2


def test_looking_again_costs() -> None:
    looks = growing(4, 20)
    assert looks == (4, 6, 8, 11, 15)
    rng = random.Random(6)
    sides = run(8, -0.05, rng)
    tests = [pair(*sides, interleaved=True, looks=own).tests for own in ((), looks)]
    once, again = (judge(own, SETTINGS)[-1] for own in tests)
    assert once.low is not None
    assert again.low is not None
    assert again.low < once.low
    assert again.p is not None
    assert once.p is not None
    assert again.p > once.p


def test_too_few_pairs_are_refused() -> None:
    sides = run(3, -0.05, random.Random(7))
    with pytest.raises(FscaleError, match="too few repetitions"):
        verdicts(sides)


def test_a_curve_of_pairs() -> None:
    rng = random.Random(8)
    points: dict[int, Callable[[], float]] = {1: lambda: 0.0, 2: lambda: -0.1, 4: lambda: -0.2}
    base, new = [], []
    for cores, change in points.items():
        a, b = run(6, change(), rng, cores=cores)
        base += a
        new += b
    tests = pair(base, new, interleaved=True, metrics=("throughput",)).tests
    curves = {t.metric: t for t in curve_tests(tests, 0.02)}
    assert set(curves) == {"speed-up", "gain-per-doubling"}
    speedup = paired(curves["speed-up"].ratios, None, 0.95).effect
    assert speedup.low < 0.8 < speedup.high
    gain = paired(curves["gain-per-doubling"].ratios, None, 0.95).effect
    assert gain.low < math.sqrt(0.8) < gain.high


def test_the_record_says_how_it_was_measured() -> None:
    record = AbRecord.model_validate(
        {"schema": 1, "base": "a", "new": "b", "looks": [], "slice_seconds": 0.02, "blocks": 40}
    )
    assert (record.slice_seconds, record.blocks) == (0.02, 40)
