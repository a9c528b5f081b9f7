# SPDX-License-Identifier: GPL-2.0-only
"""Sliced pairs: what their blocks say, what the pairs say together, and how often that errs."""

import math
import random
import re

import numpy as np
import pytest

from fscale.analysis.compare.judge import judge
from fscale.analysis.compare.pairs import match_cells, pair
from fscale.analysis.compare.sequential import growing
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sliced import (
    centre,
    ratios_of,
)
from fscale.analysis.compare.wording import remark
from fscale.analysis.metrics import CPU_EFFICIENCY, SETTLED, THROUGHPUT, settled
from fscale.model.errors import FscaleError
from fscale.model.results import Cell, CellKey
from tests.support import synthetic
from tests.support.synthetic import sliced
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


@pytest.mark.slow
def test_a_small_change_is_found_in_few_pairs_and_no_change_is_none() -> None:
    rng = random.Random(5)
    tries = 60
    slower = [verdicts(run(6, -0.05, rng)) for _ in range(tries)]
    assert sum(v[THROUGHPUT] == "slower" for v in slower) >= 0.95 * tries
    nothing = [verdicts(run(10, 0, rng)) for _ in range(tries)]
    assert all(v[THROUGHPUT] in ("same", "undecided") for v in nothing)
    assert sum(v[THROUGHPUT] == "same" for v in nothing) > tries / 2


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


@pytest.mark.parametrize(("blocks", "found"), [(4, {"undecided"}), (5, {"slower"})])
def test_turns_without_a_ratio_are_no_whole_repetitions(blocks: int, found: set[str]) -> None:
    sides = run(12, -0.5, random.Random(9), blocks=blocks)
    tests = pair(match_cells(*sides), interleaved=True, metrics=SETTINGS.metrics).tests
    judged = judge(tests, SETTINGS, refuse=False)
    assert {one.verdict for one in judged} == found
    assert len(judged) == 2
    for one in judged if blocks < 5 else ():
        assert "no pair of turns has enough blocks for a ratio" in one.reason
    if blocks < 5:
        with pytest.raises(FscaleError):
            judge(tests, SETTINGS)


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
