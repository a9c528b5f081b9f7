# SPDX-License-Identifier: GPL-2.0-only
"""A boot becomes a task, which another machine turns back into the same boot, without QEMU."""

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fscale.commute import boot, run_task
from fscale.commute.boot import Boot
from fscale.commute.campaign import Campaign
from fscale.commute.conflicts import Conflict
from fscale.commute.generate import Selection
from fscale.commute.guest import Guest
from fscale.commute.matrix import Matrix
from fscale.commute.run_task import find_conflicts
from fscale.commute.store import Store
from fscale.commute.tasks import TasksError, boot_from, execute_elsewhere, make
from fscale.farm.answer import CONFLICTS_FILE, Answer, Header, Refused, check
from fscale.farm.objects import Objects
from fscale.farm.task import Task
from fscale.model import catalogue
from fscale.model.errors import FscaleError
from fscale.sim import kerneltypes
from fscale.vm import qemu
from fscale.vm.kernel import Kernel
from fscale.vm.qemu import Qemu
from fscale.vm.steps import Steps
from tests.support import farm as farm_support

SELECTION = Selection(calls=("link", "unlink"), each=3, seed=5)
COUNTS, TESTS = SELECTION.draw()
RWSEM = Conflict("i_rwsem", False, ("down_write",), ("up_write",))


@pytest.fixture
def guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Guest:
    """A guest whose programs are small files."""
    for name in ("vmlinux", "modules", "initramfs", "plugin.so", "own.ko", "qemu-system-x86_64"):
        (tmp_path / name).write_text(f"content of {name}")
    emulator = Qemu((str(tmp_path / "qemu-system-x86_64"),), None, "10.0.0")
    types: Any = SimpleNamespace()
    monkeypatch.setattr(qemu, "find", lambda steps: emulator)
    monkeypatch.setattr(
        kerneltypes, "load", lambda kernel, names, *more: dict.fromkeys(names, types)
    )
    image, modules = tmp_path / "vmlinux", tmp_path / "modules"
    return Guest(
        "ext4:mount=data=journal",
        catalogue.load_filesystem("ext4"),
        catalogue.load_medium("brd"),
        Kernel("bookworm", "6.1", image, image, modules),
        emulator,
        tmp_path / "plugin.so",
        tmp_path / "initramfs",
        (tmp_path / "own.ko",),
        types,
    )


class Farm:
    """An engine of a machine that receives tasks as text, and returns files."""

    slots = 1

    def __init__(
        self, directory: Path, spoil: Callable[[bytes], bytes] = lambda text: text
    ) -> None:
        self._directory, self._spoil = directory, spoil
        self.fails: set[int] = set()
        """numbers of boots, from 1"""
        self.done: list[Task] = []
        self.said: list[str] = []

    def submit(self, tasks: Sequence[Task], objects: Objects) -> None:
        self._tasks, self._objects = tasks, objects

    def collect(self) -> Iterator[Answer]:
        for number, task in reversed(list(enumerate(self._tasks, 1))):
            asked, files = farm_support.received(task, self._directory, self._objects)
            output = self._directory / f"out{number}"
            header = Header(task=task.id, host="north", code=number in self.fails, text="panic")
            if not header.code:
                find_conflicts(asked, files, output)
            written = output / CONFLICTS_FILE
            found = {CONFLICTS_FILE: self._spoil(written.read_bytes())} if written.exists() else {}
            self.done.append(task)
            yield check(task, header, found)


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[Guest]:
    """The guests that were booted; the second test of each conflicts."""
    booted: list[Guest] = []

    def execute(
        guest: Guest, tests: Any, order: str, seed: int, *_: Any
    ) -> Generator[int, None, list[list[Conflict]]]:
        booted.append(guest)
        yield len(tests)
        return [[RWSEM] if test.id == TESTS[1].id else [] for test in tests]

    monkeypatch.setattr(boot, "execute", execute)
    monkeypatch.setattr(boot, "POLL_SECONDS", 0)
    return booted


def measured(output: Path, guest: Guest, farm: Farm, boots: int = 2) -> Matrix:
    store = Store(output)
    campaign = Campaign(store, [guest], TESTS, boots, seed=7)
    engine: Any = farm

    def elsewhere(waiting: Sequence[Boot]) -> boot.Ended:
        return execute_elsewhere(waiting, SELECTION, TESTS, engine, farm.said.append)

    (found,) = campaign.measure(COUNTS, elsewhere)
    return found


def test_a_task_is_the_same_boot_elsewhere(guest: Guest, tmp_path: Path) -> None:
    campaign = Campaign(Store(tmp_path / "run"), [guest], TESTS, 2, 7)
    objects = Objects()
    tasks = [make(one, SELECTION, objects) for one in campaign.waiting]
    assert len({task.id for task in tasks}) == 2
    for one, task in zip(campaign.waiting, tasks, strict=True):
        asked, directory = farm_support.received(task, tmp_path, objects)
        read, selection = boot_from(asked, directory, Steps(None))  # type: ignore[arg-type]
        there = read.guest
        assert (read.head, selection) == (one.head, SELECTION)
        assert [test.id for test in selection.draw()[1]] == [test.id for test in TESTS]
        for path, name in (
            (there.plugin, "plugin.so"),
            (there.initramfs, "initramfs"),
            (there.kernel.image, "vmlinux"),
            (there.modules[0], "own.ko"),
        ):
            assert path.read_text() == f"content of {name}"
        assert (there.name, there.filesystem) == (guest.name, guest.filesystem)


def test_what_was_found_elsewhere_is_what_is_found_here(
    guest: Guest, executed: list[Guest], tmp_path: Path
) -> None:
    farm = Farm(tmp_path / "farm")
    found = measured(tmp_path / "run", guest, farm)
    assert (found.total.tests, found.total.free) == (len(TESTS), len(TESTS) - 1)
    assert len(executed) == 2
    assert measured(tmp_path / "run", guest, farm) == found
    assert len(executed) == 2  # all boots are stored


def test_a_boot_that_fails_is_said_and_the_others_are_kept(
    guest: Guest, executed: list[Guest], tmp_path: Path
) -> None:
    farm = Farm(tmp_path / "farm")
    farm.fails = {1}
    with pytest.raises(TasksError, match=r"1 of 2 boots failed.*executes them again"):
        measured(tmp_path / "run", guest, farm)
    assert "warning: boot 1 of 2: ext4:mount=data=journal on 6.1, on north: panic" in farm.said
    assert len(list((tmp_path / "run" / "boots").iterdir())) == 1
    measured(tmp_path / "run", guest, Farm(tmp_path / "again"))
    assert len(executed) == 2


def test_what_a_worker_kept_of_an_equal_boot_is_no_answer_of_one_that_fails(
    guest: Guest, executed: list[Guest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured(tmp_path / "run", guest, Farm(tmp_path / "farm"))
    farm = Farm(tmp_path / "farm")
    farm.fails = {1, 2}
    with pytest.raises(TasksError, match="2 of 2 boots failed"):
        measured(tmp_path / "other", guest, farm)
    # Nor is it left on the worker.
    monkeypatch.setattr(run_task, "boot_from", lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        measured(tmp_path / "other", guest, Farm(tmp_path / "farm"))
    assert not (tmp_path / "farm" / "out2" / CONFLICTS_FILE).exists()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda text: b"", "not valid"),
        (lambda text: text[:-9], "not valid"),
        (lambda text: text.replace(b"i_rwsem", b"\\u001b[2J"), "not valid"),
        (lambda text: text.replace(b'"seed":', b'"seed":1'), "those of another boot"),
        (lambda text: text[: text.rindex(b"\n", 0, -1) + 1], "those of another boot"),
        (lambda text: text + b'{"id": "link-link-99", "conflicts": []}\n', "those of another boot"),
    ],
)
def test_answers_of_a_stranger_are_refused(
    spoil: Callable[[bytes], bytes],
    reason: str,
    guest: Guest,
    executed: list[Guest],
    tmp_path: Path,
) -> None:
    farm = Farm(tmp_path / "farm", spoil)
    with pytest.raises(TasksError, match="2 of 2 boots failed"):
        measured(tmp_path / "run", guest, farm)
    assert all(reason in text for text in farm.said)
    assert not list((tmp_path / "run").glob("boots/*"))


def test_another_file_is_refused(guest: Guest, tmp_path: Path) -> None:
    campaign = Campaign(Store(tmp_path / "run"), [guest], TESTS, 2, 7)
    task = make(campaign.waiting[0], SELECTION, Objects())
    header = Header(task=task.id, host="north", code=0)
    for name in ("run.json", "cells/a.json", "../conflicts.jsonl"):
        with pytest.raises(Refused, match="not a file of this task"):
            check(task, header, {name: b"{}"})


def test_another_qemu_is_refused(
    guest: Guest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = Campaign(Store(tmp_path / "run"), [guest], TESTS, 2, 7)
    objects = Objects()
    asked, directory = farm_support.received(
        make(campaign.waiting[0], SELECTION, objects), tmp_path, objects
    )
    (tmp_path / "qemu-system-x86_64").write_text("another")
    other = replace(guest.emulator, version="9")
    monkeypatch.setattr(qemu, "find", lambda steps: other)
    with pytest.raises(FscaleError, match="install the same package"):
        boot_from(asked, directory, Steps(None))  # type: ignore[arg-type]


def test_the_lines_of_a_boot_are_its_own_order(
    guest: Guest, executed: list[Guest], tmp_path: Path
) -> None:
    measured(tmp_path / "run", guest, Farm(tmp_path / "farm"))
    first, second = sorted((tmp_path / "run" / "boots").iterdir())
    orders = [
        [json.loads(line).get("id") for line in path.read_text().splitlines()][1:]
        for path in (first, second)
    ]
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(test.id for test in TESTS)
    assert orders[0] != orders[1]
