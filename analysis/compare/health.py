# SPDX-License-Identifier: GPL-2.0-only
"""Finds points that broke: good on one side and failing on the other, whatever their speed.

If a file system returns an error, hangs, or cannot be made, mounted or checked, that is a fault and
not noise: one such repetition is a finding if the other side has none. Failures that other causes
can explain (no space, too short a window, interruption by the user, a missing tool) are not
findings by themselves; but a point that is left without any value is lost.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from fscale.analysis.compare.model import Health, HealthKind, Subject, Tally
from fscale.analysis.compare.pairs import Place, subject_of
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
    """Whether the file system failed in this cell, as far as the cell shows.

    Every "error" counts except running out of space, which a faster side does sooner.
    """
    no_space = cell.bench is not None and cell.bench.end == "no_space"
    return cell.status == "error" and not no_space


def health(
    base: Iterable[Cell], new: Iterable[Cell], place: Place | None, lost_in_new: bool
) -> list[Health]:
    """The points that are good on one side only.

    `place` as for `subject_of`. `lost_in_new`: NEW has planned cells without a result, so a point
    that only BASE has should have been measured in NEW as well.
    """
    sides = _points(base, place), _points(new, place)
    found = []
    for subject in sorted(sides[0].keys(), key=lambda subject: subject.name):
        a, b = sides[0][subject], sides[1].get(subject)
        if b is None:
            if lost_in_new and a.good:
                found.append(_health(subject, "lost", a, _Point(), "it was not measured"))
        elif a.good and not a.broken and b.broken:
            found.append(_health(subject, "broken", a, b, b.broken[0]))
        elif a.good and not b.good:
            found.append(_health(subject, "lost", a, b, (b.unusable or b.broken)[0]))
        elif a.broken and b.good and not b.broken:
            found.append(_health(subject, "mended", a, b, a.broken[0]))
    return found


def _health(subject: Subject, kind: HealthKind, a: _Point, b: _Point, reason: str) -> Health:
    return Health(subject=subject, kind=kind, base=a.tally, new=b.tally, reason=reason)


def _points(cells: Iterable[Cell], place: Place | None) -> dict[Subject, _Point]:
    points: dict[Subject, _Point] = defaultdict(_Point)
    for cell in cells:
        if cell.key.profile is not None:
            continue  # the profiler may have failed, not the file system
        point = points[subject_of(cell.key, place)]
        reason = cell.reason or cell.status
        if cell.status == "ok":
            point.good += 1
        elif is_broken(cell):
            point.broken.append(reason)
        else:
            point.unusable.append(f"{cell.status}: {reason}")
    return points
