# SPDX-License-Identifier: GPL-2.0-only
"""What is refused before anything is changed, each at its bound."""

import os
import re
import resource
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from fscale.model import catalogue
from fscale.model.errors import FscaleError
from fscale.runner import guard, resources
from fscale.system import cgroups
from tests.support import synthetic

MIB = 1 << 20


@pytest.fixture
def free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Free bytes of the file system with `tmp_path`, under "bytes"."""
    found = {"bytes": 1 << 40}

    def usage(path: Path) -> SimpleNamespace:
        assert path == tmp_path
        return SimpleNamespace(free=found["bytes"])

    monkeypatch.setattr(shutil, "disk_usage", usage)
    return found


def refused(check: object, *arguments: object) -> str:
    assert callable(check)
    with pytest.raises(FscaleError) as caught:
        check(*arguments)
    return str(caught.value)


def test_a_proc_of_another_pid_namespace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "self").symlink_to(str(os.getpid()))
    guard.check_proc(tmp_path)
    (tmp_path / "self").unlink()
    (tmp_path / "self").symlink_to("4")
    assert "another PID namespace" in refused(guard.check_proc, tmp_path)


def test_the_nearest_directory_that_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert guard.existing(tmp_path) == tmp_path
    assert guard.existing(tmp_path / "a" / "b") == tmp_path
    monkeypatch.chdir(tmp_path)
    assert guard.existing(Path("a/b")) == tmp_path


def test_results_go_where_there_is_nothing_or_a_run(tmp_path: Path, free: dict[str, int]) -> None:
    guard.check_output(tmp_path / "new" / "run")
    guard.check_output(tmp_path)
    (tmp_path / "something").touch()
    assert f"{tmp_path} is not empty" in refused(guard.check_output, tmp_path)
    (tmp_path / "run.json").touch()
    guard.check_output(tmp_path)
    assert "has no tests.jsonl" in refused(guard.check_output, tmp_path, "tests.jsonl")
    file = tmp_path / "something"
    assert re.fullmatch(
        rf"{re.escape(str(file))} is not a directory; .* --output",
        refused(guard.check_output, file),
    )


def test_results_take_sixteen_mebibytes(tmp_path: Path, free: dict[str, int]) -> None:
    free["bytes"] = 16 * MIB
    guard.check_output(tmp_path)
    free["bytes"] -= 1
    assert f"no space left in {tmp_path}" in refused(guard.check_output, tmp_path / "new")


def test_a_directory_of_files_takes_a_quarter_of_a_gibibyte(
    tmp_path: Path, free: dict[str, int]
) -> None:
    free["bytes"] = 256 * MIB
    guard.check_directory(tmp_path)
    free["bytes"] -= 1
    said = refused(guard.check_directory, tmp_path)
    assert f"{tmp_path} has 255 MiB free" in said and "256 MiB are needed" in said
    none = tmp_path / "none"
    assert refused(guard.check_directory, none) == (
        f"{none} is not a directory; --dir needs an existing one"
    )


@pytest.mark.parametrize("lacking", [os.W_OK, os.X_OK, None])
def test_a_directory_that_cannot_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: dict[str, int], lacking: int | None
) -> None:
    """One right is lacking, or the file system is mounted read-only (which root does not see)."""
    if lacking is None:
        monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=os.ST_RDONLY | 2))
    else:
        monkeypatch.setattr(os, "access", lambda path, wanted: not wanted & lacking)
    assert refused(guard.check_output, tmp_path) == (
        f"{tmp_path} is not writable; give another --output"
    )
    assert refused(guard.check_directory, tmp_path) == (
        f"{tmp_path} is read-only for this user; give another --dir"
    )


def test_three_quarters_of_the_memory_may_be_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {Path("/proc/meminfo"): "MemTotal: 999999 kB\nMemAvailable: 4096 kB\nBuffers: 9 kB\n"}
    monkeypatch.setattr(Path, "read_text", lambda path: files[path])
    monkeypatch.setattr(cgroups, "memory_left", lambda groups: None)
    monkeypatch.setattr(cgroups, "chain", lambda controller: None)
    guard.check_memory(3 * MIB, "ram")
    said = refused(guard.check_memory, 3 * MIB + 1, "ram")
    assert "ram needs 3 MiB" in said
    assert "4 MiB available on this machine" in said


def test_a_control_groups_limit_counts_where_it_is_smaller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit = cgroups.Limit(2 * MIB, Path("/cg/memory.max"))
    monkeypatch.setattr(cgroups, "memory_left", lambda groups: limit)
    guard.check_memory(MIB, "ram")
    said = refused(guard.check_memory, 2 * MIB, "ram")
    assert "2 MiB available" in said
    assert "(/cg/memory.max)" in said
    big = cgroups.Limit(1 << 60, Path("/cg/memory.max"))
    monkeypatch.setattr(cgroups, "memory_left", lambda groups: big)
    assert "on this machine" in refused(guard.check_memory, 1 << 59, "ram")


@pytest.mark.parametrize(
    ("limit", "size", "good"),
    [
        (None, 8 * MIB, True),  # a small machine
        (1024 * MIB, 256 * MIB, True),
        (1024 * MIB, 255 * MIB, False),
        (512 * MIB, 128 * MIB, False),
        (1 << 50, 8 * MIB, True),  # a limit above what the machine has
    ],
)
def test_a_share_of_a_groups_limit_is_not_too_small(
    limit: int | None, size: int, good: bool
) -> None:
    confined = synthetic.confinement(memory_bytes=limit)
    machine = synthetic.machine(2).model_copy(update={"confinement": confined})
    if good:
        guard.check_share(size, "medium ram", machine)
    else:
        assert f"limit of this cgroup is {(limit or 0) >> 20} MiB" in refused(
            guard.check_share, size, "medium ram", machine
        )


@pytest.mark.parametrize(
    ("memory", "size", "left_out"),
    [
        (1200 * MIB, "25%", set()),
        (1199 * MIB, "25%", {"xfs"}),
        (400 * MIB, "25%", {"btrfs", "xfs"}),
        (1199 * MIB, 64 * MIB, set()),  # somebody's own number: mkfs says what is wrong with it
    ],
)
def test_what_does_not_fit_a_share_is_left_out(
    memory: int, size: int | str, left_out: set[str]
) -> None:
    confined = synthetic.confinement(memory_bytes=memory)
    machine = synthetic.machine(2).model_copy(update={"confinement": confined})
    names = ("tmpfs", "ext4", "xfs", "btrfs")
    filesystems = {name: catalogue.load_filesystem(name) for name in names}
    ram = catalogue.load_medium("ram").model_copy(update={"size": size})
    assert set(resources.too_small(machine, filesystems, {"ram": ram})) == left_out


def test_a_medium_is_no_larger_than_files_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (8 * MIB, 8 * MIB))
    guard.check_file_size(8 * MIB, "ram")
    limited = refused(guard.check_file_size, 9 * MIB, "ram")
    assert "ulimit -f" in limited
    assert "8 MiB" in limited
    monkeypatch.setattr(resource, "getrlimit", lambda which: (-1, -1))
    guard.check_file_size(9 * MIB, "ram")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_a_directory_that_the_user_of_a_load_cannot_enter_is_refused(tmp_path: Path) -> None:
    closed = tmp_path / "home"
    (closed / "scratch").mkdir(parents=True)
    for each in (tmp_path, *tmp_path.parents):
        if each.is_relative_to(tempfile.gettempdir()) and each != Path(tempfile.gettempdir()):
            each.chmod(0o755)
    guard.check_user(closed / "scratch", "nobody", "copy")
    closed.chmod(0o700)
    said = refused(guard.check_user, closed / "scratch", "nobody", "copy")
    assert f"copy runs as nobody, who cannot enter {closed};" in said
    guard.check_user(closed / "scratch", "root", "copy")
    assert "no such user" in refused(guard.check_user, closed, "no-such-user", "copy")
