# SPDX-License-Identifier: GPL-2.0-only
"""Stands for a machine that boots kernels, as an engine."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from fscale.farm.answer import PLANNED, Answer, Header, Planned, check
from fscale.farm.bootable import Bootable, Broken
from fscale.farm.connection import Lost
from fscale.farm.controls import Controls
from fscale.farm.objects import Objects
from fscale.farm.task import Task
from fscale.model.results import CellKey
from fscale.model.store import Store
from tests.support.farm import cell, content, keys
from tests.support.synthetic import write_run

KEYS = [key.model_copy(update={"cores": n + 1}) for n, key in enumerate(keys(1) * 2)]


class Box:
    """A machine that boots what it is told, but another kernel in `broken` boots."""

    undone: list[str] = []  # noqa: RUF012 - as in the protocol
    slots = 1
    shares_files = False

    def __init__(self, directory: Path, *broken: int, lost: Sequence[int] = ()) -> None:
        suite = {"warmup": 0.1, "remeasure": 0}
        run = Store(write_run(directory, [], suite=suite)).load_run()
        assert run
        self.run = run
        self.broken = broken
        self.lost = lost
        self.crashes: set[int] = set()
        """boots whose kernel crashes in its second cell"""
        self.log = "Kernel panic - not syncing: on purpose"
        self.booted: list[str] = []
        self.tasks: list[Task] = []

    def boot(self, kernel: Bootable) -> None:
        self.booted.append(kernel.release)
        number = len(self.booted)
        if number in self.lost:
            raise Lost("the network is down")
        runs = "6.1.0-own" if number in self.broken else kernel.release
        changes = {"kernel": runs, "kernel_cmdline": "quiet panic=10 oops=panic", "build": None}
        self.run.machine = self.run.machine.model_copy(update=changes)

    def submit(self, tasks: Sequence[Task], objects: Objects) -> None:
        del objects
        self.tasks = list(tasks)

    def collect(self) -> Iterator[Answer]:
        for number, task in enumerate(self.tasks):
            if number == 1 and len(self.booted) in self.crashes:
                raise Broken("the kernel panicked or hung in a task")
            planned = Planned(run=self.run, cells=KEYS).model_dump_json(by_alias=True).encode()
            files = {f"cells/{key.id}.json": self.measured(key) for key in task.keys}
            header = Header(task=task.id, host="box", code=0)
            yield check(task, header, files or {PLANNED: planned})

    def measured(self, key: CellKey) -> bytes:
        return content(cell(key))

    def use(self, controls: Controls) -> None:
        self.controls = controls

    def evidence(self) -> str:
        return self.log

    def cancel(self) -> list[Answer]:
        return []
