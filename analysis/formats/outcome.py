# SPDX-License-Identifier: GPL-2.0-only
"""How a repetition ended, for formats that know passes and failures."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from analysis.compare.health import is_broken
from analysis.formats.cells import in_order
from analysis.ktap import one_line
from analysis.reader import Results
from analysis.summary import Point, summarise
from fscale.model.results import Cell

Outcome = Literal["measured", "broken", "unusable", "skipped", "absent"]
"""measured: it has a figure. broken: the file system failed. unusable: no figure, and the file
system is not to blame (no space, too short a window, the user stopped it). skipped: something that
it takes is missing. absent: it cannot be read, or was planned and left nothing."""


@dataclass(frozen=True)
class Entry:
    """A repetition: its name among those of its point, how it ended, and that in a line."""

    name: str
    outcome: Outcome
    said: str
    seconds: float | None = None


@dataclass(frozen=True)
class Group:
    """The repetitions of a point, and what they say together; empty where nothing can be said."""

    name: str
    said: str
    entries: tuple[Entry, ...]


def outcome(cell: Cell) -> Outcome:
    """How a cell ended."""
    if cell.status == "ok":
        return "measured"
    if cell.status == "skipped":
        return "skipped"
    return "broken" if is_broken(cell) else "unusable"


def said(cell: Cell) -> str:
    """The figure with all that makes it doubtful, or why there is none."""
    if cell.status != "ok":
        return one_line(f"{cell.status}: {cell.reason or 'no reason was recorded'}")
    parts = [f"{cell.ops_per_second:.6g} {cell.unit}/s"]
    if cell.simulation is not None:
        parts.append("simulated")
    if cell.key.profile is not None:
        parts.append(f"profiled ({cell.key.profile}), does not count")
    if cell.disturbed is not None:
        parts.append(f"disturbed: {cell.disturbed}")
    return one_line("; ".join(parts))


def together(point: Point) -> str:
    """A point's median with its spread and what is to be known of it."""
    parts = [f"median {point.median:.6g} {point.unit}/s"]
    if point.spread.kind != "none":
        parts.append(f"{point.spread.kind} {point.spread.low:.6g} to {point.spread.high:.6g}")
    parts.append(f"{point.n} repetition{'s' if point.n > 1 else ''}")
    if point.disturbed:
        parts.append(f"{point.disturbed} disturbed")
    if point.simulated:
        parts.append("simulated")
    return ", ".join(parts)


def groups(results: Results) -> list[Group]:
    """The points of a run by their names; last what is absent from it."""
    medians = {point.key.point: together(point) for point in summarise(results.scored)}
    cells: dict[str, list[Cell]] = {}
    for cell in in_order(results.cells):
        cells.setdefault(cell.key.point, []).append(cell)
    found = [Group(name, medians.get(name, ""), _entries(own)) for name, own in cells.items()]
    absent = [
        Entry(u.file, "absent", one_line(f"unreadable: {u.reason}")) for u in results.unreadable
    ]
    if results.missing:
        told = f"{results.missing} planned cells left no result"
        absent.append(Entry("planned cells", "absent", told))
    if absent:
        found.append(Group("absent", "", tuple(absent)))
    return found


def _entries(cells: Iterable[Cell]) -> tuple[Entry, ...]:
    return tuple(
        Entry(f"repetition {cell.key.repetition}", outcome(cell), said(cell), cell.wall_seconds)
        for cell in cells
    )
