# SPDX-License-Identifier: GPL-2.0-only
"""Kernels that another machine boots in turn: the order, what is believed, and what is resumed."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from fscale.ab.guest_run import execute
from fscale.ab.machine_boots import KernelSide, MachineBoots, MachinePlan
from fscale.ab.methods import PairedMethod, method_of
from fscale.analysis.compare.settings import Settings
from fscale.farm.answer import PLANNED, Answer, Header, Planned, check
from fscale.farm.bootable import Bootable, OtherKernel
from fscale.farm.objects import Objects
from fscale.farm.task import Task
from fscale.model.results import CellKey
from fscale.model.store import Store
from fscale.model.variant import parse
from fscale.runner.request import Request
from fscale.vm.steps import Steps
from tests.support.farm import cell, content, keys
from tests.support.synthetic import write_run

A, B = "6.12.0-base", "6.12.0-new"
(KEY,) = keys(1)


class Box:
    """A machine that boots what it is told, but `instead` of its third boot."""

    slots = 1
    shares_files = False

    def __init__(self, directory: Path, instead: str | None = None) -> None:
        run = Store(write_run(directory, [])).load_run()
        assert run
        self.run = run
        self.instead = instead
        self.booted: list[str] = []
        self.tasks: list[Task] = []

    def boot(self, kernel: Bootable) -> None:
        self.booted.append(kernel.release)
        runs = self.instead if self.instead and len(self.booted) == 3 else kernel.release
        changes = {"kernel": runs, "kernel_cmdline": "quiet panic=10 oops=panic", "build": None}
        self.run.machine = self.run.machine.model_copy(update=changes)

    def submit(self, tasks: Sequence[Task], objects: Objects) -> None:
        del objects
        self.tasks = list(tasks)

    def collect(self) -> Iterator[Answer]:
        for task in self.tasks:
            planned = Planned(run=self.run, cells=[KEY]).model_dump_json(by_alias=True).encode()
            files = {f"cells/{key.id}.json": self.measured(key) for key in task.keys}
            header = Header(task=task.id, host="box", code=0)
            yield check(task, header, files or {PLANNED: planned})

    def measured(self, key: CellKey) -> bytes:
        return content(cell(key))

    def cancel(self) -> list[Answer]:
        return []


def source(output: Path, box: Box) -> MachineBoots:
    kernels = {"A": Bootable(A), "B": Bootable(B)}
    sides = {n: KernelSide(parse(f"kernel:{k.release}"), k) for n, k in kernels.items()}
    plan = MachinePlan(
        sides=sides,
        arguments=["quick"],
        output=output,
        seed=1,
        settings=Settings(),
        repetitions=4,
        request=Request(suite=Path("quick"), output=output),
    )
    return MachineBoots(plan, Steps(Console(stderr=True)), box)


def test_the_sides_boot_in_turn(tmp_path: Path) -> None:
    box = Box(tmp_path / "x")
    execute(source(tmp_path / "out", box), 1e6)
    assert [sorted(box.booted[n : n + 4]) for n in (0, 4)] == [[A, A, B, B]] * 2
    assert all(box.booted[n] == box.booted[n + 3] for n in (0, 4))
    run = Store(tmp_path / "out").load_run()
    assert run
    assert run.state == "complete"
    assert run.machine.guest is None
    assert (run.suite["base"], run.suite["new"]) == (f"kernel:{A}", f"kernel:{B}")
    assert len(Store(tmp_path / "out").cells()) == 8
    again = Box(tmp_path / "x2")
    execute(source(tmp_path / "out", again), 1e6)
    assert not again.booted


def test_another_kernel_ends_it_and_a_new_call_resumes(tmp_path: Path) -> None:
    box = Box(tmp_path / "x", instead="6.1.0-own")
    with pytest.raises(OtherKernel, match=r"should have booted 6\.12\.0-.*, but runs 6\.1\.0-own"):
        execute(source(tmp_path / "out", box), 1e6)
    again = Box(tmp_path / "x2")
    execute(source(tmp_path / "out", again), 1e6)
    assert len(again.booted) == 6


def test_kernels_on_a_machine_are_not_guests() -> None:
    def method(on: str | None) -> PairedMethod:
        return method_of(in_guests=True, slices=None, on=on)

    assert method("ssh:box") is PairedMethod.MACHINE_BOOTS
    assert method("dask://x:1") is method(None) is PairedMethod.BOOTS
