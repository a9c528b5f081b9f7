# SPDX-License-Identifier: GPL-2.0-only
"""Finds points that broke: good on one side and failing on the other, whatever their speed.

If a file system returns an error, hangs, or cannot be made, mounted or checked, or the load fails
in it, that is a fault and not noise: one such repetition is a finding if the other side has none.
Failures of the machine or the user (no space, a CPU that stays online, too short a window, a
missing tool) are not findings by themselves; but a point that is left without any value is lost.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from fscale.analysis.compare.model import Health, HealthKind, Subject, Tally
from fscale.analysis.compare.pairs import Points
from fscale.model.fault import FINDINGS
from fscale.model.results import Cell


@dataclass
class _Point:
    """The repetitions of one subject on one side."""

    good: int = 0
    broken: list[str] = field(default_factory=list)
    unusable: list[str] = field(default_factory=list)

    @property
    def tally(self) -> Tally:
        return Tally(good=self.good, broken=len(self.broken), unusable=len(self.unusable))


def is_broken(cell: Cell) -> bool:
    """Whether the file system or the load failed in this cell, as far as the cell shows.

    Where a cell does not record the fault, every "error" counts except running out of space, which
    a faster side does sooner.
    """
    if cell.fault is not None:
        return cell.status == "error" and cell.fault in FINDINGS
    no_space = cell.bench is not None and cell.bench.end == "no_space"
    return cell.status == "error" and not no_space


def health(points: Points, lost_in_new: bool) -> list[Health]:
    """The points that are good on one side only.

    `lost_in_new`: NEW has planned cells without a result, so a point that only BASE has should have
    been measured in NEW as well.
    """
    changes = []
    for subject, cells in sorted(points.items(), key=lambda point: point[0].name):
        a, b = map(_count, cells)
        if a is None:
            continue
        if b is None:
            if lost_in_new and a.good:
                changes.append(_health(subject, "lost", a, _Point(), "it was not measured"))
        elif a.good and not a.broken and b.broken:
            changes.append(_health(subject, "broken", a, b, b.broken[0]))
        elif a.good and not b.good:
            changes.append(_health(subject, "lost", a, b, (b.unusable or b.broken)[0]))
        elif a.broken and b.good and not b.broken:
            changes.append(_health(subject, "mended", a, b, a.broken[0]))
    return changes


def _health(subject: Subject, kind: HealthKind, a: _Point, b: _Point, reason: str) -> Health:
    return Health(subject=subject, kind=kind, base=a.tally, new=b.tally, reason=reason)


def _count(cells: Iterable[Cell]) -> _Point | None:
    """How the scored repetitions of a point on one side ended; None if there are none.

    Where a profiled one failed, it may have been the profiler and not the file system.
    """
    scored = [cell for cell in cells if cell.key.profile is None]
    point = _Point()
    for cell in scored:
        reason = cell.reason or cell.status
        if cell.status == "ok":
            point.good += 1
        elif is_broken(cell):
            point.broken.append(reason)
        else:
            point.unusable.append(f"{cell.end}: {reason}")
    return point if scored else None
