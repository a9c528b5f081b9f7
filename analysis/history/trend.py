# SPDX-License-Identifier: GPL-2.0-only
"""The trend of a point over runs, with its steps."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fscale.analysis.history.distinction import tell_apart
from fscale.analysis.history.index import definitions
from fscale.analysis.history.steps import edges
from fscale.analysis.metrics import LATENCIES


@dataclass(frozen=True)
class TrendValue:
    """The value of one run: median of `n` repetitions and their spread, in the metric's unit.

    `build` is the kernel's `uname -v`, empty if the run does not record it.
    """

    path: str
    run: str
    started: str
    revision: str | None
    kernel: str
    build: str
    median: float
    low: float
    high: float
    n: int
    disturbed: int


@dataclass(frozen=True)
class Step:
    """Between the runs `last` and `first` the level changed by `ratio`, from `before` to `after`.

    Each level is the median of all runs between this step and the next one on that side.
    """

    last: TrendValue
    first: TrendValue
    before: float
    after: float
    ratio: float
    worse: bool


@dataclass(frozen=True)
class SeriesKey:
    """The properties that a curve's trends share; figures of two places are never mixed."""

    workload: str
    filesystem: str
    circumstances: str
    machine: str
    definition: str
    unit: str


@dataclass(frozen=True)
class Trend:
    """One point's values in the order of the runs, and its steps."""

    subject: str
    metric: str
    place: SeriesKey
    differs: str
    """the facts in which its definition differs from others of the same point; empty: none does"""
    cores: int
    values: list[TrendValue]
    steps: list[Step]


def trends(
    index: sqlite3.Connection,
    metric: str,
    workload: str | None = None,
    filesystem: str | None = None,
    margin: float = 0.05,
) -> list[Trend]:
    """The trends of all points that were not measured as a side of `fscale ab`.

    Two machines, two kinds of guest, or two definitions of a cell give two trends.
    """
    rows = index.execute(
        "SELECT subject, cores, workload, filesystem, place, machine, definition,"
        " unit, path, run.name, started, revision, kernel, build, median, low, high, n, disturbed"
        " FROM point JOIN run ON run.id = run_id"
        " WHERE metric = :metric AND side = ''"
        " AND workload = coalesce(:workload, workload)"
        " AND filesystem = coalesce(:filesystem, filesystem)"
        " ORDER BY workload, filesystem, place, cores, started, run.id",
        {"metric": metric, "workload": workload, "filesystem": filesystem},
    )
    series: dict[tuple[str, int, SeriesKey], list[TrendValue]] = defaultdict(list)
    for subject, cores, *rest in rows:
        series[subject, cores, SeriesKey(*rest[:6])].append(TrendValue(*rest[6:]))
    differs = _told_apart(dict.fromkeys(place for _, _, place in series), index)
    return [
        Trend(
            ", ".join(filter(None, (f"{subject} on {place.machine}", differs[place]))),
            metric,
            place,
            differs[place],
            cores,
            values,
            steps(values, margin, more_is_worse=metric in LATENCIES),
        )
        for (subject, cores, place), values in series.items()
    ]


def _told_apart(places: Iterable[SeriesKey], index: sqlite3.Connection) -> dict[SeriesKey, str]:
    """What each place differs in from those of the same workload, file system and circumstances."""
    facts = definitions(index)
    alike: dict[tuple[str, ...], list[SeriesKey]] = defaultdict(list)
    for place in places:
        alike[place.workload, place.filesystem, place.circumstances, place.machine].append(place)
    differs: dict[SeriesKey, str] = {}
    for group in alike.values():
        names = tell_apart([facts[place.definition] | {"unit": place.unit} for place in group])
        if len(set(names)) < len(names):  # they differ in what was cut
            names = [
                f"{name}, definition {place.definition}"
                for name, place in zip(names, group, strict=True)
            ]
        differs |= dict(zip(group, names, strict=True))
    return differs


def steps(values: list[TrendValue], margin: float, *, more_is_worse: bool = False) -> list[Step]:
    """The steps by more than the margin; none with fewer than six runs."""
    medians = np.array([v.median for v in values])
    positions = edges(medians, margin)
    levels = [float(np.median(part)) for part in np.split(medians, positions)]
    return [
        Step(
            values[edge - 1],
            values[edge],
            before,
            after,
            after / before,
            (after > before) is more_is_worse,
        )
        for edge, before, after in zip(positions, levels, levels[1:], strict=False)
    ]
