# SPDX-License-Identifier: GPL-2.0-only
"""Curves of docs/results/data whose truth is known, and what is predicted of them.

Rates are medians; no speed-up is divided by a control.
"""

import csv
import json
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from docs.scripts import sides
from fscale.analysis.skill import Curve

DATA = Path(__file__).resolve().parents[1] / "results/data"
KERNEL_OF_TODAY = "7.2"
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
    return _packed("simulated-today", KERNEL_OF_TODAY)


@cache
def of_more_filesystems() -> Curves:
    """FxMark's workloads on XFS and btrfs on the simulated machine of the paper."""
    return _packed("simulated-xfs-btrfs")


def _packed(name: str, kernel: str = "") -> Curves:
    """The curves of docs.scripts.pack_simulated on the kernel whose name begins so."""
    made: dict[Name, dict[int, float]] = defaultdict(dict)
    for its_kernel, workload, filesystem, cores, rate, *_ in _read(name)["points"]:
        if its_kernel.startswith(kernel):
            made[workload, filesystem][cores] = rate
    return made


SIMULATIONS = {
    "simulated-speed-ups": of_the_paper,
    "simulated-today": of_today,
    "simulated-xfs-btrfs": of_more_filesystems,
}
"""name in docs/results/data -> its curves"""


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
