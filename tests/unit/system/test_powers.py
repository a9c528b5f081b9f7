# SPDX-License-Identifier: GPL-2.0-only
"""Who may mount: root of the machine with its capabilities, where mount(2) is not denied."""

import ctypes
import errno
import os
from pathlib import Path

import pytest

from fscale.system import namespaces, powers

ALL = (1 << 41) - 1


@pytest.mark.parametrize(
    ("uid", "first", "capabilities", "says", "may"),
    [
        (0, True, ALL, errno.EINVAL, True),
        (0, None, ALL, errno.EINVAL, True),  # nobody can say which user namespace it is
        (1000, True, ALL, errno.EINVAL, False),
        (0, False, ALL, errno.EINVAL, False),
        (0, True, ALL & ~(1 << 21), errno.EINVAL, False),
        (0, True, ALL, errno.EPERM, False),  # seccomp
        (0, True, ALL, errno.EACCES, False),  # AppArmor
    ],
)
def test_who_may_mount(
    monkeypatch: pytest.MonkeyPatch,
    uid: int,
    first: bool | None,
    capabilities: int,
    says: int,
    may: bool,
) -> None:
    class Kernel:
        def mount(self, *arguments: object) -> int:
            assert arguments[2] is None  # without a type nothing is ever mounted
            ctypes.set_errno(says)
            return -1

    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setattr(namespaces, "initial", lambda kind: first)
    monkeypatch.setattr(powers, "_effective_capabilities", lambda: capabilities)
    monkeypatch.setattr(ctypes, "CDLL", lambda *a, **k: Kernel())
    assert (powers.no_mount() is None) is may


@pytest.mark.parametrize("writable", [True, False])
def test_caches_and_cpus_by_what_can_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, writable: bool
) -> None:
    (tmp_path / "cpu1").mkdir()
    (tmp_path / "cpu1" / "online").write_text("1")
    monkeypatch.setattr(powers, "CPUS", tmp_path)
    monkeypatch.setattr(os, "access", lambda path, how: writable)
    assert (powers.no_drop_caches() is None) is writable
    assert (powers.no_hotplug() is None) is writable
    monkeypatch.setattr(powers, "CPUS", tmp_path / "empty")
    assert "this kernel" in (powers.no_hotplug() or "")
