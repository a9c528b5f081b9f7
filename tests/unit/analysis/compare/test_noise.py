# SPDX-License-Identifier: GPL-2.0-only
"""What an A/A run of known rates says about a machine."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from fscale.analysis.compare.effect import smallest_change
from fscale.analysis.compare.noise import NoiseReport, PointNoise, measure_noise
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import Sides, open_sides
from fscale.analysis.compare.sliced import paired, ratios_of
from fscale.analysis.compare.sliced import smallest_change as sliced_change
from fscale.analysis.metrics import CPU_EFFICIENCY, THROUGHPUT
from fscale.model.bench import CpuTimes
from fscale.model.results import Cell, CellKey
from tests.support import synthetic
from tests.support.synthetic import cell, sliced, write_run

TIMES = CpuTimes(user=1, system=1, idle=0, iowait=0, irq=0, softirq=0, steal=0)


def key(side: str, repetition: int, workload: str = "DRBL") -> CellKey:
    return synthetic.key(repetition, workload=workload, side=side)


def run(rates: list[float], **changes: Any) -> list[Cell]:
    """A B B A, a second each, at these rates."""
    cells = []
    for n, rate in enumerate(rates):
        side, repetition = "ABBA"[n % 4], n // 4 * 2 + (n % 4 > 1) + 1
        started = f"2026-01-01T00:00:{n:02}+00:00"
        fields = {"started": started, "own_cpu_seconds": None, "cpu": TIMES} | changes
        cells.append(cell(key(side, repetition), rate, **fields))
    return cells


def sides(directory: Path, cells: list[Cell]) -> Sides:
    write_run(directory, cells, filesystems=["ext4"])
    record = {"schema": 1, "base": "ext4", "new": "ext4", "looks": []}
    (directory / "ab.json").write_text(json.dumps(record))
    return open_sides(directory, None)


def report(
    directory: Path, cells: list[Cell], minutes: float = 1, wanted: float = 0.1
) -> NoiseReport:
    return measure_noise(sides(directory, cells), Settings(), minutes, wanted)


def only(directory: Path, cells: list[Cell], minutes: float = 1) -> PointNoise:
    (point,) = report(directory, cells, minutes).points
    return point


def test_a_rate_that_grows_evenly_is_all_drift(tmp_path: Path) -> None:
    logs = [0.01 * n for n in range(24)]
    found = only(tmp_path, run([1e5 * math.exp(x) for x in logs]))
    assert (found.subject.workload, found.metric, found.repetitions) == ("DRBL", THROUGHPUT, 24)
    assert found.drift == pytest.approx(0.23)
    assert found.neighbour_correlation == pytest.approx(1)
    # Of 0, 1, ..., 23 hundredths: the variance is n (n + 1) / 12, the median deviation 6.
    assert found.cv == pytest.approx(0.01 * math.sqrt(24 * 25 / 12))
    assert found.robust_cv == pytest.approx(0.06 * 1.4826, rel=1e-3)
    # A and B have the same mean in each four, and alignment leaves the spread within the blocks.
    assert found.aligned_cv < found.robust_cv / 2
    assert found.verdict == "same"


def test_a_rate_that_goes_up_and_down_has_no_drift(tmp_path: Path) -> None:
    found = only(tmp_path, run([1e5, 1.1e5] * 12))
    assert found.drift == pytest.approx(0, abs=1e-3)
    assert found.neighbour_correlation == pytest.approx(-1)
    still = only(tmp_path / "still", run([1e5] * 24))
    assert (still.neighbour_correlation, still.cv, still.smallest_change) == (0.0, 0.0, 0.0)
    at_once = only(tmp_path / "once", run([1e5 + n for n in range(24)], started="2026-01-01"))
    assert at_once.drift == 0.0


def test_drift_goes_by_the_clock(tmp_path: Path) -> None:
    """Repetitions come at uneven times, within less than a second."""
    times = [0.0005 * n * n for n in range(24)]
    cells = run([1e5 * math.exp(0.1 * t) for t in times])
    for one, time in zip(cells, times, strict=True):
        one.started = f"2026-01-01T00:00:00.{round(1e6 * time):06}+00:00"
    assert only(tmp_path, cells).drift == pytest.approx(0.1 * times[-1], rel=1e-3)


@pytest.mark.parametrize(
    ("minutes", "pairs", "last", "looks"), [(0.1, 4, 4, 1), (0.25, 10, 8, 2), (0.4, 16, 15, 4)]
)
@pytest.mark.parametrize("wide", ["between", "within"])
def test_what_slices_show_pays_for_the_looks_on_the_way(
    tmp_path: Path, minutes: float, pairs: int, last: int, looks: int, wide: str
) -> None:
    between, within = (0.03, 0.001) if wide == "between" else (0.001, 0.2)
    cells = []
    for repetition in range(1, 11):
        pair_factor = 1 + between * (repetition % 3)
        for side, factor in (("A", 1.0), ("B", pair_factor)):
            swing = within if side == "B" else 0.0
            rates = [1e6 * factor * (1 + swing * (-1) ** block * block / 10) for block in range(10)]
            made = sliced(key(side, repetition), rates)
            cells.append(made.model_copy(update={"wall_seconds": 1.5}))
    own = sides(tmp_path, cells)
    found = next(
        p
        for p in measure_noise(own, Settings(metrics=("throughput",)), minutes, 0.1).points
        if p.metric == THROUGHPUT
    )
    ratios = ratios_of(
        {c.key.repetition: c for c in own.base_cells},
        {c.key.repetition: c for c in own.new_cells},
        THROUGHPUT,
    )
    said = paired(ratios, None, 0.95)
    assert (found.between_pairs, found.within_pairs) == (said.between, said.within)
    assert (said.between > said.within) == (wide == "between")
    assert found.aligned_cv == max(said.between, said.within)
    assert found.repetitions_in_budget == pairs
    level = 0.01 / 2  # throughput and per CPU second
    # Ten pairs are looked at after six and eight.
    shown = sliced_change(found.aligned_cv, 8, level / 6, 0.95)
    assert found.smallest_change == pytest.approx(shown)
    shown = sliced_change(found.aligned_cv, last, level / (looks * (looks + 1)), 0.95)
    assert found.smallest_in_budget == pytest.approx(shown)


def test_the_budget_is_shared_by_all_points(tmp_path: Path) -> None:
    rates = [1e5 * (1 + 0.01 * (n * 7 % 5)) for n in range(24)]
    one = run(rates, wall_seconds=2.0)
    # A pair takes 4 s, of which a minute has 15; a quarter of a second would be none, two is least.
    found = only(tmp_path / "one", one)
    assert found.repetitions_in_budget == 15
    assert only(tmp_path / "less", one, minutes=0.1).repetitions_in_budget == 2
    assert only(tmp_path / "more", one, minutes=10).repetitions_in_budget == 150
    level = 0.01 / 1
    assert found.smallest_change == smallest_change(found.aligned_cv, 10, level, 0.95)
    assert found.smallest_in_budget == smallest_change(found.aligned_cv, 15, level, 0.95)
    other = [
        c.model_copy(update={"id": k.id, "key": k, "wall_seconds": 4.0})
        for c in one
        for k in [c.key.model_copy(update={"workload": "MWCL"})]
    ]
    both = report(tmp_path / "both", one + other)
    # 4 s and 8 s for a pair of each.
    assert [p.repetitions_in_budget for p in both.points] == [5, 5]
    assert [p.smallest_change for p in both.points] == [
        smallest_change(p.aligned_cv, 10, 0.01 / 2, 0.95) for p in both.points
    ]


def test_boots_cost_the_time_between_them(tmp_path: Path) -> None:
    """A boot a second, of which a cell takes a tenth."""
    cells = run([1e5 * (1 + 0.01 * (n * 7 % 5)) for n in range(24)], wall_seconds=0.1)
    of = sides(tmp_path, cells)
    assert measure_noise(of, Settings(), 1, 0.1).boot_seconds is None
    of.base_results.run.machine.boots = [str(n) for n in range(24)]
    found = measure_noise(of, Settings(), 1, 0.05)
    (point,) = found.points
    assert (found.boot_seconds, point.repetitions_in_budget) == (1.0, 30)
    assert point.boots_needed is not None
    seen = [smallest_change(point.aligned_cv, point.boots_needed - n, 0.01, 0.95) for n in (0, 1)]
    assert seen[0] <= 0.05 < seen[1]
    assert measure_noise(of, Settings(), 1, 1e-5).points[0].boots_needed is None


def test_steal_others_and_disturbed_repetitions(tmp_path: Path) -> None:
    cells = run([1e5 + n for n in range(12)], others_cpu_seconds=0.25, seconds=0.5)
    cells[0].cpu = TIMES.model_copy(update={"steal": 2.0})
    cells[1].cpu = None
    cells[2].cpu = TIMES.model_copy(update={"user": 0, "system": 0})
    cells[7].cpu = TIMES.model_copy(update={"user": 0.25, "system": 0.25, "steal": 0.125})
    cells[3].others_cpu_seconds = None
    cells[4].others_cpu_seconds = 0.75
    cells[5].disturbed = "load"
    cells[6].status, cells[6].others_cpu_seconds = "error", 100.0
    found = report(tmp_path, cells, minutes=2, wanted=0.05)
    # Of 11 good ones one had no times and one none at all; half of the first's time was stolen.
    # Another had a fifth of its little taken.
    assert (found.worst_steal, found.steal) == pytest.approx((0.5, (0.5 + 0.2) / 9))
    assert found.others_cpus == pytest.approx((9 * 0.5 + 1.5) / 10)
    assert (found.disturbed, found.repetitions) == (1, 11)
    assert (found.budget_minutes, found.wanted) == (2, 0.05)
    bare = report(tmp_path / "bare", run([1e5] * 12, cpu=None, others_cpu_seconds=None))
    assert (bare.steal, bare.worst_steal, bare.others_cpus) == (None, None, None)


def test_points_are_blind_beyond_the_wanted_change(tmp_path: Path) -> None:
    found = report(tmp_path, run([1e5 * (1 + 0.01 * (n * 7 % 5)) for n in range(24)]))
    change = found.points[0].smallest_in_budget
    assert 0.001 < change < 0.1
    assert found.blind() == []
    assert found.model_copy(update={"wanted": change}).blind() == []
    assert found.model_copy(update={"wanted": change - 1e-9}).blind() == found.points


def test_counted_work_has_no_noise_of_the_clock(tmp_path: Path) -> None:
    cells = run([1e5 + n for n in range(24)], own_cpu_seconds=0.5, counts={"alloc": 1.0})
    assert [p.metric for p in report(tmp_path, cells).points] == [CPU_EFFICIENCY, THROUGHPUT]
