# SPDX-License-Identifier: GPL-2.0-only
"""Results whose cells changed over from hotplug to affinity: no point pools both."""

import re
from collections import Counter
from pathlib import Path

import pytest

from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.analysis.reader import Results, load
from fscale.analysis.summary import summarise
from fscale.model.results import Cell, CellKey
from tests.support import synthetic
from tests.support.synthetic import cell, write_run


def key(cores: int, repetition: int, side: str | None = None) -> CellKey:
    return synthetic.key(
        repetition, filesystem="ext4" if side != "B" else "xfs", cores=cores, side=side
    )


def mixed(cores: int, by_hotplug: int, by_affinity: int, side: str | None = None) -> list[Cell]:
    """Hotplug first, at 1,000 a second; then by affinity, at 2,000."""
    both = ["hotplug"] * by_hotplug + ["affinity"] * by_affinity
    return [
        cell(key(cores, n, side), 2000 if one == "affinity" else 1000, cpu_control=one)
        for n, one in enumerate(both, 1)
    ]


def read(path: Path, cells: list[Cell]) -> Results:
    return load(write_run(path, cells))


@pytest.mark.parametrize(
    ("by_hotplug", "by_affinity", "median"), [(2, 5, 2000), (5, 2, 1000), (3, 3, 1000)]
)
def test_a_point_is_of_the_control_of_most_of_its_cells(
    tmp_path: Path, by_hotplug: int, by_affinity: int, median: float
) -> None:
    results = read(tmp_path / "x", mixed(1, by_hotplug, by_affinity))
    (point,) = summarise(results.scored)
    assert (point.median, point.n) == (median, max(by_hotplug, by_affinity))
    assert point.spread.low == point.spread.high == median
    left = min(by_hotplug, by_affinity)
    assert Counter(c.status for c in results.cells) == Counter(ok=point.n, invalid=left)
    assert any(warning.startswith(f"{left} cells are left out") for warning in results.run.warnings)


def test_points_of_two_controls_are_warned_of(tmp_path: Path) -> None:
    results = read(tmp_path / "x", [*mixed(1, 3, 0), *mixed(2, 0, 3)])
    assert len(results.scored) == 6
    (said,) = [text for text in results.run.warnings if "affinity, with all CPUs online" in text]
    assert re.match(r"1 points .* hotplug and 1 by affinity", said)


def test_a_run_of_one_control_is_left_alone(tmp_path: Path) -> None:
    for number, cells in enumerate((mixed(1, 3, 0), mixed(1, 0, 3))):
        results = read(tmp_path / str(number), cells)
        assert len(results.scored) == 3
        assert results.run.warnings == []


def test_both_sides_of_a_comparison_keep_the_same_control(tmp_path: Path) -> None:
    results = read(tmp_path / "x", [*mixed(1, 4, 1, "A"), *mixed(1, 2, 3, "B")])
    assert {c.cpu_control for c in results.scored} == {"hotplug"}
    assert Counter(c.key.side for c in results.scored) == Counter(A=4, B=2)


def test_runs_are_compared_point_by_point(tmp_path: Path) -> None:
    def doubted(base: list[Cell], new: list[Cell]) -> bool:
        paths = write_run(tmp_path / "one", base), write_run(tmp_path / "two", new)
        found = compare(open_sides(*paths), Settings())
        return any("by hotplug on one side" in warning for warning in found.warnings)

    one, other = mixed(1, 8, 0), mixed(2, 0, 8)
    assert not doubted([*one, *other], [*one, *other])
    # Both sides have both ways, and no point has the same on both.
    assert doubted([*one, *other], [*mixed(1, 0, 8), *mixed(2, 8, 0)])
    bad = [c.model_copy(update={"status": "error"}) for c in mixed(2, 8, 0)]
    assert not doubted([*one, *other], [*one, *bad])
