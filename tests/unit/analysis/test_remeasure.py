# SPDX-License-Identifier: GPL-2.0-only
"""What is worth measuring again: chosen by who disturbed it, and never by one of two figures."""

from pathlib import Path
from typing import Any

import pytest

from fscale.analysis.members import Member
from fscale.analysis.reader import load
from fscale.analysis.remeasure import FASTER, disturbed, faster_than_linear
from fscale.analysis.report.section import Report
from fscale.analysis.report.tables import troubles
from fscale.model.results import Cell
from tests.support.synthetic import bare_cell, key, write_run

BUSY = "other processes took 0.74 CPUs"
LOTS = 1e6


def cell(cores: int, repetition: int, busy: bool = False, rate: float = 100, **of: Any) -> Cell:
    of_cell = {name: of.pop(name) for name in ("replaces", "status") if name in of}
    return bare_cell(
        key(repetition, cores=cores, **of),
        rate,
        disturbed=BUSY if busy else None,
        wall_seconds=2,
        **of_cell,
    )


def results(tmp_path: Path, cells: list[Cell]) -> Path:
    return write_run(tmp_path / "run", cells, cpus=8)


def test_points_without_a_quiet_repetition_come_first_and_of_these_the_base(tmp_path: Path) -> None:
    quiet = [cell(1, n) for n in (1, 2)]
    half = [cell(2, 1), cell(2, 2, busy=True)]
    none = [cell(cores, n, busy=True) for cores in (8, 4) for n in (1, 2)]
    where = results(tmp_path, [*half, *none, *quiet])
    first, second = {cell(4, 1).id: BUSY}, {cell(8, 1).id: BUSY}
    assert disturbed(where, 2) == first
    assert disturbed(where, 4) == first | second
    assert disturbed(where, 6) == first | second | {half[1].id: BUSY}
    assert disturbed(where, 7.9) == disturbed(where, 6)
    assert disturbed(where, LOTS) == {c.id: BUSY for c in [half[1], *none]}


def test_a_cell_is_replaced_once(tmp_path: Path) -> None:
    left = [cell(1, 2, busy=True), cell(1, 3, busy=True)]
    where = results(tmp_path, [cell(1, 1, busy=True, replaces=BUSY), *left])
    assert disturbed(where, 1.9) == {}
    assert disturbed(where, LOTS) == {c.id: BUSY for c in left}


def test_controls_are_chosen_but_neither_profiles_nor_failed_cells(tmp_path: Path) -> None:
    control = cell(1, 1, busy=True, workload="control_user", filesystem="none", medium="none")
    others = [cell(1, 1, busy=True, profile="locks"), cell(1, 2, busy=True, status="error")]
    where = results(tmp_path, [control, *others, cell(1, 3)])
    assert disturbed(where, LOTS) == {control.id: BUSY}


def test_the_report_lists_what_was_replaced_and_why(tmp_path: Path) -> None:
    cells = [cell(1, 1, replaces=BUSY), cell(1, 2, busy=True, replaces=FASTER), cell(2, 1)]
    where = results(tmp_path, cells)
    listed = troubles(Report((Member(load(where)),), where))
    assert [(t.state, t.reason, t.cells) for t in listed] == [
        ("disturbed", BUSY, (cells[1].id,)),
        ("remeasured", f"the first time {FASTER}", (cells[1].id,)),
        ("remeasured", f"the first time {BUSY}", (cells[0].id,)),
    ]


def curve(slow: float, **of: Any) -> list[Cell]:
    """A curve of one, two and four cores whose base is `slow` times what it should be."""
    rates = {1: 100 * slow, 2: 200, 4: 400}
    return [cell(cores, n, rate=rate, **of) for cores, rate in rates.items() for n in (1, 2)]


def ends(cells: list[Cell]) -> dict[str, str]:
    return {c.id: FASTER for c in cells if c.key.cores != 2}


@pytest.mark.parametrize("media", [["ram"], ["ram", "brd"]])
def test_a_doubtful_curve_is_measured_again_at_both_ends_or_not_at_all(
    tmp_path: Path, media: list[str]
) -> None:
    # A file system without a medium is on the page of each medium, and still measured once.
    worse = curve(0.5, filesystem="tmpfs", medium="none")
    found = [c for medium in media for c in curve(1, medium=medium)]
    bad = curve(0.7, workload="MWCL")
    where = results(tmp_path, [*worse, *found, *bad])
    assert faster_than_linear(where, 7.9) == {}
    assert faster_than_linear(where, 8) == faster_than_linear(where, 15.9) == ends(worse)
    assert faster_than_linear(where, 16) == ends(worse) | ends(bad)


def test_a_curve_with_a_replaced_end_is_not_chosen(tmp_path: Path) -> None:
    cells = curve(0.5)
    assert faster_than_linear(results(tmp_path, cells), LOTS) == ends(cells)
    cells[0].replaces = BUSY
    assert faster_than_linear(results(tmp_path, cells), LOTS) == {}
