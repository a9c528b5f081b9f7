# SPDX-License-Identifier: GPL-2.0-only
"""The CSV of will-it-scale: real files of its runtest.py (windows of 1 s), and changed ones."""

from pathlib import Path

import pytest

from fscale.analysis.imports.run import Imported, Stated
from fscale.model.errors import FscaleError
from tests.support.imports import FILES, read

NAMES = ("getppid1", "open1", "page_fault1")


def imported(*paths: Path) -> Imported:
    return read("will-it-scale", paths, Stated("2026-11-29"))


def test_a_file_is_a_curve_of_processes_and_one_of_threads() -> None:
    cells = imported(*(FILES / f"{name}.csv" for name in NAMES)).cells
    rates = {(c.key.workload, c.key.cores): c.ops_per_second for c in cells}
    for name in NAMES:
        rows = [line.split(",") for line in (FILES / f"{name}.csv").read_text().splitlines()[2:]]
        for row in rows:
            assert rates.pop((f"{name}_processes", int(row[0]))) == float(row[1])
            assert rates.pop((f"{name}_threads", int(row[0]))) == float(row[3])
    assert not rates
    assert {(cell.seconds, cell.key.duration) for cell in cells} == {(5, 5)}


def test_a_program_that_did_not_run_has_no_figure() -> None:
    cells = imported(FILES / "pread1.csv").cells
    assert len(cells) == 4
    assert {(c.status, c.ops_per_second) for c in cells} == {("error", 0)}


def test_idle_time_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text((FILES / "page_fault1.csv").read_text().replace("0.00", "42.50"))
    assert {cell.extra["idle_percent"] for cell in imported(path).cells} == {42.5}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("\n2,", "\n1,"), "line 4: 1 tasks are in line 3, too"),
        (("188330", "-188330"), "line 4: processes is -188330, which is impossible"),
        (("188330", "nan"), "line 4: processes is nan, which is impossible"),
        (("188330", "inf"), "line 4: processes is inf, which is impossible"),
        (("188330", ""), "line 4 has not 6 numbers"),
        (("188330,", ""), "line 4 has not 6 numbers"),
        (("\n2,", "\n2.5,"), "line 4: tasks is 2.5, which is impossible"),
        (("\n2,", "\n99999,"), "line 4: 99999 tasks are more than 65536"),
        (("tasks,", "nodes,"), "line 1 is not tasks,processes,processes_idle"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    change: tuple[str, str], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text((FILES / "page_fault1.csv").read_text().replace(*change))
    with pytest.raises(FscaleError, match=said):
        imported(path)


def test_a_file_that_ends_after_its_head_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("".join((FILES / "open1.csv").read_text().splitlines(keepends=True)[:2]))
    with pytest.raises(FscaleError, match="no row with tasks"):
        imported(path)


def test_a_test_that_counted_nothing_is_invalid(tmp_path: Path) -> None:
    path = tmp_path / "idle.csv"
    path.write_text((FILES / "page_fault1.csv").read_text().replace("188330", "0"))
    ended = {(c.key.cores, c.key.workload): c.status for c in imported(path).cells}
    assert ended[2, "idle_processes"] == "invalid"
    assert ended[2, "idle_threads"] == "ok"
