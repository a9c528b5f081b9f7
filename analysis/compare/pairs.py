# SPDX-License-Identifier: GPL-2.0-only
"""Matches the cells of two sides by subject and extracts their metrics."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from fscale.analysis.compare.model import Subject
from fscale.analysis.compare.observations import Observations, Test
from fscale.analysis.compare.sliced import instructions, ratios_of
from fscale.analysis.metrics import (
    COUNT,
    INSTRUCTIONS,
    METRICS,
    NAMED,
    SLOWEST,
    THROUGHPUT,
    VALUES,
    Metric,
    why_missing,
)
from fscale.model.crew import WORKERS_PER_CPU
from fscale.model.results import Cell, CellKey
from fscale.model.words import natural

Common = Mapping[str, str | int]
"""parts of a cell's key in which sides may differ and match, with the values of BASE"""
Points = dict[Subject, tuple[list[Cell], list[Cell]]]
"""the cells of BASE and NEW by their subject"""


@dataclass
class _Collected:
    """The values of one subject and metric on one side, while they are collected."""

    values: dict[int, float] = field(default_factory=dict)
    unusable: int = 0
    disturbed: list[float | None] = field(default_factory=list)
    """for each disturbed repetition, the share of its CPU time lost to others; None: unknown"""
    missing: Counter[str] = field(default_factory=Counter)
    """why good repetitions have no value, and how many"""

    @property
    def lost(self) -> float | None:
        """The median of these shares; None if one is unknown."""
        known = [share for share in self.disturbed if share is not None]
        return median(known) if known and len(known) == len(self.disturbed) else None

    def drop(self, why: str) -> None:
        """Leave the values out."""
        self.missing[why] += len(self.values)
        self.values = {}

    def observations(self, cells: Sequence[Cell]) -> Observations:
        """These values of `cells`."""
        return Observations(
            cells[0].key.filesystem,
            self.values,
            self.unusable,
            len(self.disturbed),
            self.lost,
            self.missing.total(),
            next((reason for reason, _ in self.missing.most_common(1)), ""),
        )


@dataclass(frozen=True)
class Pairing:
    """The tests of a comparison and what could not be paired."""

    tests: list[Test]
    missing_in_base: list[str]
    missing_in_new: list[str]


def subject_of(key: CellKey, common: Common | None = None) -> Subject:
    """The subject of which a cell is a repetition; `common` replaces parts of its key."""
    named = key.model_copy(update=common) if common else key
    workers = [(name, n) for name, n in named.crew.items() if name == WORKERS_PER_CPU]
    return Subject(
        workload=named.workload,
        filesystem=named.filesystem,
        medium=named.medium,
        mode=named.mode,
        cores=(named.cores,),
        duration=named.duration,
        options=(*sorted(named.options.items()), *workers),
    )


def common_of(sides: Sequence[Collection[CellKey]]) -> Common:
    """The parts of which each side has a single value: cells match whatever the others' value."""
    common: dict[str, str | int] = {}
    for names in (("filesystem", "medium"), (WORKERS_PER_CPU,)):
        values = [{tuple(getattr(key, name) for name in names) for key in keys} for keys in sides]
        if all(len(one) == 1 for one in values):
            common |= zip(names, next(iter(values[0])), strict=True)
    return common


JUDGED = (*VALUES, INSTRUCTIONS)
"""metrics by which a paired run decides whether a point needs more data"""
_NO_RATIO = "no pair of turns has enough blocks for a ratio"
HALF = 0.5
"""operations that count for a worker which did none, so that a ratio exists"""


def match_cells(base: Collection[Cell], new: Collection[Cell]) -> Points:
    """Match the cells of both sides by subject; a subject that one side lacks has no cells there.

    If each side has a single file system on a single medium, the two are paired whatever their
    names, and so are single numbers of workers per CPU; the subjects are named after BASE.
    """
    common = common_of([[cell.key for cell in cells] for cells in (base, new)])
    points: Points = defaultdict(lambda: ([], []))
    for side, cells in enumerate((base, new)):
        for cell in cells:
            points[subject_of(cell.key, common)][side].append(cell)
    return dict(points)


def pair(
    points: Points,
    *,
    interleaved: bool = False,
    looks: tuple[int, ...] = (),
    pair_looks: tuple[int, ...] = (),
    metrics: tuple[Metric, ...] = METRICS,
) -> Pairing:
    """Make one test for each metric of each subject that both sides have.

    A cell that failed, or whose value is not a positive number, counts as unusable and gives no
    value. `looks` apply to whole repetitions, `pair_looks` to pairs in slices.
    """
    tests = []
    lacking: tuple[list[str], list[str]] = ([], [])
    for subject, cells in points.items():
        sides = [_collect(side, metrics) for side in cells]
        for number, side in enumerate(sides):
            if not side and sides[1 - number]:
                lacking[number].append(subject.name)
        sliced_base, sliced_new = map(_sliced, cells)
        in_turns = all(
            one and all(c.slices for c in one.values()) for one in (sliced_base, sliced_new)
        )
        for metric in sides[0].keys() & sides[1].keys():
            known = any(side[metric].values for side in sides) or metric in (THROUGHPUT, *NAMED)
            if not known or metric.partition(":")[0] not in metrics:
                continue
            ratios = ratios_of(sliced_base, sliced_new, metric) if metric in JUDGED else {}
            if in_turns and metric in JUDGED and not ratios:
                for side in sides:
                    side[metric].drop(_NO_RATIO)
            base, new = (side[metric].observations(c) for side, c in zip(sides, cells, strict=True))
            used_looks = pair_looks if ratios else looks
            tests.append(Test(subject, metric, base, new, interleaved, used_looks, ratios))
    return Pairing(sorted(tests, key=_order), sorted(lacking[0]), sorted(lacking[1]))


def _sliced(cells: Iterable[Cell]) -> dict[int, Cell]:
    """Repetition -> the good sliced cell of a point on one side."""
    return {
        cell.key.repetition: cell
        for cell in cells
        if cell.status == "ok" and (cell.slices or instructions(cell))
    }


def _order(test: Test) -> tuple[str, str, str, str, str, tuple[int, ...], str]:
    subject = test.subject
    return (
        subject.workload,
        subject.filesystem,
        subject.medium,
        subject.mode,
        natural(subject.load),
        subject.cores,
        test.metric,
    )


def _lost(cell: Cell) -> float | None:
    cpus = cell.extra.get("others_cpus")
    return cpus / cell.key.cores if isinstance(cpus, int | float) else None


def _collect(cells: Sequence[Cell], metrics: Collection[str]) -> dict[str, _Collected]:
    """Metric -> its values in the cells of a point on one side."""
    by_metric: dict[str, _Collected] = defaultdict(_Collected)
    events: dict[str | None, set[str]] = defaultdict(set)
    for cell in cells:
        events[cell.key.profile].update(cell.counts or {})
    for cell in cells:
        repetition = cell.key.repetition
        if cell.key.profile is None:
            for metric in VALUES:
                side = by_metric[metric]
                value = _value(cell, metric) if cell.status == "ok" else None
                if value is None or not math.isfinite(value) or value <= 0:
                    side.unusable += 1
                    if cell.status == "ok" and (why := why_missing(cell, metric)):
                        side.missing[why] += 1
                    continue
                side.values[repetition] = value
                if cell.disturbed is not None and metric in (THROUGHPUT, *NAMED):
                    # A tail, or one worker, may lose far more than its share.
                    side.disturbed.append(_lost(cell) if metric == THROUGHPUT else None)
        if cell.status == "ok":
            for event in events[cell.key.profile]:
                side, count = by_metric[COUNT + event], (cell.counts or {}).get(event, math.nan)
                if math.isfinite(count) and count >= 0:
                    side.values[repetition] = count
                else:
                    side.unusable += 1
                    if event not in (cell.counts or {}):
                        side.missing["it was not counted"] += 1
    return {
        metric: side
        for metric, side in by_metric.items()
        if side.values or metric == THROUGHPUT or (side.missing and metric in metrics)
    }


def _value(cell: Cell, metric: str) -> float | None:
    value = VALUES[metric](cell)
    if metric == SLOWEST and value == 0 and cell.bench:
        return HALF * len(cell.bench.workers) / cell.ops
    return value
