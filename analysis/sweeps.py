# SPDX-License-Identifier: GPL-2.0-only
"""Finds the sweeps of a page: curves that differ in one option, in workers, or in how a file system
is made and mounted, and in nothing else.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from fscale.analysis.curves import Curve, Page, Panel
from fscale.model import variant
from fscale.model.crew import WORKERS_PER_CPU
from fscale.model.words import natural

OPTIONS = "options"
"""the axis of a file system's mount and mkfs options"""
DEFAULT = "default"
"""the value of that axis without any"""

Value = int | str


@dataclass(frozen=True)
class Member:
    """A curve of a sweep: the value of the axis, and the curve where the page has it."""

    value: Value
    panel: Panel
    curve: Curve


@dataclass(frozen=True)
class Sweep:
    """The curves of one workload on one file system by the values of one axis, ascending."""

    page: Page
    axis: str
    fixed: str
    """values of the other axes, such as "keep=0"; empty if there are none"""
    filesystem: str
    members: tuple[Member, ...]

    @cached_property
    def panel(self) -> Panel:
        """One panel with a curve for each value, which has its name: "block=4096"."""
        first = self.members[0]
        marks = [mark for mark in (first.curve.run, first.curve.side) if mark]
        place = f"{self.filesystem} ({', '.join(marks)})" if marks else self.filesystem
        return replace(
            first.panel,
            variant=f"{self.fixed} on {place} by {self.axis}".strip(),
            curves=tuple(
                replace(m.curve, filesystem=self._title(m.value), run=None, side=None)
                for m in self.members
            ),
            turns=(),
        )

    def _title(self, value: Value) -> str:
        return str(value) if self.axis == OPTIONS else f"{self.axis}={value}"

    @property
    def name(self) -> str:
        """What is swept: "DWAL on ext4 by block"."""
        return self.panel.name

    @property
    def alone(self) -> Page:
        """A page of this panel alone."""
        return self.page.alone(self.panel)

    @property
    def names(self) -> list[str]:
        """The names of its curves, which are also the keys of their looks (`Curve.series`)."""
        return [curve.series for curve in self.panel.curves]


def sweeps(pages: Iterable[Page]) -> list[Sweep]:
    """The sweeps of all pages, in the order of their first curves.

    A point that varies in several axes is in a sweep of each, in which the others are fixed.
    """
    return [sweep for page in pages for sweep in _of_page(page)]


def _of_page(page: Page) -> list[Sweep]:
    groups: dict[tuple[str, str, str, tuple[object, ...]], list[Member]] = defaultdict(list)
    for panel, curve in page.curves:
        key = curve.top.key
        base, _ = variant.split_options(curve.filesystem)
        axes = _axes(curve)
        for axis, value in axes.items():
            others = {name: v for name, v in axes.items() if name != axis}
            same = (panel.workload, *others.items(), base, curve.run, curve.side)
            place = base if axis == OPTIONS else curve.filesystem
            group = axis, _fixed(others), place, (*same, key.duration, key.placement)
            groups[group].append(Member(value, panel, curve))
    return [
        Sweep(page, axis, fixed, place, tuple(sorted(members, key=_rank)))
        for (axis, fixed, place, _), members in groups.items()
        if len(members) > 1
    ]


def _rank(member: Member) -> tuple[int, str]:
    """Numbers ascend, and so do those in texts; a file system without options is the first."""
    value = member.value
    if isinstance(value, int):
        return value, ""
    return 0, "" if value == DEFAULT else natural(value)


def _axes(curve: Curve) -> dict[str, Value]:
    """The values of a curve by axis."""
    key = curve.top.key
    _, options = variant.split_options(curve.filesystem)
    workers = {WORKERS_PER_CPU: key.workers_per_cpu}
    return {**dict(sorted(key.options.items())), **workers, OPTIONS: options or DEFAULT}


def _fixed(others: dict[str, Value]) -> str:
    shown = {k: v for k, v in others.items() if k != OPTIONS and (k, v) != (WORKERS_PER_CPU, 1)}
    return " ".join(f"{name}={value}" for name, value in shown.items())
