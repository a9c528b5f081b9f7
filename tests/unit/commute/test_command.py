# SPDX-License-Identifier: GPL-2.0-only
"""The command refuses what it cannot execute before it boots or writes anything."""

import json
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
from click.testing import Result
from typer.testing import CliRunner

from fscale.cli import app
from fscale.commands import commute, schema
from fscale.commute import boot, guest
from fscale.commute.conflicts import Conflict
from fscale.model.errors import FscaleError

RENAMES = ["--calls", "rename", "--each", "3"]


def command(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["commute", *map(str, words)])


@pytest.fixture
def stood_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare(name: str, kernel: str, _modules: Any, _steps: Any) -> Any:
        if kernel == "none":
            raise FscaleError("unknown kernel none")
        booted = SimpleNamespace(release=kernel)
        return SimpleNamespace(name=name, identity=f"{name}-{kernel}", kernel=booted)

    monkeypatch.setattr(guest, "prepare", prepare)

    def execute(_guest: Any, tests: Any, *_: Any) -> Generator[int, None, list[list[Conflict]]]:
        yield 0
        return [[] for _ in tests]

    monkeypatch.setattr(boot, "execute", execute)
    monkeypatch.setattr(boot, "POLL_SECONDS", 0)


def test_the_plan(tmp_path: Path) -> None:
    done = command("--dry-run", "--fs", "tmpfs,ext4", *RENAMES, "--output", tmp_path / "new")
    assert done.exit_code == 0
    assert "of which 3 are executed in each of 6 boots: about 1:06" in done.stdout
    done = command("--dry-run", "--fs", "tmpfs,ext4", "--jobs", "2", *RENAMES)
    assert "boots: about 0:33" in done.stdout
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--calls", "renam"], "no such call; did you mean rename"),
        (["--fs", "tmpfs,ext5"], "unknown file system ext5"),
        (["--fs", "tmpfs,ext4:4"], "does not support partitions"),
        (["--kernel", "6.12,none"], "unknown kernel none"),
    ],
)
def test_a_name_of_nothing_is_refused_before_a_boot(
    stood_in: None, words: list[str], reason: str, tmp_path: Path
) -> None:
    done = command(*RENAMES, *words, "--output", tmp_path / "new")
    assert isinstance(done.exception, FscaleError)
    assert reason in str(done.exception)
    assert done.exception.code == 2
    assert not (tmp_path / "new").exists()


def test_json_is_what_is_written_and_has_a_schema(stood_in: None, tmp_path: Path) -> None:
    done = command(*RENAMES, "--fs", "tmpfs,ext4", "--json", "--output", tmp_path / "new")
    assert done.stdout == (tmp_path / "new" / "matrix.json").read_text()
    document = json.loads(done.stdout)
    jsonschema.validate(document, json.loads(schema.text("commute")))
    assert [one["filesystem"] for one in document["matrices"]] == ["tmpfs", "ext4"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document | {"extra key": 1}, json.loads(schema.text("commute")))


def test_a_kernel_without_types_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = SimpleNamespace(release="6.12")
    monkeypatch.setattr(guest.qemu, "find", lambda _: None)
    monkeypatch.setattr(guest.emulator, "check_version", lambda _: None)
    monkeypatch.setattr(guest.kernels, "of_guest", lambda *_: kernel)
    parts = guest.module_build.Parts((), {})
    monkeypatch.setattr(guest.module_build, "build_parts", lambda *_: parts)
    monkeypatch.setattr(guest, "made", lambda path: path)
    monkeypatch.setattr(guest.image, "build", lambda *_: Path("initramfs"))
    monkeypatch.setattr(guest.kerneltypes, "load", lambda *_: {})
    with pytest.raises(FscaleError, match=r"6\.12 has no type information.*DEBUG_INFO_BTF=y"):
        guest.prepare("tmpfs", "6.12", [], commute.Steps(commute.terminal()))
