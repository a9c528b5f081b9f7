# SPDX-License-Identifier: GPL-2.0-only
"""Cells of what-ifs are beside the cells of a run: nothing scores, compares or exports them."""

from pathlib import Path

import pytest

from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.analysis.formats.tables import TABLES
from fscale.analysis.history import index
from fscale.analysis.members import Member, NamedRun, open_members
from fscale.analysis.reader import load
from fscale.analysis.whatif import answers
from fscale.model.results import Cell
from tests.support.simulated_cells import boots
from tests.support.synthetic import machine, write_run

SIMULATED = {"guest": {"accelerator": "simulated", "model": {}}}


def freed(cell: Cell) -> Cell:
    """The same boot without the cost of an object: three times as fast."""
    assert cell.simulation
    key = cell.key.model_copy(update={"side": "free-1"})
    simulation = cell.simulation.model_copy(update={"free": ["rename_lock"]})
    rate = 3 * cell.ops_per_second
    changes = {"id": key.id, "key": key, "simulation": simulation, "ops_per_second": rate}
    return cell.model_copy(update=changes)


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    """A simulated run, and the same one with a what-if."""
    plain = [
        cell.model_copy(update={"ops_per_second": cell.ops_per_second * (1 + 0.001 * n)})
        for n, cell in enumerate(boots(8000, 4, count=8))
    ]
    of_a_simulator = {"machine": machine(4, **SIMULATED), "filesystems": ["ext4"], "cpus": 4}
    write_run(tmp_path / "plain", plain, **of_a_simulator)
    failed = {"status": "error", "reason": "boot failed", "simulation": None}
    asked = [*map(freed, plain[1:]), freed(plain[0]).model_copy(update=failed)]
    again = [cell.model_copy(update={"wall_seconds": 2.0}) for cell in (*plain, *asked)]
    write_run(tmp_path / "asked", again, **of_a_simulator, id="asked")
    return tmp_path / "plain", tmp_path / "asked"


def test_a_comparison_judges_the_points_alone(runs: tuple[Path, Path]) -> None:
    for sides in (runs, runs[::-1]):
        comparison = compare(open_sides(*sides), Settings())
        assert {j.verdict for j in comparison.judgements} == {"same"}
        assert not comparison.health


def test_reports_exports_and_histories_have_the_points_alone(runs: tuple[Path, Path]) -> None:
    results = load(runs[1])
    assert len(results.cells) == 8 and len(results.every) == 16 and not results.missing
    assert [(a.object, round(a.gain)) for a in answers(results.every)] == [("rename_lock", 3)]
    members = open_members([NamedRun(runs[0], "a"), NamedRun(runs[1], "b")])
    assert [member.label for member in members] == ["a", "b"]
    assert len(TABLES["cells"].rows([Member(results)])) == 8
    with index.opened(runs[1] / "index.sqlite") as history:
        index.add(history, runs[1])
        sides = history.execute("SELECT DISTINCT side FROM point").fetchall()
    assert [tuple(row) for row in sides] == [("",)]
