# SPDX-License-Identifier: GPL-2.0-only
import errno
import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from fscale.commands import schema
from fscale.model import runs, store
from fscale.model.errors import FscaleError
from fscale.model.facts import list_changes
from fscale.model.results import Cell, KernelBuild, Run, Status, Tuning
from tests.support import synthetic

KEY = synthetic.key()
TUNING = Tuning(
    turbo=False,
    idle_driver=None,
    idle_governor=None,
    idle_states={},
    numa_balancing=None,
    huge_pages=None,
    shmem_huge_pages=None,
)


def cell(status: Status = "ok") -> Cell:
    return Cell(id=KEY.id, key=KEY, status=status, started="2026-01-01", wall_seconds=1.0)


def run(seed: int = 1, **suite: object) -> Run:
    machine = synthetic.machine(2, kernel_cmdline="")
    return synthetic.run(seed=seed, suite=suite, revision=None, machine=machine)


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = store.Store(tmp_path)
    saved.save("file", "old")

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "the disk is full")

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(OSError, match="the disk is full") as caught:
        saved.save("file", "new")
    assert caught.value.filename == str(tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "old"


@pytest.mark.parametrize(
    ("status", "finished"),
    [
        ("ok", True),
        ("skipped", False),
        ("error", False),
        ("interrupted", False),
        ("invalid", False),
    ],
)
def test_only_good_cells_are_not_measured_again(
    tmp_path: Path, status: Status, finished: bool
) -> None:
    kept = store.Store(tmp_path)
    assert not kept.finished(KEY)
    kept.save_cell(cell(status))
    assert kept.finished(KEY) is finished


@pytest.mark.parametrize("status", ["skipped", "error", "interrupted", "invalid"])
def test_only_a_good_cell_replaces_a_good_one(tmp_path: Path, status: Status) -> None:
    kept = store.Store(tmp_path)
    first = cell().model_copy(update={"ops": 1, "disturbed": "a build"})
    kept.save_cell(first)
    again = store.Replacing(tmp_path, {KEY.id: "a build"})
    again.save_cell(cell(status))
    assert kept.load_cell(KEY) == first
    assert not (tmp_path / "replaced").exists()
    again.save_cell(cell().model_copy(update={"ops": 2}))
    now = kept.load_cell(KEY)
    assert now
    assert (now.ops, now.replaces) == (2, "a build")
    old = (tmp_path / "replaced" / f"{KEY.id}.json").read_text()
    assert Cell.model_validate_json(old) == first


def test_half_a_cell_counts_as_none(tmp_path: Path) -> None:
    kept = store.Store(tmp_path)
    kept.save_cell(cell())
    path = tmp_path / "cells" / f"{KEY.id}.json"
    path.write_text(path.read_text()[:100])
    assert not kept.finished(KEY)


def test_foreign_run_json(tmp_path: Path) -> None:
    assert store.Store(tmp_path).load_run() is None
    (tmp_path / "run.json").write_text('{"schema": 2}')
    with pytest.raises(FscaleError, match="is not a run of this version"):
        store.Store(tmp_path).load_run()


def test_differences_are_named() -> None:
    assert list_changes(run(duration=1), run(duration=1)) == []
    assert list_changes(run(duration=1), run(duration=2)) == ["suite.duration: 1 -> 2"]
    assert list_changes(run(seed=1), run(seed=2)) == ["seed: 1 -> 2"]


@pytest.mark.parametrize("program", ["kernel image", "qemu program", "fscale-sim"])
def test_cells_of_one_run_are_simulated_with_one_program(program: str) -> None:
    old, new = run(), run()
    old.versions[program] = "sha256:1"
    assert list_changes(old, new) == []  # an older fscale did not record it
    new.versions[program] = "sha256:2"
    assert list_changes(old, new) == [f"{program}: sha256:1 -> sha256:2"]


def built(run: Run, version: str, build_id: str | None = "ab12") -> Run:
    run.machine.build = KernelBuild(
        version=version, id=build_id, taint=0, debug=[], debug_from="signs"
    )
    return run


def test_another_build_of_the_same_release_is_another_kernel() -> None:
    old, new = built(run(), "#1 SMP"), built(run(), "#2 SMP")
    assert list_changes(old, new) == ["machine.build: #1 SMP (ab12) -> #2 SMP (ab12)"]
    new = built(run(), "#1 SMP", "cd34")
    assert list_changes(old, new) == ["machine.build: #1 SMP (ab12) -> #1 SMP (cd34)"]
    # A warning of the kernel between two calls taints it; its speed is the same.
    new = built(run(), "#1 SMP")
    assert new.machine.build is not None
    new.machine.build.taint = 512
    assert list_changes(old, new) == []


@pytest.mark.parametrize(
    ("where", "what", "says"),
    [
        ("run", {"revision": "b" * 40}, f"revision: {run().fscale_version} -> bbb"),
        ("run", {"fscale_version": "9"}, f"revision: {run().fscale_version} -> 9"),
        ("run", {"versions": {"fscale-bench": "2", "mkfs of f2fs": "new"}}, "fscale-bench: 1 -> 2"),
        ("run", {"versions": {"mkfs of ext4": "1.48"}}, "mkfs of ext4: 1.47 -> 1.48"),
        ("run", {"versions": {"module a.ko": "2"}}, "module a.ko: 1 -> 2"),
        ("machine", {"kernel_cmdline": "lockdep=1"}, "machine.kernel_cmdline:  -> lockdep=1"),
        ("machine", {"governor": "powersave"}, "machine.governor: null -> powersave"),
        (
            "machine",
            {"tuning": TUNING.model_copy(update={"turbo": True})},
            "machine.turbo: false -> true",
        ),
        (
            "machine",
            {"confinement": synthetic.confinement(memory_bytes=1 << 30)},
            "machine.memory_limit: null -> 1073741824",
        ),
    ],
)
def test_what_a_run_is_not_continued_with(where: str, what: dict[str, object], says: str) -> None:
    old = run()
    old.versions = {"fscale-bench": "1", "mkfs of ext4": "1.47", "gcc": "12", "module a.ko": "1"}
    old.machine.tuning, old.machine.confinement = TUNING, synthetic.confinement()
    new = old.model_copy(deep=True)
    for name, value in what.items():
        setattr(new if where == "run" else new.machine, name, value)
    (found,) = list_changes(old, new)
    assert found.startswith(says)


def test_a_run_is_not_continued_with_other_settings_that_both_calls_know() -> None:
    old, new = run(), run()
    old.machine.tuning = TUNING.model_copy(update={"preempt": "none"})
    new.machine.tuning = TUNING.model_copy(update={"preempt": "full", "zswap": "Y"})
    assert list_changes(old, new) == ["machine.preempt: none -> full"]


def test_a_call_is_one_command_of_a_run_also_where_its_sides_are_resumed(tmp_path: Path) -> None:
    old, side, new = run(), run(), run()
    old.command, side.command, new.command = ["first"], ["first"], ["second"]
    runs.resume(side, new, tmp_path)
    runs.resume(old, new, tmp_path)
    assert new.command == ["first", "second"]


def test_a_run_from_before_builds_were_recorded_is_read(tmp_path: Path) -> None:
    kept = store.Store(tmp_path)
    kept.save_run(run())
    document = json.loads((tmp_path / "run.json").read_text())
    for name in ("build", "tuning"):
        del document["machine"][name]
    (tmp_path / "run.json").write_text(json.dumps(document))
    assert kept.load_run() == run()


def test_files_match_their_schemas(tmp_path: Path) -> None:
    kept = store.Store(tmp_path)
    kept.save_run(run(duration=1))
    kept.save_cell(cell())
    for name, path in (
        ("run", tmp_path / "run.json"),
        ("cell", tmp_path / "cells" / f"{KEY.id}.json"),
    ):
        document = json.loads(path.read_text())
        jsonschema.validate(document, json.loads(schema.text(name)))
        assert document["schema"] == 1
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(document | {"extra key": 1}, json.loads(schema.text(name)))


def test_of_mount_options_only_what_changed_is_said(tmp_path: Path) -> None:
    old = store.Store(synthetic.write_run(tmp_path, [])).load_run()
    assert old is not None
    many = ["commit=5", "data=ordered", "rw"]
    old.filesystems = {"ext4": {"kernel": "ext4", "existing": True, "mount_options": many}}
    new = old.model_copy(deep=True)
    assert list_changes(old, new) == []
    new.filesystems["ext4"]["mount_options"] = ["commit=5", "data=journal", "rw"]
    assert list_changes(old, new) == [
        "filesystems.ext4.mount_options: `data=ordered` -> `data=journal`"
    ]


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        # What follows from the options that a user typed is not told.
        ({"suite": {"a": 2, "b": 2}, "versions": {store.BENCH: "2"}}, ["a: 1 -> 2", "b: 1 -> 2"]),
        (
            {"suite": dict.fromkeys("abcde", 2)},
            ["a: 1 -> 2", "b: 1 -> 2", "c: 1 -> 2", "and 2 more"],
        ),
        ({"versions": {store.BENCH: "2"}}, [f"{store.BENCH}: 1 -> 2"]),
    ],
)
def test_a_run_that_cannot_be_resumed_names_what_differs_in_a_line_each(
    changes: dict[str, Any], lines: list[str], tmp_path: Path
) -> None:
    old = synthetic.run(suite=dict.fromkeys("abcde", 1), versions={store.BENCH: "1"})
    if "suite" in changes:
        changes = changes | {"suite": old.suite | changes["suite"]}
    with pytest.raises(FscaleError) as caught:
        runs.resume(old, old.model_copy(update=changes), tmp_path)
    first, *told, last = str(caught.value).splitlines()
    assert first == f"{tmp_path} contains a run that cannot be resumed, because these differ:"
    assert told == [f"    {line}" for line in lines]
    assert last.startswith("Use another --output")
