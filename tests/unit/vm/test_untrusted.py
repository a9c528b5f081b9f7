# SPDX-License-Identifier: GPL-2.0-only
"""What a guest leaves in a directory that it shares with the host is never followed."""

import errno
import json
import os
from pathlib import Path

import pytest

from fscale.ab import guests as ab
from fscale.model.errors import FscaleError
from fscale.vm import crash, guest, replace_dir, untrusted
from fscale.vm.place import Job, JobFiles, mapping
from tests.unit.ab.test_guest_boots import boot, measured


def leave(kind: str, path: Path, target: Path) -> None:
    match kind:
        case "link":
            path.symlink_to(target)
        case "directory":
            path.mkdir()
            (path / "link").symlink_to(target)
        case "fifo":
            os.mkfifo(path)
        case "large":
            path.write_bytes(bytes(64))


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret"
    path.write_text("0")
    return path


@pytest.mark.parametrize("kind", ["link", "directory", "fifo", "large"])
def test_only_a_small_regular_file_is_read(tmp_path, secret, kind):
    leave(kind, tmp_path / "left", secret)
    with pytest.raises(FscaleError, match="left"):
        untrusted.read(tmp_path / "left", 32)


def test_a_regular_file_is_read(secret):
    assert untrusted.read(secret) == b"0"


@pytest.mark.parametrize("kind", ["link", "directory", "fifo", "large"])
def test_a_status_that_is_no_file_is_none(tmp_path, secret, kind):
    where = JobFiles(tmp_path)
    where.state.mkdir()
    leave(kind, where.state / "status", secret)
    assert guest._judge(where, "finished", 1.0, 2.0, None).returncode is None


@pytest.mark.parametrize("kind", ["link", "directory", "fifo", "large", "linked directory"])
def test_the_record_replaces_what_the_guest_left_in_its_place(tmp_path, secret, kind):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "console.log").write_text("the host's")
    results = tmp_path / "results"
    results.mkdir()
    if kind == "linked directory":
        (results / "guest").symlink_to(outside)
    else:
        leave(kind, results / "guest", secret)
    replace_dir.replace(results / "guest", {"console.log": b"said"})
    assert (results / "guest").is_dir() and not (results / "guest").is_symlink()
    assert [path.name for path in results.iterdir()] == ["guest"]
    assert [path.name for path in (results / "guest").iterdir()] == ["console.log"]
    assert (results / "guest" / "console.log").read_text() == "said"
    assert (outside / "console.log").read_text() == "the host's"
    assert secret.read_text() == "0"


def test_nothing_that_only_the_host_writes_lies_in_a_share(tmp_path):
    where = JobFiles(tmp_path)
    shares = where.shares(Job(["true"]))
    for path in (where.console, where.errors, where.monitor):
        assert not any(path.is_relative_to(share.path) for share in shares)
    assert [share.tag for share in shares if not share.writable] == ["control"]


def test_a_file_system_without_attributes_for_users_has_them_in_files(tmp_path, monkeypatch):
    def none(*_: object) -> bytes:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(os, "getxattr", none)
    assert mapping(tmp_path) == "mapped-file"


def test_the_result_of_a_crash_test_is_no_link(tmp_path):
    (tmp_path / "host.json").write_text('{"tested": 5}')
    (tmp_path / "crash.json").symlink_to(tmp_path / "host.json")
    with pytest.raises(FscaleError, match="not a regular file"):
        crash.load(tmp_path, "")


def test_a_cell_whose_name_is_a_path_is_refused(tmp_path):
    output = tmp_path / "deep" / "output"
    for side, repetition in (("A", 1), ("B", 1), ("A", 2), ("B", 2)):
        boot(output, side, repetition, 1.0)
        (path,) = (ab.boot_directory(output, side, repetition) / "cells").iterdir()
        cell = json.loads(path.read_text())
        cell["key"]["workload"] = "../../../x"
        path.write_text(json.dumps(cell))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(FscaleError, match="a path"):
        measured(output, 2)
    assert [p for p in sorted(tmp_path.rglob("*")) if p not in before] == []


@pytest.mark.parametrize("kind", ["link", "directory", "fifo", "large", "nothing"])
def test_whatever_a_guest_left_is_removed_and_not_followed(tmp_path, secret, kind):
    leave(kind, tmp_path / "left", secret)
    untrusted.remove(tmp_path / "left")
    assert list(tmp_path.iterdir()) == [secret]
