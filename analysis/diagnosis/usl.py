# SPDX-License-Identifier: GPL-2.0-only
"""The Universal Scalability Law (Gunther, "Guerrilla Capacity Planning", 2007, chapter 4).

X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)), where X is throughput, N the core count,
lambda the throughput of one core, sigma the contention (serial share) and kappa the coherency
(cost of each pair of cores agreeing on shared data).
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import lmfit
import numpy as np
from numpy.typing import NDArray

from fscale.model.errors import FscaleError

FEWEST = 4  # distinct core counts: three parameters, and one to disagree
_TWO_SIGMA = 2


@dataclass(frozen=True)
class Parameter:
    """A fitted value and its 95% interval; None where the data does not bound it."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Fit:
    """A fitted curve; `lam` is lambda, in the unit of the throughput."""

    lam: Parameter
    sigma: Parameter
    kappa: Parameter
    r_squared: float

    @property
    def peak(self) -> float | None:
        """The core count with the highest predicted throughput; None when it never falls."""
        if self.kappa.value <= 0 or self.sigma.value >= 1:
            return None if self.kappa.value <= 0 else 1.0
        return max(1.0, math.sqrt((1 - self.sigma.value) / self.kappa.value))

    def predict(self, cores: float) -> float:
        """Throughput at a core count."""
        return float(law(np.array([cores]), self.lam.value, self.sigma.value, self.kappa.value)[0])


def law(cores: NDArray[np.float64], lam: float, sigma: float, kappa: float) -> NDArray[np.float64]:
    """Throughput at each core count."""
    result: NDArray[np.float64] = (
        lam * cores / (1 + sigma * (cores - 1) + kappa * cores * (cores - 1))
    )
    return result


def fit(cores: Sequence[float], rates: Sequence[float]) -> Fit:
    """Least squares with lambda > 0, sigma >= 0 and kappa >= 0; one pair for each repetition.

    Raises FscaleError with fewer than 4 distinct core counts, or when nothing fits.
    """
    x, y = np.asarray(cores, float), np.asarray(rates, float)
    if len(x) != len(y) or not np.all(np.isfinite(x) & np.isfinite(y) & (x >= 1) & (y > 0)):
        raise FscaleError("the scaling law needs positive throughputs at 1 or more cores")
    if len(np.unique(x)) < FEWEST:
        raise FscaleError(
            f"the scaling law has three parameters: measure at {FEWEST} or more core counts "
            f"(there are {len(np.unique(x))})"
        )
    unit = float(np.max(y))
    model = lmfit.Model(law, independent_vars=["cores"])
    parameters = model.make_params(
        lam={"value": float(np.median(y / x)) / unit, "min": 1e-12},
        sigma={"value": 0.05, "min": 0, "max": 10},
        kappa={"value": 0.001, "min": 0, "max": 10},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Relative errors: throughputs spread in proportion to their size.
        result = model.fit(y / unit, parameters, cores=x, weights=unit / y)
        if not result.success:
            raise FscaleError(f"the scaling law does not fit: {result.message}")
        intervals = _intervals(result)
    found = {
        name: Parameter(
            result.params[name].value * scale,
            *(None if edge is None else edge * scale for edge in intervals[name]),
        )
        for name, scale in (("lam", unit), ("sigma", 1.0), ("kappa", 1.0))
    }
    predicted = law(x, *(found[name].value for name in ("lam", "sigma", "kappa")))
    left, spread = float(np.sum((y - predicted) ** 2)), float(np.sum((y - np.mean(y)) ** 2))
    return Fit(**found, r_squared=1 - left / spread if spread else 1.0)


def _intervals(result: lmfit.model.ModelResult) -> dict[str, tuple[float | None, float | None]]:
    """95% intervals: by the F test, else two standard errors; cut off at the bounds."""
    try:
        traced = result.conf_interval(sigmas=[_TWO_SIGMA])
        return {
            name: (_edge(points[0][1], parameter), _edge(points[-1][1], parameter))
            for name, points in traced.items()
            for parameter in [result.params[name]]
        }
    except (lmfit.MinimizerException, ValueError, ZeroDivisionError, KeyError, AttributeError):
        pass
    intervals: dict[str, tuple[float | None, float | None]] = {}
    for name, parameter in result.params.items():
        error = parameter.stderr
        if error is None or not math.isfinite(error):
            intervals[name] = (None, None)
        else:
            low = max(parameter.min, parameter.value - _TWO_SIGMA * error)
            intervals[name] = (low, parameter.value + _TWO_SIGMA * error)
    return intervals


def _edge(value: float, parameter: lmfit.Parameter) -> float | None:
    if math.isfinite(value):
        return float(value)
    return float(parameter.min) if value < 0 and math.isfinite(parameter.min) else None
