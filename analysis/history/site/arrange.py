# SPDX-License-Identifier: GPL-2.0-only
"""Arranges the pages: each shows a workload on a file system on one machine, by core count."""

import hashlib
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property

from fscale.analysis.history.index import IndexedRun
from fscale.analysis.history.trend import SeriesKey, Step, Trend, TrendValue
from fscale.analysis.labels import unshared

LONGEST_NAME = 80  # most characters of a file name that come from a workload and file system


@dataclass(frozen=True)
class SeriesPage:
    """The trends of one place, by ascending core count.

    `newer`: the number of runs on its machine that are newer than its last run.
    """

    place: SeriesKey
    trends: tuple[Trend, ...]
    newer: int

    @property
    def title(self) -> str:
        """Workload and file system."""
        return f"{self.place.workload} on {self.place.filesystem}"

    @property
    def circumstances(self) -> str:
        """Medium, mode, duration, options, and what else differs from pages that look alike."""
        return ", ".join(filter(None, (self.place.circumstances, self.trends[0].differs)))

    @property
    def file(self) -> str:
        """The name of its file, which is the same each time the site is written."""
        place = self.place
        text = "\n".join(vars(place).values())
        plain = re.sub(r"[^A-Za-z0-9_]+", "-", f"{place.workload}-{place.filesystem}")
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        return f"{plain[:LONGEST_NAME]}-{digest}.html"

    @cached_property
    def runs(self) -> list[TrendValue]:
        """A value of each run in any of the trends, the oldest first."""
        first = {v.path: v for trend in self.trends for v in trend.values}
        return sorted(first.values(), key=lambda v: (v.started, v.path))

    @cached_property
    def number(self) -> dict[str, int]:
        """Directory of a run -> its number on the page, from 0."""
        return {run.path: number for number, run in enumerate(self.runs)}

    @cached_property
    def table(self) -> list[tuple[int, TrendValue, list[tuple[TrendValue | None, Step | None]]]]:
        """Number, run, and the value of each trend with the step that it follows, newest first."""
        columns = [
            ({v.path: v for v in t.values}, {s.first.path: s for s in t.steps}) for t in self.trends
        ]
        rows = [
            (
                number,
                run,
                [(values.get(run.path), steps.get(run.path)) for values, steps in columns],
            )
            for number, run in enumerate(self.runs)
        ]
        return rows[::-1]


@dataclass(frozen=True)
class Change:
    """A step and where it is shown."""

    page: SeriesPage
    trend: Trend
    step: Step


class History:
    """All runs and trends of an index, arranged.

    Args:
        runs: the oldest first.
        found: the trends, in the order of their names and core counts.
    """

    def __init__(self, runs: list[IndexedRun], trends: list[Trend], metric: str) -> None:
        self.runs = runs
        self.metric = metric
        self.trends = trends
        started: dict[str, list[str]] = defaultdict(list)
        for run in runs:
            started[run.machine].append(run.started)
        self.machines = Counter({machine: len(own) for machine, own in started.items()})
        places: dict[SeriesKey, list[Trend]] = defaultdict(list)
        for trend in trends:
            places[trend.place].append(trend)
        self.pages = [
            SeriesPage(place, tuple(own), _newer(own, started[place.machine]))
            for place, own in places.items()
        ]

    @cached_property
    def changes(self) -> list[Change]:
        """All steps, the newest first, and within a run the largest first."""
        changes = [
            Change(page, trend, step)
            for page in self.pages
            for trend in page.trends
            for step in trend.steps
        ]
        changes.sort(key=lambda c: -max(c.step.ratio, 1 / c.step.ratio))
        return sorted(changes, key=lambda c: c.step.first.started, reverse=True)

    @cached_property
    def workloads(self) -> list[str]:
        """All names, sorted."""
        return sorted({page.place.workload for page in self.pages})

    @cached_property
    def filesystems(self) -> list[str]:
        """All names, sorted."""
        return sorted({page.place.filesystem for page in self.pages})

    @cached_property
    def cores(self) -> list[int]:
        """All core counts, rising."""
        return sorted({trend.cores for trend in self.trends})

    def apart(self, page: SeriesPage) -> str:
        """What differs between a page and the others of its workload and file system."""
        alike = [other for other in self.pages if other.title == page.title]
        facts = unshared(
            [[*p.place.circumstances.split(), p.trends[0].differs, p.place.machine] for p in alike]
        )
        return ", ".join(filter(None, facts[alike.index(page)]))

    def newer(self, trend: Trend) -> int:
        """The number of runs on its machine that are newer than its last value."""
        last = trend.values[-1].started
        return sum(r.machine == trend.place.machine and r.started > last for r in self.runs)


def _newer(trends: list[Trend], started: list[str]) -> int:
    last = max(trend.values[-1].started for trend in trends)
    return sum(time > last for time in started)
