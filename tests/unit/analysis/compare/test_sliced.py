# SPDX-License-Identifier: GPL-2.0-only
"""Sliced pairs: what their blocks say, what the pairs say together, and how often that errs."""

import math
import random
import re
from collections.abc import Callable

import numpy as np
import pytest

from fscale.analysis.compare.curves import curve_tests
from fscale.analysis.compare.judge import judge, running
from fscale.analysis.compare.pairs import match_cells, pair
from fscale.analysis.compare.sequential import growing
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import AbRecord
from fscale.analysis.compare.sliced import (
    MIN_BLOCKS,
    PairRatio,
    centre,
    paired,
    pairs_needed,
    ratios_of,
    smallest_change,
)
from fscale.analysis.compare.wording import remark
from fscale.analysis.metrics import CPU_EFFICIENCY, INSTRUCTIONS, SETTLED, THROUGHPUT, settled
from fscale.model.errors import FscaleError
from fscale.model.results import Cell, CellKey
from tests.support import synthetic
from tests.support.synthetic import cell, sliced
from tests.support.synthetic_sides import decided, sliced_test

SETTINGS = Settings(metrics=("throughput", "per-cpu-second"), pause=0)


def key(side: str, repetition: int, cores: int = 1) -> CellKey:
    return synthetic.key(repetition, cores=cores, side=side)


def side_of(side: str, repetition: int, rates: list[float], cores: int = 1) -> Cell:
    return sliced(key(side, repetition, cores), rates)


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
            own.append(side_of(side, repetition, rates, cores))
    return sides


def verdicts(sides: tuple[list[Cell], list[Cell]], looks: tuple[int, ...] = ()) -> dict[str, str]:
    tests = pair(
        match_cells(*sides), interleaved=True, pair_looks=looks, metrics=SETTINGS.metrics
    ).tests
    return {j.metric: j.verdict for j in judge(tests, SETTINGS)}


def test_a_pairs_ratio_leaves_out_what_is_far_out() -> None:
    base = side_of("A", 1, [1e6] * 9)
    new = side_of("B", 1, [1.1e6] * 8 + [1e5])  # a neighbour in the last one
    found = ratios_of({1: base}, {1: new}, THROUGHPUT)[1]
    assert found.log == pytest.approx(math.log(1.1), abs=1e-4)
    half = new.model_copy(
        update={"slices": [s.model_copy(update={"cpu_seconds": 0.009}) for s in new.slices or ()]}
    )
    found = ratios_of({1: base}, {1: half}, CPU_EFFICIENCY)[1]
    assert found.log == pytest.approx(math.log(2.2), abs=1e-4)


def settling(side: str, repetition: int, settle: float) -> Cell:
    """A side of which each turn of 18 ms is followed by a syncfs() of `settle` seconds."""
    cell = side_of(side, repetition, [1e6] * 9)
    turns = [s.model_copy(update={"settle_seconds": settle}) for s in cell.slices or ()]
    return cell.model_copy(update={"slices": turns})


def test_what_is_put_off_is_a_rate_of_its_own() -> None:
    """Twice as much put off: nothing of it is in the turns, and all in the settled rate."""
    base = [settling("A", n, 0.006) for n in range(1, 9)]
    new = [settling("B", n, 0.012) for n in range(1, 9)]
    tests = {t.metric: t for t in pair(match_cells(base, new), interleaved=True).tests}
    assert set(tests) == {THROUGHPUT, CPU_EFFICIENCY, SETTLED}
    assert {round(r.log, 9) for r in tests[THROUGHPUT].ratios.values()} == {0}
    ratio = math.log(0.024 / 0.030)
    assert [r.log for r in tests[SETTLED].ratios.values()] == pytest.approx([ratio] * 8)
    assert tests[SETTLED].base.values[1] == pytest.approx(1e6 * 0.018 / 0.024)
    verdict = {
        j.metric: (j.verdict, j.ratio) for j in judge(list(tests.values()), Settings(pause=0))
    }
    assert verdict[SETTLED] == ("slower", pytest.approx(0.8))
    assert verdict[THROUGHPUT][0] == "same"


def test_a_turn_that_was_not_settled_is_no_part_of_the_settled_rate() -> None:
    good = settling("A", 1, 0.006)
    first, second, *others = good.slices or ()
    odd = [
        first.model_copy(update={"settle_seconds": 0.0, "ops": 10**9}),
        second.model_copy(update={"seconds": 0.0, "ops": 10**9}),
    ]
    found = settled(good.model_copy(update={"slices": [*odd, *others]}))
    assert found == pytest.approx(settled(good))
    assert settled(side_of("A", 1, [1e6] * 9)) is None


def test_the_instructions_of_each_pair_are_a_ratio_without_error() -> None:
    def counting(side: str, counts: dict[int, float | None]) -> dict[int, Cell]:
        return {
            n: cell(key(side, n), 1e6).model_copy(update={"counts": c and {"instructions": c}})
            for n, c in counts.items()
        }

    base = counting("A", {1: None, 2: 500, 3: 600, 4: 700})
    new = counting("B", {1: 510, 2: 510, 3: 600, 5: 1})
    found = ratios_of(base, new, INSTRUCTIONS)
    assert found == {2: PairRatio(pytest.approx(math.log(1.02)), 0.0), 3: PairRatio(0.0, 0.0)}


def test_what_does_not_settle_has_no_settled_rate() -> None:
    sides = ([side_of(side, n, [1e6] * 9) for n in range(1, 9)] for side in "AB")
    assert SETTLED not in {t.metric for t in pair(match_cells(*sides), interleaved=True).tests}


def test_the_centre_of_hodges_and_lehmann() -> None:
    # The means of all pairs are 1, 1.5, 2, 2, 2.5, 3, 5.5, 6, 6.5, 10.
    assert centre(np.array([1.0, 2.0, 3.0, 10.0])) == pytest.approx(2.75)
    assert centre(np.array([0.3])) == 0.3
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(4000, 20))
    spread = np.std([centre(own) for own in noise])
    assert spread == pytest.approx(math.sqrt(math.pi / 3 / 20), rel=0.04)
    noise[:, :5] += 100  # a quarter
    assert abs(np.mean([centre(own) for own in noise])) < 1


def test_how_much_so_many_pairs_show() -> None:
    # One pair's deviation 1%, nine pairs, t(8) of 0.5% on each side and of 95%: 3.3554 + 1.8595.
    assert smallest_change(0.01, 9, 0.01, 0.95) == pytest.approx(1 - math.exp(-0.052149 / 3), 1e-4)
    # t(5, 0.5%) is 4.0321, over the root of six 1.646; t(6, 0.5%) is 3.7074, over that of 7 1.401.
    assert pairs_needed(0.01, 0.984, 0.01, 0.01, 0.95) == 7
    assert pairs_needed(0.01, 1 / 0.984, 0.01, 0.01, 0.95) == 7
    assert pairs_needed(0.01, 0.9999, 0.01, 0.01, 0.95) == 7  # the interval: 2.4469 / 2.6458 < 1
    assert pairs_needed(0.5, 1, 0.001, 0.01, 0.95) is None


def test_blocks_that_are_not_whole_do_not_count() -> None:
    base, new = (side_of(side, 1, [1e6] * MIN_BLOCKS) for side in "AB")
    assert ratios_of({1: base}, {1: new}, THROUGHPUT)
    assert new.slices
    uncertain = [new.slices[0].model_copy(update={"seconds": 0.0}), *new.slices[1:]]
    broken = new.model_copy(update={"slices": uncertain})
    assert not ratios_of({1: base}, {1: broken}, THROUGHPUT)
    assert not ratios_of({1: base}, {2: new}, THROUGHPUT)


def test_pairs_that_agree_by_chance_are_no_better_than_their_blocks() -> None:
    close = {r: PairRatio(0.01, 0.02, 10, 0.018) for r in range(1, 5)}
    found = paired(close, None, 0.95)
    assert found.between == pytest.approx(0)
    assert found.effect.low < 1 < found.effect.high
    assert found.p > 0.3


@pytest.mark.slow
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
    tests = [
        pair(match_cells(*sides), interleaved=True, pair_looks=own).tests for own in ((), looks)
    ]
    once, again = (judge(own, SETTINGS)[-1] for own in tests)
    assert once.low is not None
    assert again.low is not None
    assert again.low < once.low
    assert again.p is not None
    assert once.p is not None
    assert again.p > once.p


def test_too_few_pairs_are_refused() -> None:
    sides = run(3, -0.05, random.Random(7))
    with pytest.raises(FscaleError, match=r"at most 3.* 4.*--max-minutes"):
        verdicts(sides)


def test_the_result_says_how_it_was_measured() -> None:
    sides = run(6, 0, random.Random(9), blocks=12)
    tests = pair(match_cells(*sides), interleaved=True, metrics=SETTINGS.metrics).tests
    (judgement,) = (j for j in judge(tests, SETTINGS) if j.metric == THROUGHPUT)
    assert (judgement.pairs, judgement.blocks) == (6, 12)
    assert judgement.slice_seconds == pytest.approx(0.018)
    assert judgement.margin == SETTINGS.slice_margin
    assert re.search(r"6 pairs of 12 blocks of 18 ms\b.* [\d.]+% between", remark(judgement))
    whole = [[c.model_copy(update={"slices": None}) for c in side] for side in sides]
    for one in judge(pair(match_cells(*whole), interleaved=True).tests, SETTINGS, refuse=False):
        assert (one.pairs, one.blocks, one.margin) == (None, None, SETTINGS.margin)


def test_a_running_interval_pays_for_the_look_to_come() -> None:
    sides = run(7, 0, random.Random(10))
    cut = [[c for c in side if c.key.repetition <= 6] for side in sides]
    tests = [pair(match_cells(*own), pair_looks=(6, 8)).tests[-1] for own in (cut, sides)]
    first, later = (running(test, SETTINGS) for test in tests)
    assert first is not None
    assert later is not None
    assert first == paired(tests[0].ratios, None, 1 - 0.05 / 2).effect
    assert later == paired(tests[1].ratios, None, 1 - 0.05 / 6).effect
    (one,) = pair(match_cells(*[side[:1] for side in sides]), metrics=("throughput",)).tests
    assert running(one, SETTINGS) is None


def test_a_curve_of_pairs() -> None:
    rng = random.Random(8)
    points: dict[int, Callable[[], float]] = {1: lambda: 0.0, 2: lambda: -0.1, 4: lambda: -0.2}
    base, new = [], []
    for cores, change in points.items():
        a, b = run(6, change(), rng, cores=cores)
        base += a
        new += b
    tests = pair(match_cells(base, new), interleaved=True, metrics=("throughput",)).tests
    curves = {t.metric: t for t in curve_tests(tests, 0.02)}
    assert set(curves) == {"speed-up", "gain-per-doubling"}
    speedup = paired(curves["speed-up"].ratios, None, 0.95).effect
    assert speedup.low < 0.8 < speedup.high
    gain = paired(curves["gain-per-doubling"].ratios, None, 0.95).effect
    assert gain.low < math.sqrt(0.8) < gain.high


def test_the_record_has_the_looks_of_both_ways() -> None:
    given = {"schema": 1, "base": "a", "new": "b", "looks": [10]}
    assert AbRecord.model_validate(given).pair_looks == []
    assert AbRecord.model_validate(given | {"pair_looks": [6, 8]}).pair_looks == [6, 8]


def test_a_simulated_run_ends_at_the_look_that_decides() -> None:
    rng = np.random.default_rng(1)
    looks = growing(6, 21)
    ends = [
        decided(sliced_test("cell", 21, deviation, change, rng), looks, SETTINGS)
        for deviation, change in ((0.005, 0.2), (0.005, -0.2), (0.002, 0), (0.01, 0.035), (0.2, 0))
    ]
    assert ends[:3] == [("slower", 6), ("faster", 6), ("same", 6)]
    assert ends[3][0] == "slower"
    assert ends[4] == ("undecided", 21)
