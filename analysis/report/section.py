# SPDX-License-Identifier: GPL-2.0-only
"""What a section of the report is, and what it may look at."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from analysis.compare import wording
from analysis.compare.pairs import Place, subject_of
from analysis.control import Control, control_of
from analysis.curves import Page, Panel, arrange
from analysis.export import Row, rows
from analysis.paper.beside import with_turns
from analysis.reader import Results
from analysis.report.against import Against, against_first
from analysis.report.looks import by_run, looks
from analysis.report.members import Member
from analysis.style import Line
from analysis.summary import Point, summarise
from analysis.whatif import asked
from fscale.model.bench import Descriptor
from fscale.model.topology import machine_layout


@dataclass(frozen=True)
class Report:
    """A run or several, and what all sections share about them; it goes to `out_dir`.

    `paper`: FxMark's paper is laid beside the curves. `allow`: what may differ between runs that
    are judged (`--allow-different`). `part_of`: the run's label where this is its part of a report
    of several.
    """

    members: tuple[Member, ...]
    out_dir: Path
    paper: bool = False
    allow: tuple[str, ...] = ()
    part_of: str | None = None
    judged: Mapping[str, Against] | None = None
    """where the runs are judged already"""

    @property
    def several(self) -> bool:
        """Whether it shows more than one run."""
        return len(self.members) > 1

    @property
    def results(self) -> Results:
        """Those of the only run; a section that asks for them is of one run."""
        (member,) = self.members
        return member.results

    @property
    def parts(self) -> list["Report"]:
        """Of several runs, a report of each alone; both sides of a paired run are in one."""
        runs = {str(member.run): member.results for member in self.members}
        return [
            Report((Member(results),), self.out_dir, part_of=run) for run, results in runs.items()
        ]

    @property
    def whose(self) -> str:
        """What makes the name of a part's table differ from that of another run's."""
        return f" of {self.part_of}" if self.part_of else ""

    def results_of(self, run: str | None) -> Results:
        """Those of the run with that label."""
        return next(m.results for m in self.members if m.label == run)

    def place_of(self, point: str, run: str | None) -> str:
        """Where the page keeps what is known of a point (`CellKey.point`) of a run."""
        return f"{run}|{point}" if run else point

    @cached_property
    def points(self) -> list[Point]:
        """All points of scored cells; the answers of a what-if have a table of their own."""
        return [
            point
            for member in self.members
            for point in summarise(
                (cell for cell in member.scored if not asked(cell)), member.label
            )
        ]

    @cached_property
    def filesystems(self) -> dict[str, str | None]:
        """The colour that each wants, in the order of the runs' configurations."""
        wanted: dict[str, str | None] = {}
        for member in self.members:
            for name, described in member.results.run.filesystems.items():
                wanted.setdefault(name, described.get("colour"))
        for point in self.points:
            wanted.setdefault(point.key.filesystem, None)
        return wanted

    @cached_property
    def descriptors(self) -> dict[str, Descriptor]:
        """Of all workloads, by id; of several runs the first that has one."""
        found: dict[str, Descriptor] = {}
        for member in self.members:
            found = {**member.results.descriptors, **found}
        return found

    @cached_property
    def pages(self) -> list[Page]:
        """A page for each medium and I/O mode."""
        there = {m.label: machine_layout(m.results.run.machine) for m in self.members}
        pages = arrange(self.points, list(self.filesystems), self.descriptors, there, self.controls)
        return [with_turns(page) for page in pages] if self.paper else pages

    @cached_property
    def controls(self) -> dict[str | None, Control | None]:
        """What each run's machine itself gave, by the run's label."""
        return {member.label: control_of(member.results) for member in self.members}

    @cached_property
    def lines(self) -> dict[str, Line]:
        """How each series (`Curve.series`) is drawn, the same in the whole report."""
        measured = {(p.key.filesystem, p.run) for p in self.points}
        return looks(self.filesystems, [m.label for m in self.members], measured)

    @cached_property
    def figures(self) -> list[Row]:
        """The table of figures."""
        return rows(self.pages)

    @cached_property
    def against(self) -> dict[str, Against]:
        """Of several runs, each after the first beside it, by its label."""
        return dict(self.judged) if self.judged else against_first(self.members, self.allow)

    @cached_property
    def place(self) -> Place | None:
        """The first run's, where each has a single file system on a single medium.

        Such runs are judged as if they were of one, as `compare` does it. None where one has
        several, or all have the same.
        """
        places = [
            {(p.key.filesystem, p.key.medium) for p in self.points if p.run == m.label}
            for m in self.members
        ]
        if any(len(own) != 1 for own in places) or len(set.union(*places)) == 1:
            return None
        return next(iter(places[0]))

    def change_of(self, point: Point) -> str | None:
        """What is to be said of a point beside the first run; None where nothing is."""
        against = self.against.get(str(point.run)) if self.several else None
        judged = against.rates.get(subject_of(point.key, self.place)) if against else None
        if judged is None or judged.p is None:
            return None
        told = wording.estimate(judged.ratio, judged.low, judged.high)
        return f"{told} against {self.members[0].label}: {judged.verdict}"

    @property
    def by_run(self) -> bool:
        """Whether colours tell the runs apart, not the file systems."""
        return by_run({(p.key.filesystem, p.run) for p in self.points})

    def anchor(self, page: Page, panel: Panel) -> str:
        """The id of a panel's place in the page."""
        number = self.pages.index(page)
        name = "".join(c if c.isalnum() else "-" for c in panel.name)
        return f"panel-{number}-{name}"


@dataclass(frozen=True)
class Section:
    """A part of the page. `build` returns its HTML, or None when the run has nothing for it."""

    title: str
    anchor: str
    build: Callable[[Report], str | None]
