# SPDX-License-Identifier: GPL-2.0-only
"""The outcome of a repetition, for formats with passes and failures."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from fscale.analysis.cells import in_order, one_line
from fscale.analysis.compare.health import is_broken
from fscale.analysis.reader import Results
from fscale.analysis.summary import Point, summarise
from fscale.model.results import Cell

Outcome = Literal["measured", "broken", "unusable", "skipped", "absent"]
"""measured: it has a figure. broken: the file system or the load failed. unusable: no figure, but
because of something else (no space, a fault of the machine, too short a window, an interruption by
the user). skipped: a requirement
is missing. absent: it cannot be read, or was planned and left no result."""


@dataclass(frozen=True)
class Repetition:
    """A repetition: its name within its point, its outcome, and a line that describes it."""

    name: str
    outcome: Outcome
    text: str
    seconds: float | None = None


@dataclass(frozen=True)
class PointOutcome:
    """The repetitions of a point, and a summary of them; empty without a figure."""

    name: str
    text: str
    entries: tuple[Repetition, ...]
    variant: str = ""
    """options and crew, which the name has as a hash only"""


def outcome(cell: Cell) -> Outcome:
    """The outcome of a cell."""
    if cell.status == "ok":
        return "measured"
    if cell.status == "skipped":
        return "skipped"
    return "broken" if is_broken(cell) else "unusable"


def describe_cell(cell: Cell) -> str:
    """The figure with the reasons to doubt it, or why there is none."""
    if cell.status != "ok":
        return one_line(f"{cell.end}: {cell.reason or 'no reason was recorded'}")
    parts = [f"{cell.ops_per_second:.6g} {cell.unit}/s"]
    if cell.simulation is not None:
        parts.append("simulated")
    if cell.key.profile is not None:
        parts.append(f"profiled ({cell.key.profile}), not scored")
    if cell.disturbed is not None:
        parts.append(f"disturbed: {cell.disturbed}")
    return one_line("; ".join(parts))


def describe_point(point: Point) -> str:
    """A point's median with its spread, number of repetitions, and remarks."""
    parts = [f"median {point.median:.6g} {point.unit}/s"]
    if point.spread.kind != "none":
        parts.append(f"{point.spread.kind} {point.spread.low:.6g} to {point.spread.high:.6g}")
    parts.append(f"{point.n} repetition{'s' if point.n > 1 else ''}")
    if point.disturbed:
        parts.append(f"{point.disturbed} disturbed")
    if point.simulated:
        parts.append("simulated")
    return ", ".join(parts)


def point_outcomes(results: Results) -> list[PointOutcome]:
    """The points of a run by their names; absent repetitions come last."""
    medians = {point.key.point: describe_point(point) for point in summarise(results.scored)}
    cells: dict[str, list[Cell]] = {}
    for cell in in_order(results.cells):
        cells.setdefault(cell.key.point, []).append(cell)
    outcomes = [
        PointOutcome(
            name,
            medians.get(name, ""),
            _entries(repetitions),
            one_line(repetitions[0].key.variant),
        )
        for name, repetitions in cells.items()
    ]
    absent = [
        Repetition(u.file, "absent", one_line(f"unreadable: {u.reason}"))
        for u in results.unreadable
    ]
    if results.missing:
        why = f"{results.missing} planned cells left no result"
        absent.append(Repetition("planned cells", "absent", why))
    if absent:
        outcomes.append(PointOutcome("absent", "", tuple(absent)))
    return outcomes


def _entries(cells: Iterable[Cell]) -> tuple[Repetition, ...]:
    return tuple(
        Repetition(
            f"repetition {cell.key.repetition}",
            outcome(cell),
            describe_cell(cell),
            cell.wall_seconds,
        )
        for cell in cells
    )
