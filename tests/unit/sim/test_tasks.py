# SPDX-License-Identifier: GPL-2.0-only
"""A sweep becomes tasks, which another machine turns back into the same boots, without QEMU."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fscale.farm.answer import Answer, Header
from fscale.farm.objects import Objects
from fscale.farm.task import Task
from fscale.model import catalogue
from fscale.model.errors import FscaleError
from fscale.model.store import Store
from fscale.sim import campaign, kerneltypes, tasks
from fscale.sim.emulator import BootFiles
from fscale.sim.plan import Sockets, order
from fscale.sim.sweep import Freed, PreparedSweep, Sweep, boots
from fscale.sim.tasks import TasksError, make, prepared_from
from fscale.vm import qemu
from fscale.vm.kernel import Kernel
from fscale.vm.qemu import Qemu
from fscale.vm.steps import Steps
from tests.support import farm as farm_support
from tests.support.synthetic import machine, write_run
from tests.unit.sim.test_campaign import keys


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PreparedSweep:
    """A sweep of three points and two seeds, whose programs are small files."""
    for name in ("vmlinux", "modules", "initramfs", "plugin.so", "own.ko", "qemu-system-x86_64"):
        (tmp_path / name).write_text(f"content of {name}")
    cells = keys(1, 2, 4, repetitions=2)
    output = tmp_path / "run"
    write_run(output, [], workloads=["DRBL"], filesystems=["tmpfs"], machine=machine(4))
    run = Store(output).load_run()
    assert run is not None
    emulator = Qemu((str(tmp_path / "qemu-system-x86_64"),), None, "10.0.0")
    monkeypatch.setattr(qemu, "find", lambda steps: emulator)
    monkeypatch.setattr(kerneltypes, "load", lambda *given: {})
    image, modules = tmp_path / "vmlinux", tmp_path / "modules"
    asked = Sweep(["tmpfs"], ["DRBL"], [1, 2, 4], output, seed=7, append="quiet", memory_mib=512)
    return PreparedSweep(
        asked, run, cells, Store(output), resumed=False,
        kernel=Kernel("bookworm", "6.1", image, image, modules), emulator=emulator,
        plugin=tmp_path / "plugin.so", initramfs=tmp_path / "initramfs",
        filesystems={"tmpfs": catalogue.load_filesystem("tmpfs")},
        media={"brd": catalogue.load_medium("brd")},
        parameters={"vcpus": 4, "memory_mib": 512}, sockets=Sockets(4, 2, 2),
        freed={cells[0].id: Freed("a lock", ("data:a_lock+0",))}, modules=(tmp_path / "own.ko",),
    )  # fmt: skip


def elsewhere(task: Task, tmp_path: Path, objects: Objects) -> PreparedSweep:
    """What a machine makes of a task that it got as text."""
    asked, directory = farm_support.received(task, tmp_path, objects)
    return prepared_from(asked, directory, tmp_path / "out", Steps(None))  # type: ignore[arg-type]


def words(of: PreparedSweep) -> list[tuple[str, str]]:
    """The command lines and scripts of the boots."""
    place = BootFiles(Path("/RUN"))
    return [
        (shlex.join(campaign._command(of, points, 0, place)), campaign._script(of, points))
        for points in map(order, boots(of, 1))
    ]


def test_a_task_is_the_same_boot_elsewhere(
    prepared: PreparedSweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = Objects()
    monkeypatch.setattr(tasks, "BOOTS_PER_SLOT", 1)
    (one, two) = made = make(prepared, 1, objects)
    assert [len(task.keys) for task in made] == [3, 3]
    there = [elsewhere(task, tmp_path, objects) for task in made]
    found = [pair for each in there for pair in words(each)]
    for path, role in (
        (prepared.kernel.image, "kernel"),
        (prepared.initramfs, "initramfs"),
        (prepared.plugin, "plugin.so"),
    ):
        assert (tmp_path / "there" / role).read_bytes() == path.read_bytes()
        found = [(argv.replace(f"{tmp_path}/there/{role}", str(path)), s) for argv, s in found]
    assert found == words(prepared)
    assert [path.read_text() for path in there[0].modules] == ["content of own.ko"]
    assert there[0].modules[0].name == "own.ko"
    assert [each.freed for each in there] == [prepared.freed, {}]
    assert one.plan == two.plan
    assert there[0].kernel.modules is not None


def test_tasks_keep_every_slot_busy(prepared: PreparedSweep) -> None:
    for slots in (1, 3, 100):
        made = make(prepared, slots, Objects())
        every = [key for task in made for key in task.keys]
        assert sorted(key.id for key in every) == sorted(key.id for key in prepared.cells)
        assert len(made) >= min(slots, len(prepared.cells))
        assert len({task.id for task in made}) == len(made)


def test_a_further_boot_is_worth_its_cost(prepared: PreparedSweep) -> None:
    many = replace(prepared, cells=keys(*range(1, 5), repetitions=12))
    assert [tasks._parts(many, slots) for slots in (1, 2, 4, 20)] == [4, 8, 9, 20]


def test_what_was_finished_for_another_run_is_not_used(prepared: PreparedSweep) -> None:
    plans = {make(prepared, 1, Objects())[0].plan}
    for change in ({"started": "2026-02-01T00:00:00+00:00"}, {"id": "other"}):
        run = prepared.run.model_copy(update=change)
        plans.add(make(replace(prepared, run=run), 1, Objects())[0].plan)
    assert len(plans) == 3


def test_another_qemu_is_refused(
    prepared: PreparedSweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = Objects()
    task = make(prepared, 1, objects)[0]
    (tmp_path / "qemu-system-x86_64").write_text("another build of the same version")
    with pytest.raises(FscaleError):
        elsewhere(task, tmp_path, objects)


class Engine:
    """Runs tasks at once; those with the repetitions in `broken` return their first cell only."""

    slots = 1

    def __init__(self, *broken: int) -> None:
        self._broken = broken
        self._tasks: Sequence[Task] = ()
        self.asked: list[str] = []

    def submit(self, tasks: Sequence[Task], objects: Objects) -> None:
        assert {digest for task in tasks for digest in task.files.values()} == {*objects.paths}
        self._tasks = tasks

    def collect(self) -> Iterator[Answer]:
        for task in self._tasks:
            self.asked += [key.id for key in task.keys]
            code = int(task.keys[0].repetition in self._broken)
            measured = [farm_support.cell(key) for key in task.keys]
            header = Header(task=task.id, host="node7", code=code, text="why")
            yield Answer(task, header, measured[:1] if code else measured, {})


def test_what_tasks_return_is_kept_and_the_rest_is_tried_again(
    prepared: PreparedSweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "BOOTS_PER_SLOT", 1)
    with pytest.raises(TasksError):
        campaign.run(prepared, 1, Engine(2))
    run = prepared.store.load_run()
    assert run is not None and run.state == "failed"
    kept = {cell.id for cell in prepared.store.cells()}
    assert len(kept) == 4
    again = Engine()
    assert len(campaign.run(prepared, 1, again)) == 6
    assert {*again.asked} == {key.id for key in prepared.cells} - kept
    run = prepared.store.load_run()
    assert run is not None and run.state == "complete"
