# SPDX-License-Identifier: GPL-2.0-only
"""A run as tasks of an engine: who plans it, who may measure it, and what becomes of a failure."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from fscale.farm import answer
from fscale.farm.answer import AB_FILE, PLANNED, Answer, Header, Planned, Refused, check, read_files
from fscale.farm.objects import Objects
from fscale.farm.results import hosts
from fscale.farm.task import Task
from fscale.model import paths
from fscale.model.errors import Exit, FscaleError, Interrupted
from fscale.model.results import Cell, CellKey, Cpu, Run
from fscale.model.store import RUN_FILE, Store
from fscale.runner import tasks
from fscale.runner.request import Request
from fscale.runner.tasks import describe, plan, refuse_other_machine, request_from, warn_of_hosts
from tests.support.farm import cell, content, keys, task
from tests.support.synthetic import write_run

KEYS = keys(3)
TWO_CORES = [Cpu(cpu=n, core=n, socket=0, node=0, max_mhz=2000) for n in range(2)]


def made_up(directory: Path, host: str = "n1", **changes: Any) -> Run:
    run = Store(write_run(directory, [])).load_run()
    assert run
    run.machine = run.machine.model_copy(update={"hostname": host, **changes})
    return run


class Machines:
    """An engine whose machines answer as they are told, by the ids of cells."""

    slots = 2
    shares_files = True

    def __init__(self, planned: Run, answers: dict[str, Answer | None] | None = None) -> None:
        self.planned = planned
        self.submitted: list[Task] = []
        self.answers = answers or {}
        self.left: list[Answer] = []
        self.code = Exit.GOOD
        self.interrupted = False

    def submit(self, given: Sequence[Task], objects: Objects) -> None:
        del objects
        self.submitted = list(given)

    def collect(self) -> Iterator[Answer]:
        for one in self.submitted:
            if not one.keys:
                content = Planned(run=self.planned, cells=KEYS).model_dump_json(by_alias=True)
                files = {} if self.code else {PLANNED: content.encode()}
                header = Header(task=one.id, host="n1", code=self.code, text="no such mkfs")
                yield check(one, header, files)
                continue
            if self.interrupted:
                raise Interrupted("stopped")
            yield self.measured(one)

    def measured(self, one: Task) -> Answer:
        (key,) = one.keys
        header = Header(task=one.id, host=f"n{key.repetition}", code=0)
        if key.repetition == 3:
            return check(one, header.model_copy(update={"code": 137, "text": "TIMEOUT"}), {})
        found = cell(key)
        if key.repetition == 2:
            found.status, found.reason = "interrupted", "stopped by SIGTERM"
            header = header.model_copy(update={"code": 3, "text": "TIMEOUT"})
        return check(one, header, {f"cells/{key.id}.json": content(found)})

    def cancel(self) -> list[Answer]:
        return [self.measured(self.submitted[0])]


def request(output: Path, **changes: Any) -> Request:
    return Request(suite=Path("quick"), output=output, **changes)


def test_a_machine_plans_the_run_and_each_cell_is_a_task(tmp_path: Path) -> None:
    output, engine = tmp_path / "out", Machines(made_up(tmp_path / "x"))
    planned = plan(request(output), 5, engine)
    assert (planned.run.id, planned.cells, planned.resumed) == ("out", KEYS, False)
    planned.store.save_run(planned.run)
    ended: list[Cell] = []
    tasks.measure(planned, planned.todo, engine, ended.append)
    assert [one.keys for one in engine.submitted] == [[key] for key in KEYS]
    assert all(one.work["seed"] == planned.run.seed for one in engine.submitted)
    stored = {c.key.repetition: c for c in Store(output).cells()}
    assert {n: c.status for n, c in stored.items()} == {1: "ok", 2: "interrupted", 3: "error"}
    assert "TIMEOUT" in str(stored[2].reason)
    assert "TIMEOUT" in str(stored[3].reason)
    assert stored[3].fault == "machine"
    assert len(ended) == 3


def test_only_unfinished_cells_are_measured_again_on_any_machine(tmp_path: Path) -> None:
    output, engine = tmp_path / "out", Machines(made_up(tmp_path / "x"))
    planned = plan(request(output), 0, engine)
    planned.store.save_run(planned.run)
    tasks.measure(planned, planned.todo, engine, lambda _: None)
    engine.planned = made_up(tmp_path / "x", "n7")
    again = plan(request(output), 0, engine)
    assert again.resumed
    assert again.run.machine.hostname == "n1"
    assert [key.repetition for key in again.todo] == [2, 3]
    assert hosts(again.store) == {KEYS[0].id: "n1"}


def test_a_run_of_this_machine_is_not_resumed_elsewhere(tmp_path: Path) -> None:
    output = tmp_path / "out"
    write_run(output, [cell(KEYS[0])])
    with pytest.raises(FscaleError, match=r"machine\.hostname"):
        plan(request(output), 0, Machines(made_up(tmp_path / "x", "n7")))


@pytest.mark.parametrize("code", [Exit.USAGE, Exit.SKIPPED, Exit.FAILED])
def test_a_machine_that_cannot_plan_gives_its_exit_code(tmp_path: Path, code: Exit) -> None:
    engine = Machines(made_up(tmp_path / "x"))
    engine.code = code
    with pytest.raises(tasks.NotPlanned) as caught:
        plan(request(tmp_path / "out"), 0, engine)
    assert caught.value.code == code
    assert "no such mkfs" in str(caught.value)


def test_what_cancelled_tasks_had_measured_is_kept(tmp_path: Path) -> None:
    engine = Machines(made_up(tmp_path / "x"))
    planned = plan(request(tmp_path / "out"), 0, engine)
    planned.store.save_run(planned.run)
    engine.interrupted = True
    with pytest.raises(Interrupted):
        tasks.measure(planned, planned.todo, engine, lambda _: None)
    assert [c.key for c in planned.store.cells()] == [KEYS[0]]


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({}, None),
        ({"memory_bytes": int(15.5 * (1 << 30))}, None),
        ({"memory_bytes": 1 << 33}, "machine.memory_bytes: 17179869184 -> 8589934592"),
        ({"mitigations": {"spectre_v2": "Vulnerable"}}, "machine.mitigations"),
        ({"topology": [Cpu(cpu=n, core=0, socket=0, node=0) for n in (0, 1)]}, "machine.cores"),
        ({"topology": TWO_CORES}, "machine.max_mhz: null -> 2000"),
        ({"kernel_cmdline": "root=UUID=2 quiet"}, None),
        ({"kernel_cmdline": "root=UUID=1 quiet nosmt"}, "machine.kernel_cmdline"),
        ({"kernel": "5.4"}, "machine.kernel"),
        ({"cpu_model": "another"}, "machine.cpu_model"),
        ({"governor": "powersave"}, "machine.governor"),
    ],
)
def test_machines_that_share_a_run_are_alike(
    tmp_path: Path, changes: dict[str, Any], refused: str | None
) -> None:
    planned = made_up(tmp_path, "n1", kernel_cmdline="root=UUID=1 quiet", governor="performance")
    fields = {"kernel_cmdline": "root=UUID=1 quiet", "governor": "performance", **changes}
    here = made_up(tmp_path, "n2", **fields)
    if refused is None:
        refuse_other_machine(planned, here)
        return
    with pytest.raises(FscaleError) as caught:
        refuse_other_machine(planned, here)
    assert refused in str(caught.value)


def test_several_machines_of_a_run_are_a_warning(tmp_path: Path) -> None:
    engine = Machines(made_up(tmp_path / "x"))
    planned = plan(request(tmp_path / "out"), 0, engine)
    assert not warn_of_hosts(planned.store)
    for one in ("n1", "n2"):
        for key in KEYS[:1] if one == "n1" else KEYS[1:]:
            found = Header(task=task(key).id, host=one, code=0)
            kept = check(task(key), found, {f"cells/{key.id}.json": content(cell(key))})
            tasks.save_answer(planned.store, kept)
    (warning,) = warn_of_hosts(planned.store)
    assert "n1 (1 cell)" in warning
    assert "n2 (2 cells)" in warning


def test_a_request_arrives_as_it_was(tmp_path: Path) -> None:
    asked = request(
        tmp_path / "here",
        overrides={"cores": [1, "50%"], "filesystems": ["ext4:mount=data=journal"]},
        options=["MRPL.access=stat"],
        explicit={"ext4"},
        seed=7,
        partitions=2,
        directory=tmp_path,
        binary=paths.BENCH,
    )
    arrived = Task.model_validate_json(task(work=describe(asked, 3)).model_dump_json()).work
    found = request_from(arrived, tmp_path / "there", asked.applications)
    asked.output = found.output
    assert found == asked
    assert arrived["wait"] == 3


def whole(kind: str, files: dict[str, bytes]) -> Answer:
    asked = task(kind=kind)
    return check(asked, Header(task=asked.id, host="n1", code=0), files)


def test_a_comparison_returns_its_run_and_cells(tmp_path: Path) -> None:
    run = made_up(tmp_path).model_dump_json(by_alias=True).encode()
    cells = {f"cells/{key.id}.json": content(cell(key)) for key in KEYS}
    found = whole("ab", {RUN_FILE: run, AB_FILE: b"{}", **cells})
    assert found.run
    assert (found.record, [c.key for c in found.cells]) == (b"{}", KEYS)


def other(key: CellKey) -> dict[str, bytes]:
    return {f"cells/{key.id}.json": content(cell(KEYS[1]))}


@pytest.mark.parametrize(
    ("kind", "files"),
    [
        ("ab", {"run.json": b"{}"}),
        ("ab", {"report.html": b""}),
        ("ab", other(KEYS[0])),
        ("ab", {"cells/../run.json": content(cell(KEYS[0]))}),
        ("ab", {PLANNED: b"{}"}),
        ("run", {RUN_FILE: b"{}"}),
        ("run", {PLANNED: b"{}"}),
        ("run", other(KEYS[1])),
        ("simulate", {PLANNED: b"{}"}),
    ],
)
def test_other_files_of_a_task_without_keys_are_refused(kind: str, files: dict[str, bytes]) -> None:
    with pytest.raises(Refused):
        whole(kind, files)


def test_files_of_a_comparison_that_are_links_are_not_read(tmp_path: Path) -> None:
    (tmp_path / RUN_FILE).symlink_to("/etc/passwd")
    with pytest.raises(OSError, match="link"):
        read_files(task(kind="ab"), tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "whole_run"),
    [
        ("MOST_FILES", 2, False),
        ("MOST_OF_A_RUN", 2, True),
        ("MOST_WHOLE", 1000, False),
        ("MOST_WHOLE", 1000, True),
    ],
)
def test_a_machine_cannot_fill_the_memory(
    tmp_path: Path, name: str, value: int, whole_run: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    for key in KEYS:
        store.save_cell(cell(key))
    asked = task(kind="ab") if whole_run else task(*KEYS)
    assert len(read_files(asked, tmp_path)) == len(KEYS)
    monkeypatch.setattr(answer, name, value)
    with pytest.raises(OSError, match="too many or too large"):
        read_files(asked, tmp_path)
