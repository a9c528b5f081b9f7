# SPDX-License-Identifier: GPL-2.0-only
"""The version of a mkfs is what the program prints about it, and no complaint of its."""

from pathlib import Path

import pytest

from fscale.model import catalogue, paths
from fscale.runner.storage import filesystem
from tests.support.files import write_program


@pytest.mark.parametrize("name", catalogue.names(paths.FILESYSTEMS))
def test_each_mkfs_tells_its_version(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fs = catalogue.load_filesystem(name)
    if not fs.version:
        pytest.skip("it has no mkfs")
    if fs.source:
        built = str(paths.ROOT / "build" / "lanefs" / fs.version[0])
        monkeypatch.setattr(filesystem, "which", lambda _: built)
    elif filesystem.which(fs.version[0]) is None:
        pytest.skip(f"{fs.version[0]} is not installed")
    said = filesystem.version(fs)
    assert said is not None
    assert any(character.isdigit() for character in said)


@pytest.mark.parametrize("script", ["echo no such option >&2; exit 1", "exit 0"])
def test_a_program_that_tells_none_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    program = tmp_path / "mkfs"
    write_program(program, f"#!/bin/sh\n{script}\n")
    monkeypatch.setattr(filesystem, "which", lambda _: str(program))
    assert filesystem.version(catalogue.load_filesystem("ext4")) is None
