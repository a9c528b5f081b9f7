# SPDX-License-Identifier: GPL-2.0-only
"""How a point developed from run to run, and where it made a step."""

import itertools
import sqlite3
from collections import Counter
from dataclasses import dataclass

import numpy as np
import ruptures
import scipy
from numpy.typing import NDArray

FEWEST_RUNS = 6
SEGMENT = 2
PENALTY = 3.0


@dataclass(frozen=True)
class Value:
    """The median of one run."""

    run: str
    started: str
    revision: str | None
    median: float


@dataclass(frozen=True)
class Step:
    """Between two runs the level changed by `ratio`; `first` is the first run after it."""

    first: Value
    ratio: float


@dataclass(frozen=True)
class Trend:
    """One point's values in the order of the runs, and its steps."""

    subject: str
    metric: str
    values: list[Value]
    steps: list[Step]


def trends(
    index: sqlite3.Connection,
    metric: str,
    workload: str | None,
    filesystem: str | None,
    margin: float,
) -> list[Trend]:
    """The trends of all points that were measured by themselves, not as a side of `fscale ab`.

    Figures of two machines, of two kinds of guest, or of two definitions of a cell are two trends.
    """
    rows = index.execute(
        "SELECT subject, machine, definition, run.name, started, revision, median"
        " FROM point JOIN run ON run.id = run_id"
        " WHERE metric = :metric AND side = ''"
        " AND :workload IN ('', workload) AND :filesystem IN ('', filesystem)"
        " ORDER BY subject, started, run.id",
        {"metric": metric, "workload": workload or "", "filesystem": filesystem or ""},
    )
    series: dict[tuple[str, str, str], list[Value]] = {}
    for subject, machine, definition, *value in rows:
        series.setdefault((subject, machine, definition), []).append(Value(*value))
    several = Counter((subject, machine) for subject, machine, _ in series)
    return [
        Trend(
            f"{subject} on {machine}"
            + (f", definition {definition}" if several[subject, machine] > 1 else ""),
            metric,
            values,
            steps(values, margin),
        )
        for (subject, machine, definition), values in series.items()
    ]


def steps(values: list[Value], margin: float) -> list[Step]:
    """Where the level changes by more than the margin; none with fewer than six runs.

    PELT (Killick, Fearnhead and Eckley, J. Am. Stat. Assoc. 107, 2012) on logarithms in units of
    their own noise, which is the deviation of successive differences: a step does not inflate it.
    """
    if len(values) < FEWEST_RUNS:
        return []
    logs: NDArray[np.float64] = np.log([v.median for v in values])
    noise = float(scipy.stats.median_abs_deviation(np.diff(logs), scale="normal")) / np.sqrt(2)
    noise = max(noise, margin / 100)
    found = ruptures.Pelt(model="l2", min_size=SEGMENT, jump=1).fit(logs / noise)
    ends = found.predict(pen=PENALTY * 2 * np.log(len(values)))
    edges = [0, *ends]
    levels = [float(np.median(logs[a:b])) for a, b in itertools.pairwise(edges)]
    return [
        Step(values[edge], float(np.exp(after - before)))
        for edge, before, after in zip(ends, levels, levels[1:], strict=False)
        if abs(after - before) > -np.log1p(-margin)
    ]
