# SPDX-License-Identifier: GPL-2.0-only
"""Puts points in the order of a report: page (medium, mode) > group > panel > curve > point."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from fscale.analysis.control import Control
from fscale.analysis.prediction.model import Range, StoredPrediction
from fscale.analysis.summary import Point, Ratio
from fscale.model import crew
from fscale.model.bench import Descriptor
from fscale.model.results import NO_MEDIUM, CellKey
from fscale.model.topology import Layout
from fscale.model.words import natural

BACKGROUND = "Readers beside a writer"
OTHER = "Other workloads"
SHARING = ("low", "medium", "high")

Layouts = Mapping[str | None, Layout | None]
"""the layout of each run's machine, by the run's label (None if there is one run)"""
Controls = Mapping[str | None, Control | None]
"""the controls of each run, in the same way"""


def series(filesystem: str, run: str | None) -> str:
    """The key of a line's look (`Curve.series`)."""
    return f"{filesystem} ({run})" if run else filesystem


@dataclass(frozen=True)
class Curve:
    """One file system (of a run, or of a side) on one panel; points ascend by cores."""

    filesystem: str
    side: str | None
    points: tuple[Point, ...]
    base_cores: int
    physical: int | None = None
    """physical cores of the machine that are as fast as the first; None: every CPU is one"""
    run: str | None = None
    """the run's label in a report of several"""
    control: Control | None = None
    """the controls; None: a core is taken to give the same at each core count"""
    predicted: tuple[StoredPrediction, ...] = ()
    """points that nobody measured, ascending by cores; only `beyond` and `untold` have them"""

    @property
    def series(self) -> str:
        """The key of the line's look: the file system and, if there are several, the run."""
        return series(self.filesystem, self.run)

    @property
    def name(self) -> str:
        """The name in the legend."""
        marks = [mark for mark in (self.run, self.side) if mark]
        marks += ["simulated"] if self.simulated else []
        marks += [f"{len(self.hosts)} machines"] if len(self.hosts) > 1 else []
        return f"{self.filesystem} ({', '.join(marks)})" if marks else self.filesystem

    @cached_property
    def simulated(self) -> bool:
        """Whether the simulator made its points."""
        return any(p.simulated for p in self.points)

    @cached_property
    def hosts(self) -> frozenset[str]:
        """The machines that measured its points, if they are known one by one."""
        return frozenset().union(*(p.hosts for p in self.points))

    @property
    def base(self) -> Point | None:
        """The point that speed-ups relate to: one core (with a background writer: two)."""
        return self.points[0] if self.points[0].key.cores == self.base_cores else None

    @property
    def top(self) -> Point:
        """The point with the most cores."""
        return self.points[-1]

    @cached_property
    def peak(self) -> Point:
        """The point with the highest median; the fewest cores among equals."""
        return max(self.points, key=lambda p: (p.median, -p.key.cores))

    @cached_property
    def beyond(self) -> tuple[tuple[int, Range], ...]:
        """The predicted curve: cores and operations per second; empty if nothing can be told.

        It begins at the measured point that it meets, with the spread of that one.
        """
        told = [(one.key.cores, one.rate) for one in self.predicted if one.rate]
        at = self.predicted[0].anchor_cores if told else None
        start = next((p for p in self.points if p.key.cores == at), None)
        if start is None:
            return ()
        spread = Range(value=start.median, low=start.spread.low, high=start.spread.high)
        return ((start.key.cores, spread), *told)

    @property
    def untold(self) -> str:
        """A sentence that says at which cores prediction cannot tell, and why; else empty."""
        untold = [one for one in self.predicted if one.rate is None]
        if not untold:
            return ""
        counts = ", ".join(str(one.key.cores) for one in untold)
        return f"cannot tell {self.name} at {counts} cores (speed-up {untold[0].reason})"

    def speedup(self, point: Point) -> Ratio | None:
        """Throughput of `point` relative to the base; None without a base, or for the base."""
        base = self.base
        if base is None or point is base:
            return None
        return Ratio.of(point, base)

    @property
    def top_speedup(self) -> Ratio | None:
        """Speed-up at the highest core count."""
        return self.speedup(self.top)

    def linear_at(self, point: Point) -> float:
        """The linear speed-up of a point: every physical core does as much as at the base.

        If a control shows that a core gives less than at the base, the core counts for that much
        less. Hardware threads and slower cores add nothing, because their worth is not known. A
        core that runs a background writer does not count as a worker.
        """
        return self._worked(point) / self._worked(self.points[0])

    def _worked(self, point: Point) -> float:
        cores = point.key.cores
        worked = min(cores, self.physical or cores) - (cores - point.worked_cores)
        return worked * self.efficiency(cores)

    def efficiency(self, cores: int) -> float:
        """A core's throughput by the control, as a share of that at the base."""
        return self.control.efficiency(cores) if self.control else 1.0

    def machine_kept(self, start: Point, end: Point) -> float:
        """The share of its throughput that the machine itself keeps between two points.

        It is 1 unless the control, which shares nothing, is slower at `end` than at `start`.
        """
        if self.control is None:
            return 1.0
        before, after = (self.control.measured(p.key.cores) for p in (start, end))
        return min(1.0, after / before) if before and after else 1.0

    @property
    def linear(self) -> float:
        """`linear_at` of the highest core count."""
        return self.linear_at(self.top)

    @property
    def share_of_linear(self) -> float | None:
        """`share_at` the highest core count: the matrix's colour."""
        return self.share_at(self.top)

    def share_at(self, point: Point) -> float | None:
        """log(speed-up) / log(linear) of a point; None without a base, or for the base."""
        ratio, linear = self.speedup(point), self.linear_at(point)
        if ratio is None or linear <= 1:
            return None
        return math.log(ratio.value) / math.log(linear)

    @property
    def kept(self) -> float:
        """`machine_kept` from the base to the highest core count."""
        return self.machine_kept(self.points[0], self.top)

    @property
    def most(self) -> float:
        """What `top_speedup` would be if every hardware thread were worth a core."""
        return self.top.workers / self.points[0].workers


@dataclass(frozen=True)
class Ideal:
    """Linear scaling: a point and, by core count, the factor over it; hardware threads add none."""

    start: Point
    factors: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Panel:
    """The content of one plot: one workload with its options."""

    workload: str
    variant: str
    title: str
    operation: str
    unit: str
    curves: tuple[Curve, ...]
    layout: Layout | None = None
    turns: tuple[int, ...] = ()
    """core counts at which the curves stop rising according to FxMark's paper"""

    @property
    def name(self) -> str:
        """The workload and its options that are not the defaults."""
        return f"{self.workload} {self.variant}".strip()

    @property
    def points(self) -> list[Point]:
        """The points of all curves."""
        return [p for c in self.curves for p in c.points]

    @property
    def cores(self) -> list[int]:
        """All core counts, rising."""
        return sorted({p.key.cores for p in self.points})

    @property
    def drawn(self) -> list[int]:
        """All core counts at which a point is drawn, measured or predicted, rising."""
        return sorted({*self.cores, *(count for c in self.curves for count, _ in c.beyond)})

    @property
    def untold(self) -> list[str]:
        """A sentence for each curve of which prediction cannot tell how it goes on."""
        return [curve.untold for curve in self.curves if curve.untold]

    @property
    def ideal(self) -> Ideal | None:
        """Linear scaling from the fastest base; None if no curve has a base and another point."""
        rising = [c for c in self.curves if c.base is not None and len(c.points) > 1]
        if not rising:
            return None
        fastest = max(rising, key=lambda c: c.points[0].median)
        start = fastest.points[0]
        last = self.cores[-1]
        physical = fastest.physical or last
        beside = start.key.cores - start.worked_cores
        # One point per core count, because linear scaling is not straight on a logarithmic axis.
        counts = sorted(n for n in {*self.cores, min(physical, last)} if n >= start.key.cores)
        return Ideal(
            start, tuple((n, (min(n, physical) - beside) / start.worked_cores) for n in counts)
        )

    @property
    def given(self) -> Ideal | None:
        """Scaling of the control, from the same base; None if no control ran."""
        ideal = self.ideal
        fastest = ideal and next(c for c in self.curves if c.points[0] is ideal.start)
        control = fastest and fastest.control
        if not ideal or not control:
            return None
        start, beside = ideal.start, ideal.start.key.cores - ideal.start.worked_cores
        first = control.measured(start.key.cores)
        factors = [
            (n, (given / n) * (n - beside) / (first / start.key.cores * start.worked_cores))
            for n in self.cores
            if first and n >= start.key.cores and (given := control.measured(n))
        ]
        return Ideal(start, tuple(factors)) if len(factors) > 1 else None

    def curve(self, name: str) -> Curve | None:
        """The curve of that legend name, if it was measured."""
        return next((c for c in self.curves if c.name == name), None)


@dataclass(frozen=True)
class PanelGroup:
    """The panels of workloads with the same action: read data, write metadata, ..."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Page:
    """All measurements on one medium in one I/O mode."""

    medium: str
    mode: str
    groups: tuple[PanelGroup, ...]

    @property
    def title(self) -> str:
        """The title in headings."""
        return f"{'no' if self.medium == NO_MEDIUM else self.medium} medium, {self.mode} I/O"

    @property
    def slug(self) -> str:
        """The name in file names."""
        return f"{self.medium}-{self.mode}"

    @property
    def panels(self) -> list[Panel]:
        """All panels, in order."""
        return [p for g in self.groups for p in g.panels]

    @property
    def curves(self) -> list[tuple[Panel, Curve]]:
        """All curves with their panels, in order."""
        return [(panel, curve) for panel in self.panels for curve in panel.curves]

    def alone(self, panel: Panel) -> "Page":
        """A page with this panel only."""
        return replace(self, groups=(PanelGroup("", (panel,)),))

    def changed(self, change: Callable[[Panel], Panel]) -> "Page":
        """A page of changed panels."""
        groups = (PanelGroup(g.title, tuple(map(change, g.panels))) for g in self.groups)
        return replace(self, groups=tuple(groups))

    @property
    def cores(self) -> list[int]:
        """All core counts, rising."""
        return sorted({n for p in self.panels for n in p.cores})

    @property
    def predicted(self) -> bool:
        """Whether a predicted curve is drawn."""
        return any(curve.beyond for _, curve in self.curves)

    @property
    def names(self) -> list[str]:
        """The legend names of all curves, in order."""
        return list(dict.fromkeys(curve.name for _, curve in self.curves))


def _usual_crew(points: Iterable[Point]) -> dict[str, str | int]:
    """The usual crew, as far as each run has a single one, which its label tells."""
    usual: dict[str, str | int] = {}
    for name in (crew.WORKERS_PER_CPU, crew.PLACEMENT):
        by_run: dict[str | None, set[object]] = defaultdict(set)
        for point in points:
            by_run[point.run].add(getattr(point.key, name))
        if all(len(values) == 1 for values in by_run.values()):
            usual[name] = crew.DEFAULTS[name]
    return usual


def _variant(key: CellKey, durations: set[float], usual: Mapping[str, str | int]) -> str:
    parts = [variant] if (variant := key.model_copy(update=usual).variant) else []
    if len(durations) > 1:
        parts.append(f"{key.duration:g} s")
    return " ".join(parts)


def _group(described: Descriptor | None) -> str:
    if described is None:
        return OTHER
    return (
        BACKGROUND if described.background else f"{described.type} {described.action}s".capitalize()
    )


def _panel(
    workload: str,
    variant: str,
    points: list[Point],
    order: list[str],
    described: Descriptor | None,
    there: Layouts,
    controls: Controls,
) -> Panel:
    series: dict[tuple[str, str | None, str | None], list[Point]] = defaultdict(list)
    sides: dict[str | None, set[str | None]] = defaultdict(set)
    for point in points:
        sides[point.run].add(point.key.side)
    for point in points:
        # If a run is a single side, its label already has the side.
        side = None if point.run and len(sides[point.run]) == 1 else point.key.side
        series[point.key.filesystem, side, point.run].append(point)
    base = max(1, described.min_cores) if described else 1
    curves = [
        Curve(
            filesystem,
            side,
            tuple(sorted(series_points, key=lambda p: p.key.cores)),
            base,
            layout.equal if (layout := there.get(run)) else None,
            run,
            controls.get(run),
        )
        for (filesystem, side, run), series_points in series.items()
    ]
    rank = {name: i for i, name in enumerate(order)}
    runs = {run: i for i, run in enumerate(there)}
    curves.sort(
        key=lambda c: (
            rank.get(c.filesystem, len(rank)),
            c.filesystem,
            runs.get(c.run, 0),
            c.side or "",
        )
    )
    layouts = {there.get(curve.run) for curve in curves}
    return Panel(
        workload,
        variant,
        described.title if described else "",
        described.operation if described else "",
        points[0].unit,
        tuple(curves),
        layouts.pop() if len(layouts) == 1 else None,
    )


def arrange(
    points: list[Point],
    filesystems: list[str],
    descriptors: dict[str, Descriptor],
    there: Layout | Layouts | None = None,
    controls: Controls | None = None,
) -> list[Page]:
    """Arrange points for drawing.

    `filesystems` gives the order of the curves, `descriptors` (by id) the titles and the groups;
    workloads without a descriptor are shown as well. `there` is the layout of the machine, if it is
    known, or the layout of each run's machine by its label; a panel of runs with different layouts
    shows none. `controls` are those of each run, by its label.
    File systems that need no medium are on every page of their mode, for comparison.
    """
    layouts: Layouts = there if isinstance(there, Mapping) else {None: there}
    pages: dict[tuple[str, str], list[Point]] = defaultdict(list)
    for point in points:
        pages[point.key.medium, point.key.mode].append(point)
    for mode in {mode for medium, mode in pages if medium != NO_MEDIUM}:
        everywhere = pages.pop((NO_MEDIUM, mode), [])
        for (_, other), own in pages.items():
            own.extend(everywhere if other == mode else [])
    return [
        Page(medium, mode, _groups(own, filesystems, descriptors, layouts, controls or {}))
        for (medium, mode), own in sorted(pages.items())
    ]


def _groups(
    points: list[Point],
    filesystems: list[str],
    descriptors: dict[str, Descriptor],
    there: Layouts,
    controls: Controls,
) -> tuple[PanelGroup, ...]:
    durations: dict[str, set[float]] = defaultdict(set)
    for point in points:
        durations[point.key.workload].add(point.key.duration)
    # Several runs are told apart by their labels, so that their curves share a panel.
    usual = _usual_crew(points) if any(point.run for point in points) else {}
    panels: dict[tuple[str, str], list[Point]] = defaultdict(list)
    for point in points:
        workload = point.key.workload
        panels[workload, _variant(point.key, durations[workload], usual)].append(point)

    def rank(item: tuple[str, str]) -> tuple[bool, bool, str, str, int, str, str]:
        workload, variant = item
        described = descriptors.get(workload)
        last = workload, natural(variant)
        if described is None:
            return (True, False, "", "", 0, *last)
        sharing = SHARING.index(described.sharing)
        return (False, described.background, described.type, described.action, sharing, *last)

    groups: dict[str, list[Panel]] = defaultdict(list)
    for workload, variant in sorted(panels, key=rank):
        described = descriptors.get(workload)
        groups[_group(described)].append(
            _panel(
                workload,
                variant,
                panels[workload, variant],
                filesystems,
                described,
                there,
                controls,
            )
        )
    return tuple(PanelGroup(title, tuple(own)) for title, own in groups.items())
