# SPDX-License-Identifier: GPL-2.0-only
"""The namespaces of this process, and whether its /proc shows every process of the machine."""

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
# Before 6.18 these are numbered as they come: they are initial where init's are the same.
_SINCE_6_18 = {"mnt": 0xEFFFFFF8, "net": 0xEFFFFFF9}


def initial(kind: str, proc: Path = Path("/proc")) -> bool | None:
    """Whether this process is in the initial namespace of a kind; None where nobody can say."""
    own = _number(proc / "self" / "ns" / kind)
    if own is None:
        return None
    if kind in _INITIAL:
        return own == _INITIAL[kind]
    if own == _SINCE_6_18[kind]:
        return True
    if initial("pid", proc) is not True:
        return None  # process 1 is that of a container
    init = _number(proc / "1" / "ns" / kind)
    return None if init is None else own == init


def read(proc: Path = Path("/proc")) -> dict[str, bool | None]:
    """Each kind of namespace -> whether this process is in the initial one."""
    return {kind: initial(kind, proc) for kind in sorted([*_INITIAL, *_SINCE_6_18])}


def all_processes_visible(proc: Path = Path("/proc")) -> bool:
    """Whether /proc has every process of the machine, with its times.

    It has not in a PID namespace, nor where it is mounted with hidepid for users like this one.
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
