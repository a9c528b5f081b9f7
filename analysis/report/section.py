# SPDX-License-Identifier: GPL-2.0-only
"""What a section of the report is, and what it may look at."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from analysis.curves import Page, Panel, arrange
from analysis.export import Row, rows
from analysis.paper.beside import with_turns
from analysis.reader import Results
from analysis.style import Line, lines
from analysis.summary import Point, summarise
from fscale.model.topology import machine_layout


@dataclass(frozen=True)
class Report:
    """A run, and what all sections share about it; `out_dir` is where the report goes.

    `paper`: FxMark's paper is laid beside the curves.
    """

    results: Results
    out_dir: Path
    paper: bool = False

    @cached_property
    def points(self) -> list[Point]:
        """All points of scored cells."""
        return summarise(self.results.scored)

    @cached_property
    def filesystems(self) -> list[str]:
        """In the order of the run's configuration."""
        measured = dict.fromkeys(p.key.filesystem for p in self.points)
        return list(dict.fromkeys([*self.results.run.filesystems, *measured]))

    @cached_property
    def pages(self) -> list[Page]:
        """A page for each medium and I/O mode."""
        there = machine_layout(self.results.run.machine)
        pages = arrange(self.points, self.filesystems, self.results.descriptors, there)
        return [with_turns(page) for page in pages] if self.paper else pages

    @cached_property
    def lines(self) -> dict[str, Line]:
        """Colour and marker of each file system, the same in the whole report."""
        described = self.results.run.filesystems
        return lines({name: described.get(name, {}).get("colour") for name in self.filesystems})

    @cached_property
    def figures(self) -> list[Row]:
        """The table of figures."""
        return rows(self.pages)

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
