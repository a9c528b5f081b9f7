# SPDX-License-Identifier: GPL-2.0-only
"""Finds and kills the processes of fscale; describes where unkillable ones hang."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from fscale.system.executor import TAG

PROC = Path("/proc")


def pids() -> Iterator[int]:
    """Yield the ids of all visible processes."""
    for entry in os.scandir(PROC):
        if entry.name.isdecimal():
            yield int(entry.name)


def tagged(tag: str) -> list[int]:
    """Return the processes with FSCALE_RUN=`tag` in their environment."""
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
    """Return the processes of a cgroup; none if the cgroup no longer exists."""
    with contextlib.suppress(OSError):
        return [int(pid) for pid in (cgroup / "cgroup.procs").read_text().split()]
    return []


def in_groups(groups: Collection[int]) -> list[int]:
    """Return the members of process groups, without zombies, which only wait for their parent."""
    found = []
    for pid in pids():
        with contextlib.suppress(OSError):  # the process ended meanwhile
            stat = (PROC / str(pid) / "stat").read_text(errors="replace")
            state, _, pgrp = stat.rpartition(")")[2].split()[:3]
            if int(pgrp) in groups and state not in "ZX":
                found.append(pid)
    return found


def kill(find: Callable[[], list[int]], timeout: float = 10) -> list[int]:
    """Send SIGKILL to the processes from `find` until there are none, for `timeout` seconds.

    Returns the processes that are left.
    """
    deadline = time.monotonic() + timeout
    while left := find():
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return left
        time.sleep(0.02)
    return []


def describe_stuck(pid: int) -> str:
    """Describe a process that does not die: its name, state, wait channel and kernel stack."""
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
