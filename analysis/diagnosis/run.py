# SPDX-License-Identifier: GPL-2.0-only
"""The diagnosis of a whole run: all profiled points with curve and verdict, and the overhead."""

import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fscale.analysis.control import control_of
from fscale.analysis.curves import Curve, arrange
from fscale.analysis.diagnosis import simulated
from fscale.analysis.diagnosis.rules import table3
from fscale.analysis.diagnosis.triage import Suspect, Triage, triage
from fscale.analysis.diagnosis.verdict import CurveVerdict, judge_point, suspects_of
from fscale.analysis.reader import Results
from fscale.analysis.summary import summarise
from fscale.model.errors import FscaleError
from fscale.model.results import Cell, CellKey
from fscale.model.topology import machine_layout
from fscale.model.words import natural

if TYPE_CHECKING:
    from fscale.analysis.diagnosis.usl import Fit


@dataclass(frozen=True)
class Diagnosed:
    """A profiled point with its triage, curve, verdict and suspects."""

    triage: Triage
    curve: Curve | None
    judgement: CurveVerdict
    suspects: list[Suspect]  # those that can explain lost throughput

    @property
    def key(self) -> CellKey:
        """The key of one of its profiling cells."""
        return self.triage.key


@dataclass(frozen=True)
class Cost:
    """Throughput of profiled cells relative to scored cells of the same points."""

    profiler: str
    ratio: float  # median over points
    low: float
    high: float
    points: int

    @property
    def sentence(self) -> str:
        """The cost in words; a profiled cell that is faster shows only noise."""
        shown = f"{self.ratio:.3f} of the unprofiled throughput ({self.low:.3f} to {self.high:.3f})"
        cost = f"costs {1 - self.ratio:.1%}" if self.ratio < 1 else "has no measurable cost"
        return f"the {self.profiler} profile {cost}: {shown}"


@dataclass(frozen=True)
class Law:
    """The scaling law of one curve, or the reason why there is none."""

    curve: Curve
    workload: str
    fit: "Fit | None"
    """by the number of cores with a worker that counts: a background writer's core is none"""
    reason: str | None

    @property
    def beside(self) -> int:
        """The number of cores that a background writer takes."""
        first = self.curve.points[0]
        return first.key.cores - first.worked_cores


@dataclass(frozen=True)
class Diagnosis:
    """The diagnosis of a run."""

    points: list[Diagnosed]
    costs: list[Cost]
    laws: list[Law]
    warnings: list[str]


def unprofiled(key: CellKey) -> CellKey:
    """The key of the scored point to which a profiling cell belongs."""
    return key.model_copy(update={"profile": None, "repetition": 1})


def curve_key(key: CellKey) -> str:
    """The identity of the curve to which a cell belongs."""
    return key.model_copy(update={"profile": None, "repetition": 1, "cores": 1}).id


def profiled(results: Results) -> dict[str, list[Cell]]:
    """The profiling cells by their scored point; simulated cells are both."""
    groups: dict[str, list[Cell]] = defaultdict(list)
    for cell in results.cells:
        simulated_here = cell.simulation is not None and cell.key.side is None
        if cell.key.profile is not None or simulated_here:
            groups[unprofiled(cell.key).point].append(cell)
    return dict(groups)


def diagnose(results: Results, points: Iterable[str] | None = None) -> Diagnosis:
    """Diagnose the run, or only the scored points (`CellKey.point`) in `points`."""
    groups = profiled(results)
    selected = set(groups if points is None else points)
    triages: dict[str, Triage] = {}
    needed = {
        curve_key(groups[p][0].key) for p in selected if p in groups
    }  # includes the base of each curve
    for point, cells in groups.items():
        if curve_key(cells[0].key) not in needed:
            continue
        ones = [c for c in cells if c.status == "ok"]
        if ones:
            seen = ones[0].simulation is not None
            triages[point] = simulated.triage(ones) if seen else triage(results.path, ones)
    pages = arrange(
        summarise(results.scored, hosts=results.hosts),
        list(results.run.filesystems),
        results.descriptors,
        machine_layout(results.run.machine),
        {None: control_of(results)},
    )
    curves = {
        curve_key(curve.points[0].key): (panel.name, curve)
        for page in pages
        for panel, curve in page.curves
    }
    bases: dict[str, Triage] = {}
    for point_triage in triages.values():
        _, curve = curves.get(curve_key(point_triage.key), ("", None))
        if point_triage.key.cores == (curve.base_cores if curve else 1):
            bases[curve_key(point_triage.key)] = point_triage
    diagnosed = []
    for point, point_triage in triages.items():
        if point not in selected:
            continue
        _, curve = curves.get(curve_key(point_triage.key), ("", None))
        base = bases.get(curve_key(point_triage.key))
        base = None if base is point_triage else base
        judgement = judge_point(point_triage, curve, base)
        diagnosed.append(Diagnosed(point_triage, curve, judgement, suspects_of(point_triage, base)))
    diagnosed.sort(key=lambda d: (natural(d.key.load), d.key.filesystem, d.key.medium, d.key.cores))
    return Diagnosis(
        diagnosed,
        costs(results),
        [_law(name, curve) for name, curve in curves.values()],
        [w for w in results.run.warnings if w.startswith("profile ")],
    )


def _law(name: str, curve: Curve) -> Law:
    # usl imports scipy.optimize, which would double the start-up time of every command.
    from fscale.analysis.diagnosis import usl  # noqa: PLC0415

    # The law assumes equal processors, so hardware threads that share a core are left out.
    points = [p for p in curve.points if p.key.cores <= (curve.physical or p.key.cores)]
    # If a core itself gives less than at the base, that is not contention: compensate for it.
    pairs = [
        (p.worked_cores, float(rate) / curve.efficiency(p.key.cores))
        for p in points
        for rate in p.values
    ]
    try:
        return Law(curve, name, usl.fit(*map(list, zip(*pairs, strict=True))), None)
    except FscaleError as error:
        return Law(curve, name, None, str(error))


def costs(results: Results) -> list[Cost]:
    """The overhead of each profiler, from profiled and scored cells of the same run."""
    scored = {p.key.point: p.median for p in summarise(results.scored)}
    ratios: dict[str, list[float]] = defaultdict(list)
    by_point: dict[tuple[str, str], list[float]] = defaultdict(list)
    for cell in results.cells:
        if cell.status == "ok" and cell.key.profile is not None:
            point = unprofiled(cell.key).point
            by_point[cell.key.profile, point].append(cell.ops_per_second)
    for (profiler, point), rates in by_point.items():
        if point in scored:
            ratios[profiler].append(statistics.median(rates) / scored[point])
    return [
        Cost(profiler, statistics.median(values), min(values), max(values), len(values))
        for profiler, values in sorted(ratios.items())
    ]


@dataclass(frozen=True)
class BottleneckRow:
    """A row of the bottleneck table, in the form of FxMark's Table 3."""

    filesystem: str
    bottleneck: str
    object: str
    scope: str
    operations: list[str]
    evidence: str
    table3: str | None


def table(diagnosis: Diagnosis, results: Results) -> list[BottleneckRow]:
    """The objects that limit any point of the run, by file system, the largest share first."""
    groups: dict[tuple[str, str], list[tuple[Diagnosed, Suspect]]] = defaultdict(list)
    for point in diagnosis.points:
        cause = point.judgement.cause
        if cause is not None:
            groups[point.key.filesystem, cause.name.object].append((point, cause))
    rows = []
    for (filesystem, name), curves in groups.items():
        point, worst = max(curves, key=lambda item: item[1].share)
        rule = worst.name.rule
        known = table3().get(rule.table3) if rule and rule.table3 else None
        workloads = list(dict.fromkeys(p.key.workload for p, _ in curves))
        rows.append(
            (
                worst.share,
                BottleneckRow(
                    filesystem,
                    known.bottleneck if known else worst.sort,
                    name,
                    worst.name.scope or "not known",
                    [_operation(results, w) for w in workloads],
                    f"{point.key.load} at {point.key.cores} cores: "
                    f"{100 * worst.share:.1f}% of the cores' time; named by "
                    f"{worst.evidence}",
                    rule.table3 if rule else None,
                ),
            )
        )
    order = list(results.run.filesystems)
    rows.sort(
        key=lambda r: (order.index(r[1].filesystem) if r[1].filesystem in order else 99, -r[0])
    )
    return [row for _, row in rows]


def _operation(results: Results, workload: str) -> str:
    described = results.descriptors.get(workload)
    return f"{workload}: {described.operation}" if described else workload


def flame_name(key: CellKey, profiler: str) -> str:
    """The file name of a flame graph."""
    return str(Path(f"{unprofiled(key).point}-{profiler}.svg"))
