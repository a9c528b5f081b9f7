# SPDX-License-Identifier: GPL-2.0-only
"""What a profiler needs of a kernel is found whether or not tracefs is mounted."""

from pathlib import Path

import pytest

from fscale.runner.profilers import base
from fscale.system import powers

EVENT = "lock:contention_begin"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that may mount, has tracefs, has not mounted it, and has BTF of one event."""
    monkeypatch.setattr(powers, "no_admin", lambda: None)
    monkeypatch.setattr(powers, "no_mount", lambda: None)
    monkeypatch.setattr(base, "TRACEFS", tmp_path / "tracing")
    monkeypatch.setattr(base, "BTF", tmp_path / "vmlinux")
    monkeypatch.setattr(base, "FILESYSTEMS", tmp_path / "filesystems")
    (tmp_path / "vmlinux").write_bytes(b"\0btf_trace_contention_begin\0")
    (tmp_path / "filesystems").write_text("nodev\ttracefs\n\text4\n")
    return tmp_path


def test_what_a_run_can_mount_is_there() -> None:
    assert base.needs_tracefs() is None
    assert base.needs_event(EVENT) is None


def test_the_kernel_says_which_events_it_has_before_tracefs_is_mounted() -> None:
    assert "lock:contention_of_mars" in (base.needs_event("lock:contention_of_mars") or "")


def test_without_btf_an_event_may_be_there(place: Path) -> None:
    (place / "vmlinux").unlink()
    assert base.needs_event("lock:contention_of_mars") is None


def test_mounted_tracefs_decides(place: Path) -> None:
    (place / "tracing/events/lock").mkdir(parents=True)
    assert EVENT in (base.needs_event(EVENT) or "")
    (place / "tracing/events/lock/contention_begin").mkdir()
    assert base.needs_event(EVENT) is None


@pytest.mark.parametrize("lacks", ["kernel", "power"])
def test_what_nobody_can_mount_is_missing(
    place: Path, monkeypatch: pytest.MonkeyPatch, lacks: str
) -> None:
    if lacks == "kernel":
        (place / "filesystems").write_text("\text4\n")
    else:
        monkeypatch.setattr(powers, "no_mount", lambda: "not root")
    assert base.needs_tracefs()
    assert base.needs_event(EVENT) == base.needs_tracefs()
