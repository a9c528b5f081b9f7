# SPDX-License-Identifier: GPL-2.0-only
"""A comparison as a task: it stays on the machine that began it, and what it measured is kept."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from fscale.ab.tasks import Asked, measure_on
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import AbRecord
from fscale.farm.answer import Answer, Header, Refused, check
from fscale.farm.objects import Objects
from fscale.farm.results import hosts
from fscale.farm.task import Task
from fscale.model.errors import Exit, Interrupted
from fscale.model.results import CellKey
from fscale.model.store import AB_FILE, RUN_FILE, Store
from fscale.model.variant import parse
from fscale.runner.request import Request
from fscale.runner.tasks import NotPlanned
from tests.support.farm import cell, content, keys
from tests.support.synthetic import write_run

KEYS = [key.model_copy(update={"side": side}) for key in keys(2) for side in "AB"]
ASKED = Asked(parse("tmpfs"), parse("ext4"), Settings(), 2, False, 60, 5)


class Machine:
    """An engine with one machine, which measures the first `count` of KEYS."""

    slots = 1
    shares_files = True

    def __init__(self, directory: Path, count: int = 4, code: Exit = Exit.GOOD) -> None:
        self.count = count
        self.code = code
        self.stops = False
        self.tasks: list[Task] = []
        self.objects = Objects()
        run = Store(write_run(directory, [])).load_run()
        assert run
        run.machine = run.machine.model_copy(update={"hostname": "n2"})
        record = AbRecord(base="tmpfs", new="ext4", looks=[2])
        self.whole = {
            RUN_FILE: run.model_dump_json(by_alias=True).encode(),
            AB_FILE: record.model_dump_json(by_alias=True).encode(),
        }

    def submit(self, given: Sequence[Task], objects: Objects) -> None:
        self.tasks += given
        self.objects = objects

    def answer(self, of: Sequence[CellKey]) -> Answer:
        task = self.tasks[-1]
        cells = {f"cells/{key.id}.json": content(cell(key)) for key in of}
        header = Header(task=task.id, host="n2", code=self.code, text="no such mount option")
        return check(task, header, {**self.whole, **cells} if of else {})

    def collect(self) -> Iterator[Answer]:
        if self.stops:
            raise Interrupted("stopped")
        yield self.answer(KEYS[: self.count])

    def cancel(self) -> list[Answer]:
        return [self.answer(KEYS[:2])]


def compare(output: Path, machine: Machine) -> None:
    measure_on(machine, Request(suite=Path("quick"), output=output), ASKED)


def test_one_task_is_the_whole_comparison(tmp_path: Path) -> None:
    output, machine = tmp_path / "out", Machine(tmp_path / "x")
    compare(output, machine)
    (task,) = machine.tasks
    assert (task.kind, task.keys, task.host, task.files) == ("ab", [], None, {})
    assert {c.key.side for c in Store(output).cells()} == {"A", "B"}
    assert set(hosts(Store(output)).values()) == {"n2"}
    run = Store(output).load_run()
    assert run
    assert (run.id, run.machine.hostname) == ("out", "n2")
    assert AbRecord.model_validate_json((output / AB_FILE).read_bytes()).looks == [2]


def test_it_is_resumed_on_its_machine_with_its_cells(tmp_path: Path) -> None:
    output, machine = tmp_path / "out", Machine(tmp_path / "x", 2, Exit.INTERRUPTED)
    with pytest.raises(Interrupted):
        compare(output, machine)
    again = Machine(tmp_path / "x")
    compare(output, again)
    (task,) = again.tasks
    assert task.host == "n2"
    there = {f"cells/{key.id}.json" for key in KEYS[:2]}
    assert task.files.keys() == {RUN_FILE, AB_FILE, *there}
    assert again.objects.paths.keys() == set(task.files.values())
    run = Store(output).load_run()
    assert run
    assert len(run.command) == 2


def test_what_it_had_measured_before_ctrl_c_is_kept(tmp_path: Path) -> None:
    output, machine = tmp_path / "out", Machine(tmp_path / "x")
    machine.stops = True
    with pytest.raises(Interrupted):
        compare(output, machine)
    assert len(Store(output).cells()) == 2


@pytest.mark.parametrize("code", [Exit.FAILED, Exit.USAGE, Exit.SKIPPED])
def test_a_failure_has_the_exit_code_of_the_machine(tmp_path: Path, code: Exit) -> None:
    with pytest.raises(NotPlanned) as caught:
        compare(tmp_path / "out", Machine(tmp_path / "x", 0, code))
    assert caught.value.code == code
    assert "no such mount option" in str(caught.value)


def test_a_record_of_a_stranger_is_refused_before_anything_is_kept(tmp_path: Path) -> None:
    output, machine = tmp_path / "out", Machine(tmp_path / "x")
    machine.whole[AB_FILE] = b"{}"
    with pytest.raises(Refused):
        compare(output, machine)
    assert not output.exists()
