# SPDX-License-Identifier: GPL-2.0-only
"""What a machine returns for a task is a stranger's: nothing but the task's own cells is kept."""

import json
from pathlib import Path

import pytest

from fscale.farm import answer
from fscale.farm.answer import Header, Refused, check, pack, read_files, unpack
from fscale.farm.results import hosts, save_answer
from fscale.model.store import Store
from tests.support.farm import cell, content, keys, task
from tests.support.synthetic import machine, write_run

ONE, TWO, OTHER = keys(3)
TASK = task(ONE, TWO)
HEADER = Header(task=TASK.id, host="node7", code=0)
FILES = {f"cells/{key.id}.json": content(cell(key)) for key in TASK.keys}


def refusal(files: dict[str, bytes]) -> str:
    with pytest.raises(Refused) as refused:
        check(TASK, *unpack(pack(HEADER, files)))
    return str(refused.value)


def test_the_cells_of_a_task_are_kept_with_who_measured_them(tmp_path: Path) -> None:
    profile = {f"profiles/{ONE.id}/cpu.json.gz": b"packed"}
    found = check(TASK, *unpack(pack(HEADER, FILES | profile)))
    store = Store(tmp_path)
    save_answer(store, found)
    assert [one.key for one in store.cells()] == [ONE, TWO]
    assert (tmp_path / f"profiles/{ONE.id}/cpu.json.gz").read_bytes() == b"packed"
    assert hosts(store) == {ONE.id: "node7", TWO.id: "node7"}


def test_a_cell_that_is_there_has_its_host_also_after_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    save = Store.save

    def interrupted(of: Store, name: str, text: str | bytes) -> None:
        if TWO.id in name:
            raise KeyboardInterrupt
        save(of, name, text)

    monkeypatch.setattr(Store, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_answer(store, check(TASK, *unpack(pack(HEADER, FILES))))
    assert [one.key for one in store.cells()] == [ONE]
    assert hosts(store) == {ONE.id: "node7"}


def test_a_task_that_failed_has_no_cells() -> None:
    found = check(TASK, *unpack(pack(HEADER.model_copy(update={"code": 1, "text": "no"}), {})))
    assert (found.cells, found.header.code, found.header.text) == ([], 1, "no")


@pytest.mark.parametrize(
    "name",
    [
        f"cells/{OTHER.id}.json",
        f"cells/../cells/{ONE.id}.json",
        f"/cells/{ONE.id}.json",
        f"cells/{ONE.id}.json/",
        "run.json",
        "../x",
        f"profiles/{OTHER.id}/cpu.json.gz",
        f"profiles/{ONE.id}/../../run.json",
        f"profiles/{ONE.id}/..",
        f"profiles/{ONE.id}/.hidden",
        f"profiles/{ONE.id}/",
    ],
)
def test_a_name_that_is_not_of_the_task_is_refused(name: str) -> None:
    assert name[:60] in refusal(FILES | {name: content(cell(OTHER))})


def test_another_cell_under_the_name_of_one_is_refused() -> None:
    assert OTHER.id in refusal({f"cells/{ONE.id}.json": content(cell(OTHER))})
    assert TWO.id in refusal({f"cells/{ONE.id}.json": content(cell(TWO))})


def test_a_cell_that_is_not_one_is_refused() -> None:
    assert ONE.id in refusal({f"cells/{ONE.id}.json": b"[" * 100_000})


def test_an_answer_of_another_task_is_refused() -> None:
    with pytest.raises(Refused):
        check(task(ONE), *unpack(pack(HEADER, {f"cells/{ONE.id}.json": FILES[
            f"cells/{ONE.id}.json"]})))  # fmt: skip


def header(**changes: object) -> bytes:
    return json.dumps(HEADER.model_dump() | changes).encode() + b"\n"


@pytest.mark.parametrize(
    "wire",
    [
        b"",
        b"no line" * 1000,
        b"[]\n",
        b"[" * 500_000 + b"\n",
        header(files=[{"name": "x", "size": 3}]) + b"12",
        header(files=[{"name": "x", "size": 3}]) + b"1234",
        header(files=[{"name": "x", "size": -1}]) + b"",
        header(files=[{"name": "x", "size": 1}] * 2) + b"12",
        header(files=[{"name": "x", "size": 257 << 20}]),
        header(files=[{"name": f"{i}", "size": 0} for i in range(5000)]),
        header(text="x" * (2 << 16)),
        header(host="\x1b[2J"),
        header(extra=1),
    ],
)
def test_a_damaged_answer_is_refused(wire: bytes) -> None:
    with pytest.raises(Refused):
        unpack(wire)


def test_a_file_that_is_too_large_for_its_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "MAX_BYTES", 100)
    name = f"cells/{ONE.id}.json"
    assert "is too large" in refusal({name: FILES[name]})
    whole = task(kind="commute")
    conflicts = {answer.CONFLICTS_FILE: b"x" * 101}
    found = check(whole, HEADER.model_copy(update={"task": whole.id}), conflicts)
    assert found.record == b"x" * 101


def test_an_answer_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = pack(HEADER, FILES)
    monkeypatch.setattr(answer, "MOST_WHOLE", len(wire))
    assert unpack(wire)
    monkeypatch.setattr(answer, "MOST_WHOLE", len(wire) - 1)
    with pytest.raises(Refused):
        unpack(wire)


def test_files_are_read_without_links_and_only_those_of_the_task(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for key in (ONE, TWO, OTHER):
        store.save_cell(cell(key))
    store.save(f"profiles/{ONE.id}/cpu.json.gz", "x")
    assert sorted(read_files(TASK, tmp_path)) == sorted([*FILES, f"profiles/{ONE.id}/cpu.json.gz"])
    (tmp_path / "profiles" / TWO.id).symlink_to("/etc")
    with pytest.raises(OSError):
        read_files(TASK, tmp_path)


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save(f"cells/{ONE.id}.json", bytes(17 << 20))
    with pytest.raises(OSError):
        read_files(TASK, tmp_path)


def test_a_guest_returns_a_run_and_its_cells(tmp_path: Path) -> None:
    asked = task(kind="guest")
    answered = Header(task=asked.id, host="node7", code=0)
    write_run(tmp_path, [cell(ONE)], workloads=["DRBL"], filesystems=["tmpfs"], machine=machine(4))
    for name in ("crash.json", "planned.json", "other"):
        (tmp_path / name).write_text("{}")
    files = read_files(asked, tmp_path)
    assert files.keys() == {"run.json", "crash.json", f"cells/{ONE.id}.json"}
    found = check(asked, *unpack(pack(answered, files)))
    assert found.complete and found.run and found.record == b"{}"
    assert [one.key for one in found.cells] == [ONE]
    for code in (1, 3, -9):
        failed = answered.model_copy(update={"code": code})
        assert not check(asked, *unpack(pack(failed, files))).complete
    for name in ("ab.json", "planned.json", "../run.json", f"profiles/{ONE.id}/x"):
        with pytest.raises(Refused):
            check(asked, *unpack(pack(answered, {name: b"{}"})))
    with pytest.raises(Refused):
        check(asked, *unpack(pack(answered, {"cells/../run.json": content(cell(ONE))})))
