# SPDX-License-Identifier: GPL-2.0-only
"""The interface of a section, and the report that it reads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fscale.analysis.compare import wording
from fscale.analysis.compare.pairs import Common, common_of, subject_of
from fscale.analysis.control import Control, control_of
from fscale.analysis.curves import Curve, Page, Panel, arrange
from fscale.analysis.diagnosis.run import Diagnosed, Diagnosis, diagnose, profiled, unprofiled
from fscale.analysis.members import Member
from fscale.analysis.metrics import THROUGHPUT
from fscale.analysis.paper.agreement import with_turns
from fscale.analysis.prediction.stored import Kept, read, with_predicted
from fscale.analysis.reader import Results
from fscale.analysis.report.against import Against, against_first
from fscale.analysis.report.looks import by_run, looks
from fscale.analysis.style import LineStyle
from fscale.analysis.summary import Point, summarise
from fscale.analysis.tables import points as point_table
from fscale.analysis.tables import sweeps as sweep_table
from fscale.analysis.tables.column import Row
from fscale.model import catalogue, paths
from fscale.model.bench import Descriptor
from fscale.model.topology import machine_layout


@dataclass(frozen=True)
class Report:
    """A run or several, with the data that sections share; the report is written to `out_dir`.

    `paper`: compare the curves with FxMark's paper. `allow`: differences that judged runs may have
    (`--allow-different`). `part_of`: the run's label if this is its part of a report of several.
    """

    members: tuple[Member, ...]
    out_dir: Path
    paper: bool = False
    allow: tuple[str, ...] = ()
    part_of: str | None = None
    judged: Mapping[str, Against] | None = None
    """the comparisons, if the runs were judged already"""
    metric: str = THROUGHPUT
    """what the points are of; sections of the page are about throughput"""

    @property
    def several(self) -> bool:
        """Whether it shows more than one run."""
        return len(self.members) > 1

    @property
    def results(self) -> Results:
        """The results of the only run; sections for several runs cannot use this."""
        (member,) = self.members
        return member.results

    @cached_property
    def parts(self) -> list["Report"]:
        """A report of each run alone; both sides of a paired run are in one."""
        if not self.several:
            return [self]
        runs = {str(member.run): member.results for member in self.members}
        return [
            Report((Member(results),), self.out_dir, part_of=run) for run, results in runs.items()
        ]

    @property
    def whose(self) -> str:
        """A suffix that makes the names of tables unique in a report of several runs."""
        return f" of {self.part_of}" if self.part_of else ""

    def results_of(self, run: str | None) -> Results:
        """The results of the run with that label."""
        return next(m.results for m in self.members if m.label == run)

    def place_of(self, point: str, run: str | None) -> str:
        """The key under which the page keeps the details of a point (`CellKey.point`) of a run."""
        return f"{run}|{point}" if run else point

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """The diagnosis of the only run; None if nothing was profiled."""
        return diagnose(self.results) if profiled(self.results) else None

    @cached_property
    def diagnosed(self) -> dict[str, Diagnosed]:
        """The diagnosed points of all runs, by their place (`place_of`)."""
        return {
            part.place_of(unprofiled(one.key).point, part.part_of): one
            for part in self.parts
            if part.diagnosis
            for one in part.diagnosis.points
        }

    def diagnosed_places(self, curve: Curve) -> list[str]:
        """The places of the curve's diagnosed points, the highest core count first."""
        labelled = (m.run for m in self.members if m.label == curve.run)
        run = next(labelled) if self.several else self.part_of
        places = [self.place_of(point.key.point, run) for point in reversed(curve.points)]
        return [place for place in places if place in self.diagnosed]

    def why_anchor(self, place: str) -> str:
        """The id of a diagnosed point's evidence in the page."""
        return f"why-{list(self.diagnosed).index(place)}"

    @cached_property
    def points(self) -> list[Point]:
        """All points of scored cells."""
        return [
            point
            for member in self.members
            for point in summarise(member.scored, member.label, self.metric, member.results.hosts)
        ]

    @cached_property
    def filesystems(self) -> dict[str, str | None]:
        """The configured colour of each file system, in the order of the configurations.

        A run in an existing directory, and an imported one, have no configuration: their file
        system has the colour of the one of that name here.
        """
        here = {
            name: catalogue.load_filesystem(name).colour
            for name in catalogue.names(paths.FILESYSTEMS)
        }
        colours: dict[str, str | None] = {}
        for member in self.members:
            for name, described in member.results.run.filesystems.items():
                colours.setdefault(name, described.get("colour") or here.get(name))
        for point in self.points:
            colours.setdefault(point.key.filesystem, here.get(point.key.filesystem))
        return colours

    @cached_property
    def descriptors(self) -> dict[str, Descriptor]:
        """The descriptors of all workloads by id, from the first run that has one."""
        by_id: dict[str, Descriptor] = {}
        for member in self.members:
            by_id = {**member.results.descriptors, **by_id}
        return by_id

    @cached_property
    def pages(self) -> list[Page]:
        """A page for each medium and I/O mode."""
        there = {m.label: machine_layout(m.results.run.machine) for m in self.members}
        pages = arrange(self.points, list(self.filesystems), self.descriptors, there, self.controls)
        pages = [with_predicted(page, self.predicted) for page in pages]
        return [with_turns(page) for page in pages] if self.paper else pages

    @cached_property
    def predicted(self) -> dict[str | None, Kept]:
        """The predictions of each run, by the run's label; none in the page of a comparison."""
        if self.metric != THROUGHPUT or self.judged is not None:
            return {}
        return {member.label: read(member.results) for member in self.members}

    @cached_property
    def controls(self) -> dict[str | None, Control | None]:
        """The control of each run, by the run's label."""
        return {member.label: control_of(member.results) for member in self.members}

    @cached_property
    def lines(self) -> dict[str, LineStyle]:
        """The look of each series (`Curve.series`) in the whole report."""
        measured = {(p.key.filesystem, p.run) for p in self.points}
        return looks(self.filesystems, [m.label for m in self.members], measured)

    @cached_property
    def figures(self) -> list[Row]:
        """The table of figures."""
        return point_table.rows(self.pages, {m.label: m.name for m in self.members})

    @property
    def swept(self) -> list[Row]:
        """The table of sweeps."""
        return sweep_table.rows(self.pages, {m.label: m.name for m in self.members})

    @cached_property
    def against(self) -> dict[str, Against]:
        """The comparison of each run after the first with it, by label."""
        return dict(self.judged) if self.judged else against_first(self.members, self.allow)

    @cached_property
    def place(self) -> tuple[str, str] | None:
        """The first run's file system and medium, if each run has a single one of both.

        Such runs are judged as if they had the same, like in `compare`. None if a run has several,
        or if all have the same.
        """
        places = [
            {(p.key.filesystem, p.key.medium) for p in self.points if p.run == m.label}
            for m in self.members
        ]
        if any(len(sole) != 1 for sole in places) or len(set.union(*places)) == 1:
            return None
        return next(iter(places[0]))

    @cached_property
    def common(self) -> Common:
        """The parts of keys by which points of the runs match, as in `compare`."""
        return common_of([[p.key for p in self.points if p.run == m.label] for m in self.members])

    def change_of(self, point: Point) -> str | None:
        """The change of a point from the first run, with its verdict; None if not judged."""
        against = self.against.get(str(point.run)) if self.several else None
        judged = against.rates.get(subject_of(point.key, self.common)) if against else None
        if judged is None or judged.p is None:
            return None
        change = wording.estimate(judged.ratio, judged.low, judged.high)
        return f"{change} against {self.members[0].label}: {judged.verdict}"

    @property
    def by_run(self) -> bool:
        """Whether colours stand for runs and not for file systems."""
        return by_run({(p.key.filesystem, p.run) for p in self.points})

    def anchor(self, page: Page, panel: Panel) -> str:
        """The id of a panel's place in the page."""
        number = self.pages.index(page)
        name = "".join(c if c.isalnum() else "-" for c in panel.name)
        return f"panel-{number}-{name}"


@dataclass(frozen=True)
class Section:
    """A part of the page. `build` returns its HTML, or None if the run has no data for it."""

    title: str
    anchor: str
    build: Callable[[Report], str | None]
