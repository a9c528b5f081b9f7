# SPDX-License-Identifier: GPL-2.0-only
"""What loads and tools get of the caller's environment, and what this process undoes of it."""

import os
import resource
import signal
import sys
from collections.abc import Iterable

from fscale.model.paths import TOOL_PATH

PLAIN_UMASK = 0o022
_KEPT = ("HOME", "USER", "LOGNAME", "TMPDIR", "PYTHONPATH")
_KEPT_PREFIXES = ("FSCALE_", "XDG_")
# Variables that change what a program executes, how it allocates, or which configuration it reads.
_INFLUENTIAL = (
    *("LD_", "GLIBC_TUNABLES", "GCONV_PATH", "LOCPATH", "MALLOC_", "TCMALLOC_", "JEMALLOC_"),
    *("OMP_", "GOMP_", "KMP_", "MKE2FS_", "LIBMOUNT_", "BLKID_", "PERF_", "BPFTRACE_"),
)
# Signals that a caller may ignore so that this process survives or ends with it.
_OF_CALLER = {
    *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM),
    *(signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU),
    *(signal.SIGPIPE, signal.SIGXFSZ),  # ignored by Python itself
}
_LIMITS = {
    "file size": resource.RLIMIT_FSIZE,
    "CPU time": resource.RLIMIT_CPU,
    "address space": resource.RLIMIT_AS,
    "data segment": resource.RLIMIT_DATA,
}
# Where they are too low a load fails; a few programs size what they use by them.
_SOFT_LIMITS = {
    "most open files": resource.RLIMIT_NOFILE,
    "most processes": resource.RLIMIT_NPROC,
    "most locked memory": resource.RLIMIT_MEMLOCK,
}

_PLAIN_STACK = 8 << 20
_MAX_COLUMNS = 1000


def of_children(**added: str) -> dict[str, str]:
    """Return the environment of a load or a tool: few variables of the caller, and `added`.

    A preloaded library, or another allocator, would change what is measured.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or name.startswith(_KEPT_PREFIXES)
    }
    return {**kept, "PATH": TOOL_PATH, "LC_ALL": "C", **added}


def interpreter() -> list[str]:
    """Return the command of this Python for a child with the environment `of_children`.

    Python of an environment module may find its own library only by LD_LIBRARY_PATH. The programs
    that such a child starts for a load do not get it.
    """
    libraries = os.environ.get("LD_LIBRARY_PATH")
    wanted = ["env", f"LD_LIBRARY_PATH={libraries}"] if libraries else []
    return [*wanted, sys.executable]


def influential(names: Iterable[str]) -> list[str]:
    """Return the variables that would have changed what is measured, had they reached it."""
    return sorted(name for name in names if name.startswith(_INFLUENTIAL))


def undo_inherited() -> None:
    """Undo what a caller can leave behind that makes this process or its children fail.

    An ignored SIGCHLD makes failed commands look successful, blocked signals end nothing, soft
    limits of resources end loads halfway, and in 0 columns no text is printed at all.
    """
    columns = os.environ.get("COLUMNS", "")
    if not (columns.isdecimal() and 0 < int(columns) <= _MAX_COLUMNS):
        os.environ.pop("COLUMNS", None)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals() - _OF_CALLER:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    for limit in _LIMITS.values():
        _, hard = resource.getrlimit(limit)
        resource.setrlimit(limit, (hard, hard))
    if sys.flags.ignore_environment:  # as fscale does, so do the interpreters that it starts
        for name in ("PYTHONPATH", "PYTHONHOME"):
            os.environ.pop(name, None)


def resource_limits() -> dict[str, int]:
    """Return the limits of resources that cannot be exceeded, by name."""
    found = {name: resource.getrlimit(limit)[0] for name, limit in _LIMITS.items()}
    return {name: most for name, most in found.items() if most != resource.RLIM_INFINITY}


def soft_limits() -> dict[str, int]:
    """Return the limits that differ between shells, containers and services; -1 for none."""
    return {name: resource.getrlimit(limit)[0] for name, limit in _SOFT_LIMITS.items()}


def odd_stack() -> str | None:
    """Return the soft limit of the stack, which moves what programs map; None if it is plain."""
    soft, _ = resource.getrlimit(resource.RLIMIT_STACK)
    if soft == resource.RLIM_INFINITY:
        return "unlimited"
    return None if soft == _PLAIN_STACK else str(soft)
