# SPDX-License-Identifier: GPL-2.0-only
"""Tasks, their input files by content, and `fscale cell`, which runs one."""

import os
from pathlib import Path

import pytest

from fscale.commands import cell as command
from fscale.farm.objects import Cache, Objects, digest_of
from fscale.farm.slot import own_cpu
from fscale.farm.task import Task
from fscale.model.errors import FscaleError
from fscale.model.store import Store
from tests.support.farm import cell, keys, task


def test_a_file_arrives_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "kernel"
    path.write_bytes(os.urandom(20 << 20))
    objects, cache = Objects(), Cache(tmp_path / "cache")
    digest = objects.add(path)
    assert digest == digest_of(path)
    assert cache.missing([digest, digest]) == [digest]
    with pytest.raises(FscaleError):
        cache.put(digest, [*objects.chunks(digest), b"more"])
    assert not list((tmp_path / "cache").iterdir())
    assert digest_of(cache.put(digest, objects.chunks(digest))) == digest
    assert cache.missing([digest]) == []


def test_what_was_long_not_wanted_is_removed(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    wanted, other = ("a" * 64, "b" * 64)
    for digest in (wanted, other, ".lock"):
        (tmp_path / digest).touch()
        os.utime(tmp_path / digest, (0, 0))
    cache.renew([wanted])
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", wanted]


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "a" * 63, "A" * 64])
def test_a_digest_is_no_path(digest: str, tmp_path: Path) -> None:
    with pytest.raises(FscaleError):
        Cache(tmp_path).path(digest)


def run(asked: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """`fscale cell` with a kind that needs no guest; each cell has what its input files say."""

    def measure(asked: Task, directory: Path, output: Path) -> None:
        store = Store(output)
        for key in asked.keys:
            text = (directory / "modules" / "one.ko").read_text()
            store.save_cell(cell(key).model_copy(update={"reason": text}))

    monkeypatch.setitem(command.KINDS, "simulate", measure)
    path = tmp_path / "task.json"
    path.write_text(asked.model_dump_json())
    command._cell(path, tmp_path / "out", tmp_path / "objects")
    return Store(tmp_path / "out")


def test_a_task_finds_its_files_by_their_roles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "built").write_text("of this digest")
    objects = Objects()
    digest = objects.add(tmp_path / "built")
    asked = task(*keys(2), files={"modules/one.ko": digest})
    with pytest.raises(FscaleError, match=digest):
        run(asked, tmp_path, monkeypatch)
    Cache(tmp_path / "objects").put(digest, objects.chunks(digest))
    found = run(asked, tmp_path, monkeypatch).cells()
    assert [one.reason for one in found] == ["of this digest"] * 2


def test_a_task_of_another_revision_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FscaleError, match="another"):
        run(task(*keys(1), identity="another"), tmp_path, monkeypatch)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("role", ["../x", "/etc/x", "modules/../../x", "modules/"])
def test_a_role_cannot_leave_the_directory(role: str) -> None:
    with pytest.raises(ValueError):
        task(*keys(1), files={role: "0" * 64})


def test_tasks_that_run_at_once_have_cpus_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cpus = sorted(os.sched_getaffinity(0))
    with own_cpu() as first:
        assert first == cpus[0]
        with own_cpu() as second:
            assert second == cpus[1 % len(cpus)]
    with own_cpu() as again:
        assert again == first
