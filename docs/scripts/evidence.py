# SPDX-License-Identifier: GPL-2.0-only
"""Predictions of measured curves of docs/results/data from fewer of their cores.

Rates are medians; no speed-up is divided by a control. `python -m docs.scripts.evidence` writes the
record from which `fscale predict` takes its intervals.
"""

import csv
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from docs.scripts import sides
from fscale.analysis.diagnosis import usl
from fscale.analysis.prediction import rule
from fscale.analysis.prediction.record import FILE, MISFIT_LEVEL, Quantity, Target
from fscale.analysis.skill import Curve, amdahl

DATA = Path(__file__).resolve().parents[1] / "results/data"
KERNEL_OF_TODAY = "7.2"
SCALED = "simulated, scaled"
MEAN = "geometric mean"
Name = tuple[str, str]
"""workload and file system"""
Curves = Mapping[Name, Curve]


@dataclass(frozen=True)
class Case:
    """A curve that is predicted: measured at few cores, simulated at many, and the truth."""

    name: Name
    measured: Curve
    simulated: Curve
    truth: Curve

    def error(self, predicted: float, cores: int) -> float:
        """The natural logarithm of a predicted speed-up by that of the truth."""
        return math.log(predicted / speedup(self.truth, cores))

    def rate_error(self, predicted: float, cores: int) -> float:
        """The natural logarithm of a predicted rate by the true one."""
        return math.log(predicted / self.truth[cores])


def speedup(curve: Curve, cores: int) -> float:
    """The throughput of `cores` by that of the fewest."""
    return curve[cores] / curve[min(curve)]


def _up_to(curve: Curve, most: int) -> Curve:
    return {cores: rate for cores, rate in curve.items() if cores <= most}


def _amdahl(case: Case, cores: int) -> float:
    return amdahl({2: speedup(case.measured, 2)})(cores)


def _law(case: Case, cores: int) -> float:
    known = _up_to(case.measured, 8)
    fit = usl.fit(list(known), list(known.values()))
    return fit.predict(cores) / case.measured[min(case.measured)]


def _mean(*predicted: float) -> float:
    return statistics.geometric_mean(predicted)


Predictor = Callable[[Case, int], float]
FROM_TWO: dict[str, Predictor] = {
    "simulated": lambda case, n: speedup(case.simulated, n),
    "Amdahl's law": _amdahl,
    MEAN: lambda case, n: _mean(speedup(case.simulated, n), _amdahl(case, n)),
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


def _read(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text())


def measured(name: str) -> Curves:
    """The curves of a measured run, without controls."""
    return sides.curves(_read(name)["cells"])[0]


@cache
def of_the_paper() -> Curves:
    """FxMark's workloads on the simulated machine of the paper; thousands of operations."""
    with (DATA / "simulated-speed-ups.csv").open() as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return {
            (row["workload"], row["filesystem"]): {
                cores: float(row["rate_1"]) * (1 if cores == 1 else float(row[f"x{cores}"]))
                for cores in (1, 2, 4, 8, 16, 32, 64, 80)
            }
            for row in rows
        }


@cache
def of_today() -> Curves:
    """The operations of today on the simulated machine of the paper, newest kernel."""
    made: dict[Name, dict[int, float]] = defaultdict(dict)
    for kernel, workload, filesystem, cores, rate, *_ in _read("simulated-today")["points"]:
        if kernel.startswith(KERNEL_OF_TODAY):
            made[workload, filesystem][cores] = rate
    return made


def _cases(start: Curves, simulated: Curves, truth: Curves) -> list[Case]:
    return [
        Case(name, start[name], simulated[name], truth[name])
        for name in sorted(start.keys() & simulated.keys() & truth.keys())
    ]


def without_truth(start: Curves, simulated: Curves) -> list[Case]:
    """Curves that nobody has measured at more cores than the start."""
    return _cases(start, simulated, {name: {} for name in start})


@cache
def fxmark() -> list[Case]:
    """FxMark's workloads on sixteen cores, from fewer cores of the same run."""
    real = measured("sixteen-cores")
    return _cases(real, of_the_paper(), real)


@cache
def held_out() -> list[Case]:
    """Twenty operations of today on sixteen cores, from fewer cores of the same run."""
    real = measured("held-out-sixteen-cores")
    return _cases(real, of_today(), real)


@cache
def of_another() -> list[Case]:
    """FxMark's workloads on sixteen cores, from another machine that has two."""
    return _cases(measured("quick-two-cores"), of_the_paper(), measured("sixteen-cores"))


@cache
def calibrated() -> list[Case]:
    """The curves that were simulated with latencies of the machine itself, at 1, 8 and 16 cores."""
    after = sides.curves(_read("simulated-sixteen-cores")["sides"]["after"]["cells"])[0]
    ahead = sides.curves(_read("simulated-held-out")["sides"]["simulated"]["cells"])[0]
    real = measured("sixteen-cores"), measured("held-out-sixteen-cores")
    return [*_cases(real[0], after, real[0]), *_cases(real[1], ahead, real[1])]


def same_machine() -> list[Case]:
    """All curves of sixteen cores that are predicted from fewer cores of the same run."""
    return [*fxmark(), *held_out()]


@dataclass(frozen=True)
class Gain:
    """How much smaller the errors of one predictor are than those of another."""

    mean: float
    """of the workloads' means, in natural logarithms; above 0: smaller errors"""
    low: float
    high: float
    """95% interval by Student's t over workloads"""


def errors(cases: Iterable[Case], predictor: Predictor, cores: int) -> dict[Name, float]:
    """The error of each curve that the truth has at a core count."""
    return {
        case.name: case.error(predictor(case, cores), cores)
        for case in cases
        if cores in case.truth and cores in case.simulated
    }


def gain(of: Mapping[Name, float], over: Mapping[Name, float]) -> Gain:
    """Compare the sizes of errors on the same curves; curves of a workload count as one."""
    by_workload: dict[str, list[float]] = defaultdict(list)
    for name, error in of.items():
        by_workload[name[0]].append(abs(over[name]) - abs(error))
    test = stats.ttest_1samp([statistics.fmean(found) for found in by_workload.values()], 0)
    low, high = test.confidence_interval()
    return Gain(float(np.mean([low, high])), float(low), float(high))


def chosen(cases: Sequence[Case], cores: int) -> dict[str, str]:
    """Workload -> the predictor from two cores with the smallest mean error on the other ones."""
    found = {name: errors(cases, predictor, cores) for name, predictor in FROM_TWO.items()}
    return {
        left_out: min(
            found,
            key=lambda name: statistics.fmean(
                abs(error) for (workload, _), error in found[name].items() if workload != left_out
            ),
        )
        for left_out in {case.name[0] for case in cases}
    }


def doubt(cases: Iterable[Case], predictor: Predictor, cores: int) -> float:
    """Rank correlation (Spearman) of misfits at two cores and errors, both without signs."""
    known = list(cases)
    found = errors(known, predictor, cores)
    misfits = {case.name: rule.misfit(case.measured, case.simulated, 2) for case in known}
    sizes = [(abs(misfits[name]), abs(error)) for name, error in found.items()]
    return float(stats.spearmanr(sizes).statistic)


@dataclass(frozen=True)
class Coverage:
    """How many intervals contained the truth."""

    curves: int
    held: int
    width: float
    """median half-width, as a natural logarithm"""


def left_out(found: Mapping[Name, float]) -> Coverage:
    """Cover each curve by an interval from the curves of all other workloads."""
    widths = {
        name: rule.half_width(error for other, error in found.items() if other[0] != name[0])
        for name in found
    }
    return _coverage(found, widths)


def transferred(found: Mapping[Name, float], from_others: Mapping[Name, float]) -> Coverage:
    """Cover curves by intervals from other curves."""
    return _coverage(found, dict.fromkeys(found, rule.half_width(from_others.values())))


def _coverage(found: Mapping[Name, float], widths: Mapping[Name, float]) -> Coverage:
    held = sum(abs(error) <= widths[name] for name, error in found.items())
    return Coverage(len(found), held, statistics.median(widths.values()))


def record() -> dict[Target, Any]:
    """The contents of fscale/analysis/prediction/record.json."""
    return {
        "this machine": _recorded(same_machine(), (2, 4, 8)),
        "another machine": _recorded(of_another(), (2,)),
    }


def _recorded(cases: Sequence[Case], anchors: Sequence[int]) -> dict[str, Any]:
    of: dict[Quantity, Callable[[Case, int, int], float]] = {
        "speedup": lambda case, at, n: case.error(
            rule.speedup(case.measured, case.simulated, at, n), n
        ),
        "rate": lambda case, at, n: case.rate_error(
            rule.scaled(case.measured, case.simulated, at, n), n
        ),
    }
    return {
        "widths": {
            quantity: {
                at: {n: _width(error(case, at, n) for case in cases) for n in _beyond(at)}
                for at in anchors
            }
            for quantity, error in of.items()
        },
        "misfits": {
            at: round(
                rule.half_width(
                    (rule.misfit(case.measured, case.simulated, at) for case in cases), MISFIT_LEVEL
                ),
                3,
            )
            for at in anchors
        },
    }


def _width(found: Iterable[float]) -> float:
    return round(rule.half_width(found), 3)


def _beyond(at: int) -> list[int]:
    return [cores for cores in (4, 8, 16) if cores > at]


def record_text() -> str:
    """The text of the record's file."""
    return json.dumps(record(), indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(record_text())
