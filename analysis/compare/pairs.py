# SPDX-License-Identifier: GPL-2.0-only
"""Matches the cells of two sides and extracts their metrics."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
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
from fscale.model.results import Cell, CellKey

Place = tuple[str, str]  # file system and medium


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
    def reason(self) -> str:
        """The most frequent reason; empty if a repetition has a value."""
        return "" if self.values or not self.missing else self.missing.most_common(1)[0][0]

    @property
    def lost(self) -> float | None:
        """The median of these shares; None if one is unknown."""
        known = [share for share in self.disturbed if share is not None]
        return median(known) if known and len(known) == len(self.disturbed) else None


@dataclass(frozen=True)
class Pairing:
    """The tests of a comparison and what could not be paired."""

    tests: list[Test]
    missing_in_base: list[str]
    missing_in_new: list[str]


def subject_of(key: CellKey, place: Place | None = None) -> Subject:
    """The subject of which a cell is a repetition; `place` replaces its file system and medium."""
    filesystem, medium = place or (key.filesystem, key.medium)
    return Subject(
        workload=key.workload,
        filesystem=filesystem,
        medium=medium,
        mode=key.mode,
        cores=(key.cores,),
        duration=key.duration,
        options=tuple(sorted(key.options.items())),
    )


JUDGED = (*VALUES, INSTRUCTIONS)
"""metrics by which a paired run decides whether a point needs more data"""
HALF = 0.5
"""operations that count for a worker which did none, so that a ratio exists"""


def pair(
    base: Iterable[Cell],
    new: Iterable[Cell],
    *,
    interleaved: bool = False,
    looks: tuple[int, ...] = (),
    pair_looks: tuple[int, ...] = (),
    metrics: tuple[Metric, ...] = METRICS,
) -> Pairing:
    """Make one test for each metric of each subject that both sides have.

    If each side has a single file system on a single medium, the two are paired whatever their
    names, and the tests are named after BASE. A cell that failed, or whose value is not a positive
    number, counts as unusable and gives no value. `looks` apply to whole repetitions, `pair_looks`
    to pairs in slices.
    """
    base, new = list(base), list(new)
    places = [_places(cells) for cells in (base, new)]
    common = common_place(base, new)
    sides = [_collect(cells, common, metrics) for cells in (base, new)]
    cut = [_sliced(cells, common) for cells in (base, new)]
    tests = []
    for subject, metric in sorted(sides[0].keys() & sides[1].keys(), key=_order):
        if metric.partition(":")[0] not in metrics:
            continue
        one, other = (
            Observations(
                own, side.values, side.unusable, len(side.disturbed), side.lost, side.reason
            )
            for side, own in zip(
                (s[subject, metric] for s in sides),
                (p[0][0] if common else subject.filesystem for p in places),
                strict=True,
            )
        )
        ratios = {}
        if metric in JUDGED:
            ratios = ratios_of(cut[0].get(subject, {}), cut[1].get(subject, {}), metric)
        own_looks = pair_looks if ratios else looks
        tests.append(Test(subject, metric, one, other, interleaved, own_looks, ratios))
    subjects = [{subject.name for subject, _ in side} for side in sides]
    return Pairing(tests, sorted(subjects[1] - subjects[0]), sorted(subjects[0] - subjects[1]))


def _sliced(cells: Iterable[Cell], place: Place | None) -> dict[Subject, dict[int, Cell]]:
    """Subject -> repetition -> the good sliced cell of a side."""
    found: dict[Subject, dict[int, Cell]] = defaultdict(dict)
    for cell in cells:
        if cell.status == "ok" and (cell.slices or instructions(cell)):
            found[subject_of(cell.key, place)][cell.key.repetition] = cell
    return found


def common_place(base: Iterable[Cell], new: Iterable[Cell]) -> Place | None:
    """BASE's file system and medium if each side has a single one, so that they form a pair."""
    places = _places(base), _places(new)
    return places[0][0] if len(places[0]) == len(places[1]) == 1 else None


def _places(cells: Iterable[Cell]) -> list[Place]:
    return sorted({(c.key.filesystem, c.key.medium) for c in cells})


def _order(item: tuple[Subject, str]) -> tuple[str, str, str, str, tuple[int, ...], str]:
    subject, metric = item
    return (
        subject.workload,
        subject.filesystem,
        subject.medium,
        subject.mode,
        subject.cores,
        metric,
    )


def _lost(cell: Cell) -> float | None:
    taken = cell.extra.get("others_cpus")
    return taken / cell.key.cores if isinstance(taken, int | float) else None


def _collect(
    cells: Iterable[Cell], place: Place | None, metrics: Collection[str]
) -> dict[tuple[Subject, str], _Collected]:
    sides: dict[tuple[Subject, str], _Collected] = defaultdict(_Collected)
    for cell in cells:
        subject = subject_of(cell.key, place)
        repetition = cell.key.repetition
        if cell.key.profile is None:
            for metric in VALUES:
                side = sides[subject, metric]
                value = _value(cell, metric) if cell.status == "ok" else None
                if value is None or not math.isfinite(value) or value <= 0:
                    side.unusable += 1
                    if metric in NAMED and cell.status == "ok":
                        side.missing[why_missing(cell, metric)] += 1
                    continue
                side.values[repetition] = value
                if cell.disturbed is not None and metric in (THROUGHPUT, *NAMED):
                    # A tail, or one worker, may lose far more than its share.
                    side.disturbed.append(_lost(cell) if metric == THROUGHPUT else None)
        if cell.status == "ok":
            for event, count in (cell.counts or {}).items():
                side = sides[subject, COUNT + event]
                if math.isfinite(count) and count >= 0:
                    side.values[repetition] = count
                else:
                    side.unusable += 1
    return {
        key: side
        for key, side in sides.items()
        if side.values or key[1] == THROUGHPUT or (side.missing and key[1] in metrics)
    }


def _value(cell: Cell, metric: str) -> float | None:
    value = VALUES[metric](cell)
    if metric == SLOWEST and value == 0 and cell.bench:
        return HALF * len(cell.bench.workers) / cell.ops
    return value
