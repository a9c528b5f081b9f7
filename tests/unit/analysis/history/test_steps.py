# SPDX-License-Identifier: GPL-2.0-only
"""Changes of level in made-up histories: found where they are, and nowhere else."""

import numpy as np
import pytest
from numpy.typing import NDArray

from fscale.analysis.history.steps import edges

Array = NDArray[np.float64]
MARGIN = 0.05
SERIES = 200


def series(levels: list[float], noise: float, seed: int) -> Array:
    """Log-normal noise around the levels."""
    rng = np.random.default_rng(seed)
    return np.array(levels) * np.exp(rng.normal(0, noise, len(levels)))


def bad_runs(count: int, share: float, seed: int) -> Array:
    """A level with 2% of noise, on which some runs lose a quarter."""
    rng = np.random.default_rng(seed)
    values = 100 * np.exp(rng.normal(0, 0.02, count))
    values[rng.random(count) < share] *= 0.75
    return values


def drifting(count: int, seed: int) -> Array:
    """Each run resembles the one before: an AR(1) of 0.5 with 3% of noise in all."""
    rng = np.random.default_rng(seed)
    noise = [rng.normal(0, 0.03)]
    for own in rng.normal(0, 0.03 * np.sqrt(0.75), count - 1):
        noise.append(0.5 * noise[-1] + own)
    return np.array(100 * np.exp(noise))


@pytest.mark.parametrize("size", [0.8, 0.9, 1.15, 3.0])
@pytest.mark.parametrize("place", [5, 15, 26])
def test_a_step_is_found_at_its_run(size: float, place: int) -> None:
    levels = [100.0] * place + [100.0 * size] * (30 - place)
    found = [edges(series(levels, 0.01, seed), MARGIN) for seed in range(20)]
    assert sum(one == [place] for one in found) >= 19, found


def test_two_steps_are_two() -> None:
    levels = [100.0] * 12 + [80.0] * 12 + [100.0] * 12
    assert edges(series(levels, 0.01, 1), MARGIN) == [12, 24]


def test_the_newest_step_is_seen_after_three_runs() -> None:
    levels = [100.0] * 27 + [80.0] * 3
    found = [edges(series(levels, 0.02, seed), MARGIN) for seed in range(50)]
    assert sum(one == [27] for one in found) >= 45


@pytest.mark.parametrize("count", [6, 10, 30, 100])
@pytest.mark.parametrize("noise", [0.001, 0.02, 0.06])
def test_noise_alone_has_no_step(count: int, noise: float) -> None:
    """ALPHA is 1% a series: of 200 series 7 or more have a false step once in 200 times or so."""
    false = sum(bool(edges(series([100.0] * count, noise, s), MARGIN)) for s in range(SERIES))
    assert false <= 6


@pytest.mark.parametrize("count", [10, 30, 60])
def test_a_bad_run_is_no_step(count: int) -> None:
    for place in range(count):
        values = series([100.0] * count, 0.01, place)
        values[place] *= 0.5
        assert edges(values, MARGIN) == [], place


def test_bad_runs_here_and_there_are_no_steps() -> None:
    false = sum(bool(edges(bad_runs(30, 0.05, seed), MARGIN)) for seed in range(SERIES))
    assert false <= SERIES // 10


def test_runs_that_resemble_their_neighbours_seldom_have_a_step() -> None:
    false = sum(bool(edges(drifting(30, seed), MARGIN)) for seed in range(SERIES))
    assert false <= SERIES // 8


def test_a_step_within_the_margin_is_none() -> None:
    levels = [100.0] * 20 + [97.0] * 20
    assert edges(series(levels, 0.001, 1), MARGIN) == []
    assert edges(series(levels, 0.001, 1), 0.02) == [20]


def test_figures_that_never_differ_have_no_step() -> None:
    assert edges(np.full(30, 12.5), MARGIN) == []
    assert edges(np.array([100.0] * 15 + [90.0] * 15), MARGIN) == [15]


@pytest.mark.parametrize("count", range(6))
def test_too_few_runs_have_none(count: int) -> None:
    assert edges(np.array([100.0, 100, 50, 50, 50])[:count], MARGIN) == []
