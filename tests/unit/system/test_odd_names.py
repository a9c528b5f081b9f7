# SPDX-License-Identifier: GPL-2.0-only
"""Names of processes and mounts that are no UTF-8, or hold what splits lines elsewhere."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fscale.runner.cell import accounting
from fscale.runner.machine import tuning
from fscale.runner.machine.changes import mountpoints
from fscale.runner.storage import disk, mounted
from fscale.system import cgroups, mountinfo, processes

_NAMED = "import ctypes, time; ctypes.CDLL(None).prctl(15, b'caf\\xc3', 0, 0, 0); time.sleep(60)"
_V2 = b"24 1 0:21 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"


@contextlib.contextmanager
def process_with_cut_name() -> Iterator[int]:
    """The kernel cuts a name after 15 bytes, also in the midst of a letter."""
    with subprocess.Popen([sys.executable, "-c", _NAMED]) as child:
        try:
            deadline = time.monotonic() + 20
            comm = Path(f"/proc/{child.pid}/comm")
            while comm.read_bytes() != b"caf\xc3\n" and time.monotonic() < deadline:
                time.sleep(0.01)
            assert comm.read_bytes() == b"caf\xc3\n"
            yield child.pid
        finally:
            child.kill()


def test_a_process_whose_name_is_cut_within_a_letter() -> None:
    with process_with_cut_name() as pid:
        assert tuning.read().irqbalance is not None
        assert accounting.snapshot(None).other_processes >= 0
        assert pid in processes.in_groups([os.getpgrp()])
        assert "comm caf" in processes.describe_stuck(pid)


@pytest.mark.parametrize(
    "name", [b"\xff", b"\x0b", b"\x0c", b"\xc2\x85", b"\xe2\x80\xa8", b"\xc2\xa0"]
)
def test_a_mount_point_of_any_bytes(
    name: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "proc" / "self"
    own.mkdir(parents=True)
    (own / "cgroup").write_text("0::/\n")
    target = b"/mnt/a" + name + b"b"
    line = b"30 1 7:0 / " + target + b" rw,noatime shared:1 - ext4 /dev/loop0 rw,data=ordered\n"
    (own / "mountinfo").write_bytes(line + _V2)
    assert cgroups.versions(tmp_path) == "v2"
    entry = mounted.entries(tmp_path / "proc")[30]
    assert entry.options == ["rw", "noatime", "rw", "data=ordered"]
    everything = mountinfo.read(tmp_path / "proc")
    assert os.fsencode(everything[0].target) == target
    monkeypatch.setattr(mountinfo, "read", lambda: everything)
    assert mountpoints(Path("/mnt")) == [Path(os.fsdecode(target))]
    monkeypatch.setattr(disk, "_directory", lambda number: tmp_path / "loop0")
    (tmp_path / "loop0").mkdir()
    (tmp_path / "loop0" / "dev").write_text("7:0\n")
    said = disk.describe_users("7:0")
    assert said
    assert said.startswith("/dev/loop0 is mounted at /mnt/a")
    said.encode()


def test_a_comma_in_the_value_of_an_option_does_not_part_it(tmp_path: Path) -> None:
    own = tmp_path / "self"
    own.mkdir()
    (own / "mountinfo").write_text(
        "9 1 0:5 / /m rw - overlay overlay rw,upperdir=/a\\054b\\040c,workdir=/w\n"
    )
    assert mounted.entries(tmp_path)[9].value("upperdir") == "/a,b c"
