# SPDX-License-Identifier: GPL-2.0-only
"""What is refused before anything is changed, each at its bound."""

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from fscale.model.errors import FscaleError
from fscale.runner import guard

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


def test_the_nearest_directory_that_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert guard.existing(tmp_path) == tmp_path
    assert guard.existing(tmp_path / "a" / "b") == tmp_path
    monkeypatch.chdir(tmp_path)
    assert guard.existing(Path("a/b")) == tmp_path


def test_results_go_where_there_is_nothing_or_a_run(tmp_path: Path, free: dict[str, int]) -> None:
    guard.check_output(tmp_path / "new" / "run")
    guard.check_output(tmp_path)
    (tmp_path / "something").touch()
    assert refused(guard.check_output, tmp_path) == (
        f"{tmp_path} is not empty and holds no fscale run; give an empty or new directory"
    )
    (tmp_path / "run.json").touch()
    guard.check_output(tmp_path)
    file = tmp_path / "something"
    assert refused(guard.check_output, file) == f"{file} is not a directory; give another --output"


def test_results_take_sixteen_mebibytes(tmp_path: Path, free: dict[str, int]) -> None:
    free["bytes"] = 16 * MIB
    guard.check_output(tmp_path)
    free["bytes"] -= 1
    assert refused(guard.check_output, tmp_path / "new") == (
        f"no space left in {tmp_path} for results; free some or give another"
    )


def test_a_directory_of_files_takes_a_quarter_of_a_gibibyte(
    tmp_path: Path, free: dict[str, int]
) -> None:
    free["bytes"] = 256 * MIB
    guard.check_directory(tmp_path)
    free["bytes"] -= 1
    assert refused(guard.check_directory, tmp_path) == (
        f"no space: {tmp_path} has 255 MiB free, and at least 256 MiB are needed"
    )
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
    guard.check_memory(3 * MIB, "ram")
    assert refused(guard.check_memory, 3 * MIB + 1, "ram") == (
        "no space: ram wants 3 MiB of memory and 4 MiB are available; lower its size in configs/ "
        "or free memory"
    )
