# SPDX-License-Identifier: GPL-2.0-only
"""Predictors of a speed-up: the rule of `fscale predict`, and those that it is compared with."""

import statistics
from collections.abc import Callable

from docs.scripts.evidence import Case, speedup
from fscale.analysis.diagnosis import usl
from fscale.analysis.prediction import rule
from fscale.analysis.skill import amdahl

SIMULATED = "simulated"
AMDAHL = "Amdahl's law"
MEAN = "geometric mean"
SCALED = "simulated, scaled"


def _amdahl(case: Case, cores: int) -> float:
    return amdahl({2: speedup(case.measured, 2)})(cores)


def _law(case: Case, cores: int) -> float:
    known = {n: rate for n, rate in case.measured.items() if n <= 8}
    fit = usl.fit(list(known), list(known.values()))
    return fit.predict(cores) / case.measured[min(case.measured)]


def _mean(case: Case, cores: int) -> float:
    return statistics.geometric_mean([speedup(case.simulated, cores), _amdahl(case, cores)])


Predictor = Callable[[Case, int], float]
FROM_TWO: dict[str, Predictor] = {
    SIMULATED: lambda case, n: speedup(case.simulated, n),
    AMDAHL: _amdahl,
    MEAN: _mean,
    "flat from 2": lambda case, _: speedup(case.measured, 2),
    SCALED: lambda case, n: rule.speedup(case.measured, case.simulated, 2, n),
}
"""predictors of a speed-up from one and two measured cores"""
FROM_MORE: dict[str, Predictor] = {
    "flat from 4": lambda case, _: speedup(case.measured, 4),
    "flat from 8": lambda case, _: speedup(case.measured, 8),
    "universal scalability law through 1, 2, 4, 8": _law,
    "simulated, scaled to 4": lambda case, n: rule.speedup(case.measured, case.simulated, 4, n),
    "simulated, scaled to 8": lambda case, n: rule.speedup(case.measured, case.simulated, 8, n),
}
"""those that need more of them"""
