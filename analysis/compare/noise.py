# SPDX-License-Identifier: GPL-2.0-only
"""Evaluates an A/A run: spread, drift, steal time, and the smallest detectable change."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import numpy as np
import scipy
from pydantic import Field

from fscale.analysis.compare import sliced
from fscale.analysis.compare.effect import deviation, smallest_change, spread_of
from fscale.analysis.compare.judge import judge
from fscale.analysis.compare.model import Judgement, Subject, Verdict
from fscale.analysis.compare.observations import Test
from fscale.analysis.compare.pairs import match_cells, pair, subject_of
from fscale.analysis.compare.sequential import growing, weight
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import Sides
from fscale.analysis.compare.sliced import FIRST_LOOK
from fscale.model.bench import Strict
from fscale.model.limits import MOST_REPETITIONS
from fscale.model.results import Cell


class PointNoise(Strict):
    """One metric of one point. Values are fractions unless stated otherwise."""

    subject: Subject
    metric: str
    repetitions: int = Field(description="of both sides together")
    cv: float = Field(description="standard deviation of the logarithms")
    robust_cv: float = Field(description="1.4826 x MAD of the logarithms")
    aligned_cv: float = Field(
        description="the same after interleaving has removed the drift; in slices that of the pairs"
    )
    drift: float = Field(description="over the run: Theil and Sen's slope of the logarithms")
    neighbour_correlation: float = Field(description="of successive repetitions")
    smallest_change: float = Field(
        description="detected with `power` by 10 repetitions per side, or 10 pairs"
    )
    smallest_in_budget: float = Field(description="detected with `power` within the budget")
    repetitions_in_budget: int = Field(
        description="per side (in slices: pairs), if all points share the budget"
    )
    boots_needed: int | None = Field(
        default=None,
        description="boots per side that detect the wanted change with `power`; null: more than "
        f"{MOST_REPETITIONS}, or repetitions are no boots",
    )
    verdict: Verdict = Field(description="of A against A: anything but same is noise")
    between_pairs: float | None = Field(
        default=None, description="standard deviation of the pairs' log ratios; in slices"
    )
    within_pairs: float | None = Field(
        default=None,
        description="standard error of one pair's log ratio, from its blocks; in slices",
    )


class NoiseReport(Strict):
    """The output of `fscale noise --json`."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    points: list[PointNoise]
    steal: float | None = Field(
        description="steal time as a share of the CPU time under test; null: not recorded"
    )
    worst_steal: float | None = Field(
        description="the highest steal share of one repetition; null: not recorded"
    )
    others_cpus: float | None = Field(
        description="mean number of CPUs that other processes used; null: not recorded"
    )
    disturbed: int | None = Field(
        description="repetitions that load of others disturbed; null: not recorded"
    )
    repetitions: int
    budget_minutes: float
    wanted: float = Field(description="the change that has to be detected")
    boot_seconds: float | None = Field(
        default=None,
        description="from the first cell of a boot to that of the next; null: repetitions are no "
        "boots",
    )

    def blind(self) -> list[PointNoise]:
        """The points at which the wanted change would not be detected within the budget."""
        return [p for p in self.points if p.smallest_in_budget > self.wanted]


STANDARD = 10


def measure_noise(
    sides: Sides, settings: Settings, budget_minutes: float, wanted: float
) -> NoiseReport:
    """Evaluate an interleaved A/A run.

    Raises:
        FscaleError: it has too few repetitions.
    """
    cells = [c for c in (*sides.base_cells, *sides.new_cells) if c.status == "ok"]
    by_subject: dict[Subject, list[Cell]] = defaultdict(list)
    for cell in cells:
        by_subject[subject_of(cell.key)].append(cell)
    boot_seconds = _boot_seconds(sides, cells)
    a_pair = 2 * (boot_seconds or 0) or sum(map(_seconds, by_subject.values()))
    affordable = max(2, int(60 * budget_minutes / a_pair))
    tests = pair(
        match_cells(sides.base_cells, sides.new_cells), interleaved=True, looks=sides.looks
    ).tests
    level = settings.fdr / len(tests)
    points = [
        _point(test, by_subject[test.subject], affordable, level, settings.power, j)
        for test, j in zip(tests, judge(tests, settings), strict=True)
        if not test.counted
    ]
    if boot_seconds is not None:
        for point in points:
            point.boots_needed = _boots_needed(point.aligned_cv, level, settings.power, wanted)
    steals = [c.cpu.steal / c.cpu.total for c in cells if c.cpu and c.cpu.total > 0]
    others = [c.others_cpu_seconds / c.seconds for c in cells if c.others_cpu_seconds is not None]
    return NoiseReport(
        points=points,
        steal=float(np.mean(steals)) if steals else None,
        worst_steal=max(steals, default=None),
        others_cpus=float(np.mean(others)) if others else None,
        disturbed=_disturbed(cells),
        repetitions=len(cells),
        budget_minutes=budget_minutes,
        wanted=wanted,
        boot_seconds=boot_seconds,
    )


def _disturbed(cells: Sequence[Cell]) -> int | None:
    marked = sum(c.disturbed is not None for c in cells)
    recorded = any(c.extra.get("others_cpus") is not None for c in cells)
    return marked if marked or recorded else None


def _seconds(cells: Sequence[Cell]) -> float:
    """Duration of a repetition of a point on both sides; the sides of a slice pair run together."""
    sides = 1 if any(c.slices for c in cells) else 2
    return sides * float(np.mean([c.wall_seconds or 0.0 for c in cells]))


def _boot_seconds(sides: Sides, cells: Sequence[Cell]) -> float | None:
    """The time between boots if each repetition is one, else None."""
    began: dict[tuple[str | None, int], float] = {}
    for cell in cells:
        when = datetime.fromisoformat(cell.started).timestamp()
        boot = cell.key.side, cell.key.repetition
        began[boot] = min(when, began.get(boot, when))
    boots = sides.base_results.run.machine.boots or []
    if len(boots) < max(2, len(began)):
        return None
    return (max(began.values()) - min(began.values())) / (len(began) - 1)


def _boots_needed(spread: float, level: float, power: float, wanted: float) -> int | None:
    numbers = range(2, MOST_REPETITIONS + 1)
    seen = (n for n in numbers if smallest_change(spread, n, level, power) <= wanted)
    return next(seen, None)


def _visible(spread: float, pairs: int, level: float, power: float) -> float:
    """The change that so many pairs in slices detect, with the cost of interim looks included."""
    looks = growing(FIRST_LOOK, pairs) if pairs >= FIRST_LOOK else (pairs,)
    return sliced.smallest_change(spread, looks[-1], level * weight(len(looks)), power)


def _point(
    test: Test,
    cells: Sequence[Cell],
    affordable: int,
    level: float,
    power: float,
    judgement: Judgement,
) -> PointNoise:
    started = {(c.key.side, c.key.repetition): c.started for c in cells}
    timed = sorted(
        (datetime.fromisoformat(started[side, r]).timestamp(), r, side, np.log(v))
        for side, measured in (("A", test.base), ("B", test.new))
        for r, v in measured.values.items()
    )
    when, *_, logs = (np.array(column) for column in zip(*timed, strict=True))
    if test.ratios:
        spread = max(judgement.between_pairs or 0, judgement.within_pairs or 0)
        changes = [_visible(spread, n, level, power) for n in (STANDARD, affordable)]
    else:
        spread = spread_of(test.samples())
        changes = [smallest_change(spread, n, level, power) for n in (STANDARD, affordable)]
    still = np.ptp(logs) == 0
    return PointNoise(
        subject=test.subject,
        metric=test.metric,
        repetitions=len(logs),
        cv=float(logs.std(ddof=1)),
        robust_cv=deviation(logs),
        aligned_cv=spread,
        drift=float(np.ptp(when) * scipy.stats.theilslopes(logs, when).slope)
        if np.ptp(when) > 0
        else 0.0,
        neighbour_correlation=0.0 if still else float(np.corrcoef(logs[:-1], logs[1:])[0, 1]),
        smallest_change=changes[0],
        smallest_in_budget=changes[1],
        repetitions_in_budget=affordable,
        verdict=judgement.verdict,
        between_pairs=judgement.between_pairs,
        within_pairs=judgement.within_pairs,
    )
