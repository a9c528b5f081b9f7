# SPDX-License-Identifier: GPL-2.0-only
"""The scaling law: known parameters come back, too few points are refused."""

import math
from types import SimpleNamespace
from typing import Any

import lmfit
import numpy as np
import pytest
from scipy.optimize import curve_fit

from analysis.diagnosis import usl
from fscale.model.errors import FscaleError

CORES = np.array([1, 2, 4, 8, 16, 32, 64], float)


def test_known_parameters_come_back_inside_their_intervals() -> None:
    noise = np.random.default_rng(7).normal(1, 0.01, (3, len(CORES)))
    rates = usl.law(CORES, 50_000, 0.04, 0.0006) * noise
    found = usl.fit(np.tile(CORES, 3).tolist(), rates.ravel().tolist())
    for parameter, truth in ((found.lam, 50_000), (found.sigma, 0.04), (found.kappa, 0.0006)):
        assert parameter.low is not None
        assert parameter.high is not None
        assert parameter.low <= truth <= parameter.high
        assert parameter.value == pytest.approx(truth, rel=0.15)
    assert found.peak == pytest.approx(np.sqrt(0.96 / 0.0006), rel=0.1)
    assert found.predict(1) == pytest.approx(50_000, rel=0.03)
    assert found.r_squared > 0.99


def test_a_linear_curve_has_no_contention_and_no_early_peak() -> None:
    found = usl.fit(CORES.tolist(), (1000 * CORES).tolist())
    assert found.sigma.value == pytest.approx(0, abs=1e-6)
    assert found.peak is None or found.peak > 1000


@pytest.mark.parametrize("cores", [[1, 2, 4], [1, 1, 2, 2, 3, 3], [1], []])
def test_fewer_than_four_core_counts_are_refused(cores: list[float]) -> None:
    with pytest.raises(FscaleError, match="4 or more core counts"):
        usl.fit(cores, [100.0] * len(cores))


def test_nonsense_is_refused() -> None:
    with pytest.raises(FscaleError):
        usl.fit([1, 2, 4, 8], [1, float("nan"), 3, 4])
    with pytest.raises(FscaleError):
        usl.fit([1, 2, 4, 8], [1, 2, 0, 4])
    with pytest.raises(FscaleError) as caught:
        usl.fit([0.5, 2, 4, 8], [1, 2, 3, 4])
    assert str(caught.value) == "the scaling law needs positive throughputs at 1 or more cores"
    with pytest.raises(FscaleError, match="positive throughputs"):
        usl.fit([1, 2, 4, 8], [1, 2, 3])
    with pytest.raises(FscaleError) as caught:
        usl.fit([1, 2, 2, 4], [1, 2, 2, 4])
    assert str(caught.value) == (
        "the scaling law has three parameters: measure at 4 or more core counts (there are 3)"
    )


def test_the_law_by_hand() -> None:
    # 2 / (1 + 0.1 x 1 + 0.01 x 2 x 1), 4 / (1 + 0.1 x 3 + 0.01 x 4 x 3)
    expected = [10, 10 * 2 / 1.12, 10 * 4 / 1.42]
    assert usl.law(np.array([1.0, 2, 4]), 10, 0.1, 0.01) == pytest.approx(expected)


def of(sigma: float, kappa: float) -> usl.Fit:
    s, k = (usl.Parameter(value, None, None) for value in (sigma, kappa))
    return usl.Fit(usl.Parameter(10, None, None), s, k, r_squared=1)


def test_the_peak_of_a_law() -> None:
    assert of(0.5, 0.0).peak is None
    assert of(1.5, 0.0).peak is None
    assert of(1.0, 0.1).peak == 1.0
    assert of(0.1, 0.009).peak == pytest.approx(10)
    assert of(0.1, 3.6).peak == 1.0
    assert of(0.1, 0.01).predict(2) == pytest.approx(20 / 1.12)


def test_an_exact_curve_gives_its_parameters_back() -> None:
    rates = usl.law(CORES, 5000, 0.1, 0.002)
    found = usl.fit(CORES.tolist(), rates.tolist())
    assert found.lam.value == pytest.approx(5000, rel=1e-4)
    assert found.sigma.value == pytest.approx(0.1, rel=1e-3)
    assert found.kappa.value == pytest.approx(0.002, rel=1e-3)
    assert found.r_squared == pytest.approx(1)


def test_the_fit_is_the_least_squares_of_relative_errors() -> None:
    rates = usl.law(CORES, 5000, 0.04, 0.001) * np.random.default_rng(3).normal(1, 0.05, len(CORES))
    found = usl.fit(CORES.tolist(), rates.tolist())
    theirs, _ = curve_fit(usl.law, CORES, rates, (5000, 0.05, 0.001), sigma=rates)
    values = [found.lam.value, found.sigma.value, found.kappa.value]
    assert values == pytest.approx(theirs, rel=1e-3)
    left = np.sum((rates - usl.law(CORES, *theirs)) ** 2) / np.sum((rates - rates.mean()) ** 2)
    assert found.r_squared == pytest.approx(1 - left, rel=1e-4)


def test_a_flat_curve_has_nothing_to_explain() -> None:
    found = usl.fit([1, 2, 4, 8], [7.0] * 4)
    assert found.r_squared == 1.0
    assert found.sigma.value == pytest.approx(1, rel=0.01)


def test_a_curve_that_only_falls_stays_within_the_bounds() -> None:
    found = usl.fit([1, 2, 4, 8], [1000.0, 10, 5, 1])
    assert 0 <= found.sigma.value <= 10
    assert 0 <= found.kappa.value <= 10


def traced(intervals: Any, **stderr: float | None) -> Any:
    """A result of lmfit, with intervals (or what goes wrong with them) and standard errors."""

    def conf_interval(sigmas: list[float]) -> Any:
        assert sigmas == [2]
        if isinstance(intervals, Exception):
            raise intervals
        return intervals

    params = {
        name: SimpleNamespace(value=1.0, min=0.9 if name == "near" else -math.inf, stderr=error)
        for name, error in stderr.items()
    }
    return SimpleNamespace(params=params, conf_interval=conf_interval)


def test_intervals_are_the_traced_ones_cut_off_at_the_bounds() -> None:
    points = [(0.95, 0.5), (0, 1.0), (0.95, 2.0)]
    open_ended = [(0.95, -math.inf), (0, 1.0), (0.95, math.inf)]
    found = traced({"far": points, "near": open_ended, "low": open_ended}, far=1, near=1, low=1)
    assert usl._intervals(found) == {"far": (0.5, 2.0), "near": (0.9, None), "low": (None, None)}


@pytest.mark.parametrize(
    "error",
    [
        lmfit.MinimizerException("x"),
        ValueError(),
        ZeroDivisionError(),
        KeyError(),
        AttributeError(),
    ],
)
def test_what_cannot_be_traced_is_two_standard_errors_wide(error: Exception) -> None:
    found = traced(error, far=0.25, near=0.25, unknown=None, odd=math.nan)
    assert usl._intervals(found) == {
        "far": (0.5, 1.5), "near": (0.9, 1.5), "unknown": (None, None), "odd": (None, None),
    }  # fmt: skip
