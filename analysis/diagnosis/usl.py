# SPDX-License-Identifier: GPL-2.0-only
"""The Universal Scalability Law (Gunther, "Guerrilla Capacity Planning", 2007, chapter 4).

X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)), where X is throughput, N the core count,
lambda the throughput of one core, sigma the contention (serial share) and kappa the coherency
(cost of each pair of cores agreeing on shared data).

N / X is linear in 1/lambda, sigma/lambda and kappa/lambda, none of which is negative: least squares
under that bound give a first guess, and each step of Gauss and Newton from there.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, nnls
from scipy.special import fdtri

from fscale.model.errors import FscaleError

Array = NDArray[np.float64]

FEWEST = 4  # distinct core counts: three parameters, and one to disagree
MOST = 10.0  # of sigma and kappa, far beyond where a law that only falls still says anything
COVERED = math.erf(2 / math.sqrt(2))  # two standard deviations: 95.4%
EXACT = 1e-20  # of a mean squared relative error: what rounding leaves of none
FAR = 1e6  # lambdas over the highest rate, or below it: the data does not bound it
STEPS, HALVINGS, NEAR = 100, 30, 1e-12  # of the search, and what its last step gains


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


def law(cores: Array, lam: float, sigma: float, kappa: float) -> Array:
    """Throughput at each core count."""
    result: Array = lam * cores / (1 + sigma * (cores - 1) + kappa * cores * (cores - 1))
    return result


def fit(cores: Sequence[float], rates: Sequence[float]) -> Fit:
    """Least squares with lambda > 0, sigma >= 0 and kappa >= 0; one pair for each repetition.

    Errors are relative: throughputs spread in proportion to their size. An interval is what the F
    test does not reject of one parameter with the others at their best (Bates and Watts, "Nonlinear
    Regression Analysis and Its Applications", 1988, section 6.1), cut off at the bounds.

    Raises FscaleError with fewer than 4 distinct core counts.
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
    best = _best(x, y / unit)
    found = {}
    for name, scale in (("lam", unit), ("sigma", 1.0), ("kappa", 1.0)):
        low, high = _interval(x, y / unit, best, name)
        found[name] = Parameter(best[name] * scale, low * scale, high and high * scale)
    wrong = float(np.sum((y - law(x, *(found[name].value for name in best))) ** 2))
    spread = float(np.sum((y - np.mean(y)) ** 2))
    return Fit(**found, r_squared=1 - wrong / spread if spread else 1.0)


def _best(x: Array, y: Array) -> dict[str, float]:
    held: dict[str, float] = {}
    found = _search(x, y, held)
    while over := [name for name in ("sigma", "kappa") if found[name] > MOST]:
        held[over[0]] = MOST
        found = _search(x, y, held)
    return found


def _squares(x: Array, y: Array, found: dict[str, float]) -> float:
    return float(np.sum((law(x, **found) / y - 1) ** 2))


def _search(x: Array, y: Array, held: dict[str, float]) -> dict[str, float]:
    """The best lam, sigma and kappa, of which some are `held`; rates are up to 1."""
    costs = {"sigma": x - 1, "kappa": x * (x - 1)}
    own = 1 + sum((held[name] * costs[name] for name in held if name != "lam"), np.zeros_like(x))
    free = [name for name in costs if name not in held]
    known = own / held["lam"] if "lam" in held else np.zeros_like(x)
    first = [] if "lam" in held else [own]
    columns = np.stack([*first, *(costs[name] for name in free)], axis=1)

    def solved(weight: Array, target: Array) -> Array:
        found = nnls(columns * weight[:, None], target)[0]
        if first:
            found[0] = max(found[0], 1 / FAR)
        return found

    def left(tried: Array) -> tuple[Array, Array, float]:
        cost = known + columns @ tried  # N / X
        ratio = x / (y * cost)
        return cost, ratio, float(np.sum((ratio - 1) ** 2))

    now = solved(y / x, 1 - known * y / x)
    cost, ratio, least = left(now)
    for _ in range(STEPS):
        slope = ratio / cost
        step = solved(slope, ratio - 1 + slope * (columns @ now)) - now
        for _ in range(HALVINGS):
            cost, ratio, squares = left(now + step)
            if squares < least:
                break
            step = step / 2
        else:
            break
        gained, now, least = least - squares, now + step, squares
        if gained <= NEAR * least:
            break
    each = dict(zip([*(["lam"] if first else []), *free], now.tolist(), strict=True))
    lam = held.get("lam") or 1 / each["lam"]
    return {"lam": lam} | {n: held[n] if n in held else lam * each[n] for n in costs}


def _interval(x: Array, y: Array, best: dict[str, float], name: str) -> tuple[float, float | None]:
    """What the F test does not reject; from a bound on, and None, where it rejects nothing."""
    more, value, least = len(x) - len(best), best[name], _squares(x, y, best)
    if least <= EXACT * len(x):
        return value, value
    limit = least * (1 + float(fdtri(1, more, COVERED)) / more)

    def over(tried: float) -> float:
        return _squares(x, y, _search(x, y, {name: tried})) - limit

    least_bound, most_bound = (1 / FAR, FAR) if name == "lam" else (0.0, MOST)
    low = least_bound
    if value > least_bound and over(least_bound) > 0:
        low = float(brentq(over, least_bound, value, xtol=1e-12, rtol=1e-6))
    inside, step = value, max(value / 8, 1e-6)
    while inside < most_bound:
        outside = min(inside + step, most_bound)
        if over(outside) > 0:
            return low, float(brentq(over, inside, outside, xtol=1e-12, rtol=1e-6))
        inside, step = outside, 4 * step
    return low, None
