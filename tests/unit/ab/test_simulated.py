# SPDX-License-Identifier: GPL-2.0-only
"""The simulator as a source of a comparison: one paired run, resumed, judged by counts."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from fscale.ab import simulated
from fscale.ab.simulated import Simulated, execute, side_directory
from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.cli import app
from fscale.model.errors import FscaleError, Interrupted
from fscale.model.results import Cell
from fscale.model.store import Store
from tests.support.simulated_cells import boots, cell
from tests.support.synthetic import machine, write_run

TEXTS = {"A": "ext4", "B": "ext4:kernel=6.12"}
SAME, MORE = boots(9000, 1), boots(9500, 1, seed=2)


class Campaign:
    """Stands for `fscale.sim.campaign`: gives what a side is made of, or is interrupted there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.interrupted_at: str | None = None
        monkeypatch.setattr(simulated, "campaign", self)

    def run(self, prepared: Any, jobs: int, engine: Any) -> Sequence[Cell]:
        assert jobs == 2 and engine is None
        if prepared.store.directory.name == self.interrupted_at:
            raise Interrupted("SIGINT")
        return prepared.measured


def source(output: Path, a: Sequence[Cell], b: Sequence[Cell], **changes: Any) -> Simulated:
    """Both sides prepared; `changes` are of side B's versions."""
    sides = {}
    for name, cells in (("A", a), ("B", b)):
        guest = {"accelerator": "simulated", "kernel": name}
        directory = side_directory(output, name)
        there = machine(4).model_copy(update={"guest": guest, "kernel": f"6.1-{name}"})
        write_run(directory, cells, workloads=["MWCL"], filesystems=["ext4"], machine=there)
        run = Store(directory).load_run()
        assert run is not None
        run.versions = {"kernel": run.machine.kernel} | (changes if name == "B" else {})
        run.machine.boots = None
        sides[name] = SimpleNamespace(
            sweep=SimpleNamespace(repetitions=3), run=run, cells=[c.key for c in cells],
            store=Store(directory), measured=cells,
        )  # fmt: skip
    return Simulated(output, sides, TEXTS, 2)  # type: ignore[arg-type]


@pytest.fixture
def campaign(monkeypatch: pytest.MonkeyPatch) -> Campaign:
    return Campaign(monkeypatch)


@pytest.mark.usefixtures("campaign")
def test_a_paired_run_comes_of_it_that_is_judged_by_counts(tmp_path: Path) -> None:
    execute(source(tmp_path, SAME, MORE))
    run = Store(tmp_path).load_run()
    assert run is not None
    assert (run.state, run.suite["repetitions"], run.planned_cells) == ("complete", 3, 6)
    sides = open_sides(tmp_path, None)
    assert (sides.base.label, sides.new.label) == tuple(TEXTS.values())
    assert (sides.base.kernel, sides.new.kernel) == ("6.1-A", "6.1-B")
    found = compare(sides, Settings())
    assert found.policy == "counted"
    assert {j.metric: j.verdict for j in found.judgements} == {
        "count:instructions": "more", "count:shared-lines": "same",
    }  # fmt: skip
    assert found.regressed


def test_it_is_resumed_and_another_comparison_is_refused(
    tmp_path: Path, campaign: Campaign
) -> None:
    campaign.interrupted_at = "B"
    with pytest.raises(Interrupted, match="same command"):
        execute(source(tmp_path, SAME, MORE, **{"module lanefs.ko": "x"}))
    run = Store(tmp_path).load_run()
    assert run is not None and run.state == "interrupted"
    campaign.interrupted_at = None
    with pytest.raises(
        FscaleError, match=r"cannot be resumed, because these differ:\n    module lanefs\.ko of B"
    ):
        execute(source(tmp_path, SAME, MORE, **{"module lanefs.ko": "built again"}))
    execute(source(tmp_path, SAME, MORE, **{"module lanefs.ko": "x"}))
    run = Store(tmp_path).load_run()
    assert run is not None and run.state == "complete"
    assert len(Store(tmp_path).cells()) == 6


@pytest.mark.usefixtures("campaign")
def test_a_point_of_one_side_alone_is_missing_on_the_other(tmp_path: Path) -> None:
    eight = [
        one.model_copy(
            update={"key": (key := one.key.model_copy(update={"cores": 8})), "id": key.id}
        )
        for one in SAME
    ]
    execute(source(tmp_path, [*SAME, *eight], MORE))
    found = compare(open_sides(tmp_path, None), Settings())
    assert [name.split()[4] for name in found.missing_in_new] == ["8c"]


@pytest.mark.usefixtures("campaign")
def test_what_is_broken_on_side_a_cannot_be_measured(tmp_path: Path) -> None:
    broken = [cell(n, 0, 0, status="error") for n in (1, 2, 3)]
    with pytest.raises(FscaleError, match="mount failed: no"):
        execute(source(tmp_path, broken, SAME))
    # Where only B is, that is the finding.
    execute(source(tmp_path / "b", SAME, broken))
    found = compare(open_sides(tmp_path / "b", None), Settings())
    assert found.regressed and not found.judgements


@pytest.mark.usefixtures("campaign")
def test_compare_judges_it_again_and_refuses_what_is_of_rates(tmp_path: Path) -> None:
    execute(source(tmp_path, SAME, MORE))
    again = CliRunner().invoke(app, ["compare", str(tmp_path)])
    assert (again.exit_code, "more" in again.stdout) == (1, True)
    for option in (["--margin", "0.1"], ["--metric", "throughput"], ["--allow-different", "x"]):
        refused = CliRunner().invoke(app, ["compare", str(tmp_path), *option])
        assert isinstance(refused.exception, FscaleError)
        assert str(refused.exception).startswith(f"{option[0]}: not supported")
