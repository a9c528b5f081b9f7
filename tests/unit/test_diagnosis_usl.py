# SPDX-License-Identifier: GPL-2.0-only
"""The scaling law: known parameters come back, too few points are refused."""

import numpy as np
import pytest

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
