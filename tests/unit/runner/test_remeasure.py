# SPDX-License-Identifier: GPL-2.0-only
"""Cells that are measured again: when, for how long, where they go, and what a failure does."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from fscale.analysis.remeasure import disturbed
from fscale.commands.options.measure import PairedOptions
from fscale.commands.options.run import RunOptions
from fscale.farm.answer import Answer, Header, check
from fscale.farm.engine import NodeEngine
from fscale.farm.objects import Objects
from fscale.farm.task import Task
from fscale.model.errors import FscaleError, Interrupted
from fscale.model.load import LoadSettings
from fscale.model.results import Cell, CellKey, Run, Status
from fscale.model.store import Store
from fscale.runner import run as runs
from fscale.runner.prepare import Prepared
from fscale.runner.remeasure import Choice
from fscale.runner.request import read_suite
from fscale.runner.setup import Setup
from fscale.runner.signals import Signals
from fscale.runner.tasks import PlannedRun
from tests.support import synthetic

KEYS = [synthetic.key(number) for number in range(1, 9)]
SECONDS = 2.0  # of each cell, as estimated: a window of 1 s, 0.2 s of warm-up and 0.8 s
BUSY = "other processes took 0.74 CPUs"


def made_up(fraction: float) -> Run:
    return synthetic.run(
        suite={"warmup": 0.2, "remeasure": fraction},
        filesystems={"ext4": {"title": "ext4"}},
        planned_cells=len(KEYS),
    )


def test_the_option_sets_the_key_and_a_paired_run_refuses_it(tmp_path: Path) -> None:
    quick = Path("quick")
    assert read_suite(RunOptions().request(quick, tmp_path)).remeasure == 0.25
    assert read_suite(RunOptions(remeasure=0).request(quick, tmp_path)).remeasure == 0
    paired = PairedOptions(suite_keys=["remeasure=0.5"])
    with pytest.raises(FscaleError, match="a paired run sets this key itself"):
        paired.paired_request(tmp_path, None, ())


class Machine:
    """Measures by a script: the first time all cells are disturbed, and then they end as told."""

    def __init__(self, end: Status = "ok", quiet: bool = True) -> None:
        self.end: Status = end
        self.quiet = quiet
        self.measured: list[str] = []

    def measure(self, key: CellKey) -> Cell:
        again = key.id in self.measured
        self.measured.append(key.id)
        cell = synthetic.bare_cell(key, 200 if again else 100, wall_seconds=SECONDS)
        if again and self.end != "ok":
            return cell.model_copy(update={"status": self.end, "reason": "no space"})
        cell.disturbed = None if again and self.quiet else BUSY
        return cell


class Here:
    """Stands for a Session."""

    def __init__(self, machine: Machine, store: Store) -> None:
        self.machine, self.store = machine, store
        self.cpus = SimpleNamespace(warnings=[])
        self.refused = False

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        yield

    def refuse_without_effect(self, keys: Sequence[CellKey]) -> None:
        del keys

    def cell(self, key: CellKey) -> Cell:
        cell = self.machine.measure(key)
        self.store.save_cell(cell)
        if cell.status == "interrupted":
            raise Interrupted("stopped")
        return cell


class Nodes:
    """Stands for an engine whose machines are like this one."""

    slots = 2
    shares_files = True

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.tasks: list[Task] = []

    def submit(self, tasks: Sequence[Task], objects: Objects) -> None:
        del objects
        self.tasks = list(tasks)

    def collect(self) -> Iterator[Answer]:
        for task in self.tasks:
            cell = self.machine.measure(task.keys[0])
            content = cell.model_dump_json(by_alias=True).encode()
            header = Header(task=task.id, host="n1", code=0)
            yield check(task, header, {f"cells/{cell.id}.json": content})

    def cancel(self) -> list[Answer]:
        return []


@pytest.fixture(params=["here", "elsewhere"])
def where(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Called:
    """Calls of `fscale run` with the same output."""

    def __init__(self, where: str, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.where, self.store, self.patch = where, Store(output), monkeypatch

    def __call__(self, machine: Machine, fraction: float, *choices: Choice) -> Run:
        run = made_up(fraction)
        if self.where == "here":
            settings = LoadSettings(
                warmup=0.2, min_window=None, interval=None, max_stock=None, latency=False
            )
            setup = cast(Setup, SimpleNamespace(missing={}, settings=settings))
            self.patch.setattr(runs, "Session", lambda _setup, store, *_: Here(machine, store))
            prepared = Prepared(setup, run, KEYS, self.store, resumed=False)
            runs.execute(prepared, Signals(), lambda s, k: s.cell(k), choices=lambda: choices)
        else:
            planned = PlannedRun(run, KEYS, self.store, resumed=False, work={})
            runs.execute_on(cast(NodeEngine, Nodes(machine)), planned, lambda: choices)
        return run

    @property
    def cells(self) -> dict[int, Cell]:
        return {cell.key.repetition: cell for cell in self.store.cells()}


@pytest.fixture
def call(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Called:
    return Called(where, tmp_path / "out", monkeypatch)


def test_disturbed_cells_are_replaced_as_long_as_the_budget_lasts(
    call: Called, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine()
    call(machine, 0.4, disturbed)
    again = machine.measured[len(KEYS) :]
    assert again == [key.id for key in KEYS[:3]]  # of 6.4 s, 2 s each
    replaced = {n for n, cell in call.cells.items() if cell.replaces == BUSY}
    assert replaced == {n for n, cell in call.cells.items() if cell.ops_per_second == 200}
    assert replaced == {1, 2, 3}
    assert {n for n, cell in call.cells.items() if cell.disturbed} == {4, 5, 6, 7, 8}
    kept = sorted(path.stem for path in (call.store.directory / "replaced").iterdir())
    assert kept == again
    said = capsys.readouterr().err
    assert "8 cells to measure" in said
    assert "up to 0:06 more to measure disturbed cells again" in said
    assert said.index("measuring 3 cells again") > said.index("[8/8, ")
    assert "[11/11, 0:00 left]" in said


def test_the_same_command_measures_no_cell_a_third_time(
    call: Called, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine(quiet=False)
    call(machine, 0.4, disturbed)
    capsys.readouterr()
    call(machine, 0.4, disturbed)
    assert "again" not in capsys.readouterr().err  # of 6.4 s, 0.4 s are left
    assert len(machine.measured) == len(KEYS) + 3
    assert all(cell.disturbed for cell in call.cells.values())
    call(machine, 1, disturbed)  # a larger budget goes on with those that were not replaced
    assert sorted(machine.measured) == sorted(2 * [key.id for key in KEYS])
    call(machine, 1, disturbed)
    assert len(machine.measured) == 2 * len(KEYS)


def test_without_a_budget_nobody_is_asked(call: Called, capsys: pytest.CaptureFixture[str]) -> None:
    def ask(directory: Path, budget: float) -> Mapping[str, str]:
        raise AssertionError((directory, budget))

    machine = Machine()
    call(machine, 0, ask)
    assert machine.measured == [key.id for key in KEYS]
    assert "again" not in capsys.readouterr().err


def test_each_choice_sees_what_the_one_before_has_changed(call: Called) -> None:
    seen = []

    def look(directory: Path, budget: float) -> Mapping[str, str]:
        del budget
        seen.append(sum(cell.disturbed is not None for cell in Store(directory).cells()))
        return {KEYS[6].id: "chosen", "unknown": "not of this run"}

    machine = Machine()
    call(machine, 0.4, disturbed, look)
    assert seen == [5]
    assert machine.measured[-1] == KEYS[6].id
    assert call.cells[7].replaces == "chosen"


@pytest.mark.parametrize("end", ["error", "invalid"])
def test_a_cell_that_fails_the_second_time_keeps_its_figure_with_a_warning(
    call: Called, end: Status
) -> None:
    run = call(Machine(end), 0.2, disturbed)
    assert {cell.status for cell in call.cells.values()} == {"ok"}
    assert {cell.replaces for cell in call.cells.values()} == {None}
    assert run.warnings == [
        f"{KEYS[0].id} was measured again and ended as {end}: no space; its earlier figure counts"
    ]
    stored = call.store.load_run()
    assert stored
    assert stored.warnings == run.warnings


@pytest.mark.parametrize("where", ["here"])
def test_an_interruption_loses_no_figure(call: Called) -> None:
    with pytest.raises(Interrupted):
        call(Machine("interrupted"), 0.4, disturbed)
    assert {cell.status for cell in call.cells.values()} == {"ok"}
    assert not (call.store.directory / "replaced").exists()
    machine = Machine()
    machine.measured = [key.id for key in KEYS]
    call(machine, 0.4, disturbed)
    assert len(machine.measured) == len(KEYS) + 3
