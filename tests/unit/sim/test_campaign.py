# SPDX-License-Identifier: GPL-2.0-only
"""A sweep goes on where a guest breaks, and ends where guests only break; no QEMU runs here."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from fscale.model.bench import OptionHelp
from fscale.model.errors import FscaleError, Interrupted
from fscale.model.results import Cell, CellKey
from fscale.model.simulation import Simulation
from fscale.model.store import Store
from fscale.sim import campaign, sweep, whatif
from fscale.sim.boot import BootError, PointResult
from fscale.sim.campaign import SweepError
from fscale.sim.plan import GuestPoint, Sockets
from fscale.sim.sweep import Freed, PreparedSweep, Sweep
from fscale.sim.symbols import Symbols
from tests.support import synthetic
from tests.support.simulated_cells import hot_line
from tests.unit.runner.test_plan import descriptor

KERNEL: Any = None


def keys(*cores: int, repetitions: int = 1) -> list[CellKey]:
    return [
        synthetic.key(repetition, filesystem="tmpfs", medium="none", cores=count)
        for repetition in range(1, repetitions + 1)
        for count in cores
    ]


@pytest.fixture
def prepared(tmp_path: Path) -> PreparedSweep:
    machine = synthetic.machine(1, guest={"accelerator": "simulated"})
    run = synthetic.run(state="running", finished=None, seed=1, machine=machine, planned_cells=3)
    cells = keys(1, 2, 4)
    asked = Sweep(filesystems=["tmpfs"], workloads=["DRBL"], cores=[1, 2, 4], output=tmp_path)
    path = Path("x")
    return PreparedSweep(
        asked, run, cells, Store(tmp_path), False, KERNEL, KERNEL, path, path, {}, {}, {"vcpus": 4},
        Sockets(4, 1, 4),
    )  # fmt: skip


class Guest:
    """A boot that does what its script says: a number of points, then an end."""

    scripts: ClassVar[list[tuple[int, str | None]]] = []
    plans: ClassVar[list[list[int]]] = []

    def __init__(self, points: list[GuestPoint], plan: str, free: tuple[str, ...]) -> None:
        self._rest = list(points)
        self._good, self._trouble = Guest.scripts.pop(0)
        self.up: float | None = 1.0 if self._good or self._trouble != "no boot" else None
        Guest.plans.append([point.key.cores for point in points])

    def __enter__(self) -> "Guest":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None: ...

    @property
    def unfinished(self) -> list[GuestPoint]:
        return self._rest

    @property
    def ended(self) -> bool:
        return not self._rest

    def logs(self) -> dict[str, bytes]:
        return {"console.log": b"last words"}

    def symbols(self) -> Symbols:
        return Symbols([])

    def poll(self) -> list[PointResult]:
        if self._good:
            self._good -= 1
            return [PointResult(self._rest.pop(0), failed="made up")]
        if self._trouble == "interrupt":
            raise Interrupted("stopped by SIGINT")
        if self._trouble:
            raise BootError(self._trouble, self._rest[0].number)
        return []


@pytest.fixture(autouse=True)
def no_qemu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "Boot", Guest)
    monkeypatch.setattr(campaign, "start", lambda *_: None)
    monkeypatch.setattr(campaign, "_script", lambda *_: "")
    monkeypatch.setattr(campaign, "POLL_SECONDS", 0.0)
    Guest.plans = []


def test_the_points_after_a_hang_are_simulated_in_another_guest(prepared: PreparedSweep) -> None:
    Guest.scripts = [(1, "it hung in osq_lock"), (1, None)]
    cells = campaign.run(prepared, 1)
    assert Guest.plans == [[4, 2, 1], [1]]
    reasons = {cell.key.cores: cell.reason for cell in cells}
    assert reasons == {4: "made up", 2: "it hung in osq_lock", 1: "made up"}
    assert prepared.run.state == "complete"
    assert (prepared.store.directory / "guest" / "console.log").read_text() == "last words"


def test_guests_that_never_come_up_end_the_sweep(prepared: PreparedSweep) -> None:
    Guest.scripts = [(0, "no boot"), (0, "no boot")]
    with pytest.raises(SweepError):
        campaign.run(prepared, 1)
    run = Store(prepared.store.directory).load_run()
    assert run is not None
    assert run.state == "failed"
    assert prepared.store.cells() == []


def test_an_interrupted_sweep_keeps_what_is_finished(prepared: PreparedSweep) -> None:
    Guest.scripts = [(2, "interrupt")]
    with pytest.raises(Interrupted, match="the same command resumes"):
        campaign.run(prepared, 1)
    assert prepared.run.state == "interrupted"
    assert len(prepared.store.cells()) == 2


def test_each_repetition_is_a_boot_with_a_seed_of_its_own(prepared: PreparedSweep) -> None:
    prepared.cells = keys(1, 4, repetitions=3)
    boots = sweep.boots(prepared, 2)
    assert [{point.seed for point in boot} for boot in boots] == [{1}, {2}, {3}]
    prepared.cells = keys(1, 4)
    assert [len(boot) for boot in sweep.boots(prepared, 2)] == [1, 1]


def test_a_boot_is_told_what_is_free_in_its_points_only(prepared: PreparedSweep) -> None:
    first, second, third = prepared.cells
    a, b = Freed("a", ("va:0x40-0x80",)), Freed("b", ("pc:0x1-0x2", "pc:0x3-0x4"))
    prepared.freed = {second.id: b, third.id: a}
    (points,) = sweep.boots(prepared, 1)
    groups = {point.key.cores: point.group for point in points}
    assert groups[1] == 0
    assert {groups[2], groups[4]} == {1, 2}
    assert set(sweep.rules(prepared, points)) == {
        f"{groups[4]}:va:0x40-0x80",
        f"{groups[2]}:pc:0x1-0x2",
        f"{groups[2]}:pc:0x3-0x4",
    }
    assert first.id not in prepared.freed


def simulated(key: CellKey, *rules: str) -> Cell:
    lines = [hot_line(f"object {rule}", 9, rules=[rule]) for rule in rules]
    simulation = Simulation(seed=1, windows=[], lines=lines, host_seconds=1)
    return synthetic.bare_cell(key, 1, simulation=simulation)


def test_a_what_if_asks_once_more_for_each_object_at_the_most_cores(
    prepared: PreparedSweep,
) -> None:
    base = [
        simulated(key, "va:0x40-0x80", "pc:0x1-0x2", "pc:0x5-0x6")
        for key in keys(1, 4, repetitions=2)
    ]
    base.append(base[-1].model_copy(update={"status": "error"}))
    asked = whatif.plan_whatif(prepared, base, 2)
    assert [(key.cores, key.repetition, key.side) for key in asked.cells] == [
        (4, 1, "free-1"),
        (4, 2, "free-1"),
        (4, 1, "free-2"),
        (4, 2, "free-2"),
    ]
    assert [asked.freed[key.id].rules for key in asked.cells] == [
        *2 * [("va:0x40-0x80",)],
        *2 * [("pc:0x1-0x2",)],
    ]
    assert asked.run.planned_cells == len(prepared.cells) + 4
    # Each boot is told of both, and its points belong to one each.
    first, second = sweep.boots(asked, 1)
    assert [point.group for point in first] == [point.group for point in second] == [1, 2]
    assert len(sweep.rules(asked, first)) == 2


def test_arrivals_at_a_rate_cannot_be_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = descriptor("DRBL", ["buffered"]).model_copy(
        update={"options": [OptionHelp(name="rate", default=0, help="", least=0)]}
    )
    load = SimpleNamespace(descriptor=described)
    monkeypatch.setattr("fscale.runner.microbench.find", lambda _: [load])
    asked = Sweep(["tmpfs"], ["DRBL"], [1], tmp_path / "out", options=["DRBL.rate=0,5"])
    steps: Any = None
    with pytest.raises(FscaleError, match=r"DRBL rate=5: .* leave the option rate out"):
        sweep.prepare(asked, steps)
