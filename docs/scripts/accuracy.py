# SPDX-License-Identifier: GPL-2.0-only
"""Errors of predictors over curves: their sizes compared, and how many an interval holds."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scipy import stats

from docs.scripts.evidence import Case, Name
from docs.scripts.predictors import FROM_TWO, Predictor
from fscale.analysis.prediction import rule


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
    means = [statistics.fmean(found) for found in by_workload.values()]
    low, high = stats.ttest_1samp(means, 0).confidence_interval()
    return Gain(statistics.fmean(means), float(low), float(high))


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
