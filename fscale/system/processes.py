# SPDX-License-Identifier: GPL-2.0-only
"""Finds and ends processes of ours; says where those hang that cannot be ended."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from fscale.system.executor import TAG

PROC = Path("/proc")


def pids() -> Iterator[int]:
    """Every process there is."""
    for entry in os.scandir(PROC):
        if entry.name.isdigit():
            yield int(entry.name)


def tagged(tag: str) -> list[int]:
    """The processes that were started with FSCALE_RUN=`tag` in their environment."""
    wanted = f"{TAG}={tag}".encode()
    found = []
    for pid in pids():
        if pid == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if wanted in (PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                found.append(pid)
    return found


def in_cgroup(cgroup: Path) -> list[int]:
    """The processes of a cgroup; none when it is gone."""
    with contextlib.suppress(OSError):
        return [int(pid) for pid in (cgroup / "cgroup.procs").read_text().split()]
    return []


def in_groups(groups: Collection[int]) -> list[int]:
    """The members of process groups, without zombies: those wait for their parent only."""
    found = []
    for pid in pids():
        with contextlib.suppress(OSError):  # it ended while we looked
            stat = (PROC / str(pid) / "stat").read_text(errors="replace")
            state, _, pgrp = stat.rpartition(")")[2].split()[:3]
            if int(pgrp) in groups and state not in "ZX":
                found.append(pid)
    return found


def kill(find: Callable[[], list[int]], timeout: float = 10) -> list[int]:
    """SIGKILL what `find` finds until it finds nothing; returns those left after `timeout` s."""
    deadline = time.monotonic() + timeout
    while left := find():
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return left
        time.sleep(0.02)
    return []


def where(pid: int) -> str:
    """A process that does not die: its name, state, wait channel and kernel stack."""
    base = PROC / str(pid)
    parts = []
    for name, label in (("comm", "comm"), ("wchan", "waits in"), ("stack", "stack")):
        with contextlib.suppress(OSError):
            text = (base / name).read_text(errors="replace").strip()
            if text and text != "0":
                parts.append(f"{label} {text}" if label != "stack" else f"kernel stack:\n{text}")
    with contextlib.suppress(OSError, IndexError):
        state = (base / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        parts.insert(0, f"state {state}")
    return f"pid {pid}: " + ", ".join(parts)
