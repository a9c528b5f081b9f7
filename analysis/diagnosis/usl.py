# SPDX-License-Identifier: GPL-2.0-only
"""The Universal Scalability Law (Gunther, "Guerrilla Capacity Planning", 2007, chapter 4).

X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)), where X is throughput, N the core count,
lambda the throughput of one core, sigma the contention (serial share) and kappa the coherency
(cost of each pair of cores agreeing on shared data).

N / X is linear in 1/lambda, sigma/lambda and kappa/lambda, none of which is negative: non-negative
least squares give a first guess, and then each Gauss-Newton step.

Repetitions at one core count show how well the throughput there is known; only other core counts
show whether the law has the right shape. So repetitions give the pure error against which the lack
of fit is tested, and the unit of the intervals is a core count (Draper and Smith, "Applied
Regression Analysis", 3rd edition, 1998, sections 2.1 and 2.2).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, nnls
from scipy.special import fdtrc, fdtri

from fscale.model.errors import FscaleError

Array = NDArray[np.float64]

MIN_COUNTS = 4  # distinct core counts: three parameters, and one to test them
MOST = 10.0  # upper bound of sigma and kappa, far beyond useful values
COVERED = math.erf(2 / math.sqrt(2))  # two standard deviations: 95.4%
EXACT = 1e-20  # a mean squared relative error up to this is rounding
FAR = 1e6  # if lambda exceeds the highest rate by this factor, or is as far below, it is unbounded
STEPS, HALVINGS, NEAR = 100, 30, 1e-12  # limits of the search, and the gain at which it stops
REJECTED_BELOW = 0.01  # p of the lack-of-fit test
MATTERS_FROM = 0.05  # a law may deviate by this much at a core count, even if significantly


@dataclass(frozen=True)
class Parameter:
    """A fitted value and its 95% interval; an end is None if the data does not bound it."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Lack:
    """The deviation of the law from the throughputs at single core counts."""

    worst: float
    """the largest relative deviation of the law from the measurement at a core count"""
    p: float | None
    """p of the lack-of-fit test against the spread of repetitions; None without repetitions"""

    @property
    def fits(self) -> bool:
        """Whether the law has the shape of the curve.

        It does not if it deviates by more than `MATTERS_FROM` at a core count and the test rejects
        it. Without repetitions a deviation cannot be told from noise, so its size alone decides.
        """
        return self.worst <= MATTERS_FROM or (self.p is not None and self.p >= REJECTED_BELOW)


@dataclass(frozen=True)
class Fit:
    """A fitted curve; `lam` is lambda, in the unit of the throughput."""

    lam: Parameter
    sigma: Parameter
    kappa: Parameter
    r_squared: float
    most: float
    """the highest core count that was measured"""
    lack: Lack

    @property
    def extrapolated(self) -> bool:
        """Whether the peak lies beyond the highest measured core count."""
        return self.peak is not None and self.peak > self.most

    @property
    def peak(self) -> float | None:
        """The core count with the highest predicted throughput; None if it never falls."""
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

    Errors are relative, because the spread of throughputs is proportional to their size. An
    interval has the values of one parameter that the F test does not reject with the others at
    their optimum (Bates and Watts, "Nonlinear Regression Analysis and Its Applications", 1988,
    section 6.1), cut off at the bounds. The error in that test is the mean square of the lack of
    fit, with a degree of freedom for each core count beyond three, or the pure error of the
    repetitions, whichever makes the interval wider.

    Raises FscaleError with fewer than 4 distinct core counts.
    """
    x, y = np.asarray(cores, float), np.asarray(rates, float)
    if len(x) != len(y) or not np.all(np.isfinite(x) & np.isfinite(y) & (x >= 1) & (y > 0)):
        raise FscaleError("the scaling law needs positive throughputs at 1 or more cores")
    if len(np.unique(x)) < MIN_COUNTS:
        raise FscaleError(
            "the scaling law has three parameters, but there are only "
            f"{len(np.unique(x))} core counts; measure at {MIN_COUNTS} or more core counts"
        )
    unit = float(np.max(y))
    best = _best(x, y / unit)
    errors = _Errors.of(x, y / unit, best)
    fits = {}
    for name, scale in (("lam", unit), ("sigma", 1.0), ("kappa", 1.0)):
        low, high = interval(x, y / unit, best, name, errors.allowed)
        fits[name] = Parameter(best[name] * scale, low * scale, high and high * scale)
    wrong = float(np.sum((y - law(x, *(fits[name].value for name in best))) ** 2))
    spread = float(np.sum((y - np.mean(y)) ** 2))
    return Fit(
        **fits,
        r_squared=1 - wrong / spread if spread else 1.0,
        most=float(np.max(x)),
        lack=errors.lack(best),
    )


@dataclass(frozen=True)
class _Errors:
    """The squared relative errors of a law, split into lack of fit and pure error."""

    counts: Array
    means: Array  # at each count the throughput with the least squares
    lacking: float
    pure: float
    spare: int  # repetitions beyond one at each count

    @classmethod
    def of(cls, x: Array, y: Array, best: dict[str, float]) -> "_Errors":
        counts, where = np.unique(x, return_inverse=True)
        n, once, twice = (np.bincount(where, weights=y**-power) for power in (0.0, 1.0, 2.0))
        pure = max(0.0, float(np.sum(n - once**2 / twice)))
        if pure <= EXACT * len(x):
            pure = 0.0
        lacking = max(0.0, _squares(x, y, best) - pure)
        if lacking <= EXACT * len(x):
            lacking = 0.0
        return cls(counts, once / twice, lacking, pure, len(x) - len(counts))

    @property
    def allowed(self) -> float:
        """The allowed increase of the squares within an interval."""
        more = len(self.counts) - 3
        allowed = float(fdtri(1, more, COVERED)) * self.lacking / more
        if self.spare:
            allowed = max(allowed, float(fdtri(1, self.spare, COVERED)) * self.pure / self.spare)
        return allowed

    def lack(self, best: dict[str, float]) -> Lack:
        """The test of Draper and Smith; a parameter at its bound does not count as fitted."""
        worst = float(np.max(np.abs(law(self.counts, **best) / self.means - 1)))
        if not self.spare:
            return Lack(worst, None)
        if not self.lacking or not self.pure:
            return Lack(worst, 0.0 if self.lacking else 1.0)
        more = len(self.counts) - 1 - sum(0 < best[name] < MOST for name in ("sigma", "kappa"))
        ratio = (self.lacking / more) / (self.pure / self.spare)
        return Lack(worst, float(fdtrc(more, self.spare, ratio)))


def _best(x: Array, y: Array) -> dict[str, float]:
    held: dict[str, float] = {}
    solution = _search(x, y, held)
    while over := [name for name in ("sigma", "kappa") if solution[name] > MOST]:
        held[over[0]] = MOST
        solution = _search(x, y, held)
    return solution


def _squares(x: Array, y: Array, parameters: dict[str, float]) -> float:
    return float(np.sum((law(x, **parameters) / y - 1) ** 2))


def _search(x: Array, y: Array, held: dict[str, float]) -> dict[str, float]:
    """The best lam, sigma and kappa with those in `held` fixed; rates are at most 1."""
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


def interval(
    x: Array, y: Array, best: dict[str, float], name: str, rise: float
) -> tuple[float, float | None]:
    """The range of a parameter in which the squares rise by at most `rise`.

    Rates are at most 1. If the range is not limited by the data, its low end is the bound, and its
    high end is None.
    """
    value, least = best[name], _squares(x, y, best)
    if rise <= EXACT * len(x):
        return value, value
    limit = least + rise

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
