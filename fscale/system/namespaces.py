# SPDX-License-Identifier: GPL-2.0-only
"""Tells whether this process is in the initial namespaces and sees every process."""

import contextlib
from pathlib import Path

# include/linux/proc_ns.h (uapi/linux/nsfs.h since 6.18): the initial namespaces have fixed numbers.
_INITIAL = {
    "cgroup": 0xEFFFFFFB,
    "ipc": 0xEFFFFFFF,
    "pid": 0xEFFFFFFC,
    "user": 0xEFFFFFFD,
    "uts": 0xEFFFFFFE,
}
# Before 6.18 these have no fixed numbers; they are initial if process 1 is in the same ones.
_SINCE_6_18 = {"mnt": 0xEFFFFFF8, "net": 0xEFFFFFF9}


def initial(kind: str, proc: Path = Path("/proc")) -> bool | None:
    """Return whether this process is in the initial namespace of a kind; None if unknown."""
    inode = _number(proc / "self" / "ns" / kind)
    if inode is None:
        return None
    if kind in _INITIAL:
        return inode == _INITIAL[kind]
    if inode == _SINCE_6_18[kind]:
        return True
    if initial("pid", proc) is not True:
        return None  # process 1 belongs to a container
    init = _number(proc / "1" / "ns" / kind)
    return None if init is None else inode == init


def read(proc: Path = Path("/proc")) -> dict[str, bool | None]:
    """Return kind of namespace -> whether this process is in the initial one; None if unknown."""
    return {kind: initial(kind, proc) for kind in sorted([*_INITIAL, *_SINCE_6_18])}


def all_processes_visible(proc: Path = Path("/proc")) -> bool:
    """Return whether /proc shows every process of the machine, with its CPU times.

    It does not in a PID namespace, nor if it is mounted with hidepid and that affects this user.
    """
    if initial("pid", proc) is not True:
        return False
    try:
        (proc / "1" / "stat").read_bytes()
    except OSError:
        return False
    return True


def _number(link: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        return int(str(link.readlink()).partition("[")[2].rstrip("]"))
    return None
