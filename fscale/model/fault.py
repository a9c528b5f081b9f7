# SPDX-License-Identifier: GPL-2.0-only
"""Whose fault it is that a cell has no figure. Every output takes its failures from here."""

import errno
import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:  # errors import this, and pydantic takes a tenth of a second
    from fscale.model.bench import BenchError

Fault = Literal["filesystem", "load", "machine", "user"]

FINDINGS: tuple[Fault, ...] = ("filesystem", "load")
"""the faults that count against the side that was measured"""
_RESOURCES = (errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EINTR)
_SPACE = (errno.ENOSPC, errno.EDQUOT)
# The kernel's killer of processes out of memory, service managers and administrators send these,
# and the last two come of `ulimit -f` and `ulimit -t`; a program that crashes gets others.
_FROM_OUTSIDE = (
    *(signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT),
    *(signal.SIGXFSZ, signal.SIGXCPU),
)


# Calls of the microbenchmark that concern no file, and places that are not under test.
_CALLS = re.compile(
    "fork|clone|waitpid|prctl|signalfd|ppoll|[gs]etrlimit|clock_gettime|sched_setaffinity|"
    "malloc|calloc|realloc|posix_memalign|unshare.*|setns"
)
_PLACES = ("/proc/", "/sys/", "/dev/", "--")
_KILLED = re.compile(r"was killed by signal (\d+)")


def of_errno(code: int | None, otherwise: Fault) -> Fault:
    """The fault behind an errno of an operation in the file system under test.

    A full medium is too small, which the user chose; a faster side fills it sooner.
    """
    if code in _SPACE:
        return "user"
    return "machine" if code in _RESOURCES else otherwise


def of_output(text: str, otherwise: Fault) -> Fault:
    """The fault behind the error messages of a program, which end with those of the C library."""
    for code in (*_SPACE, *_RESOURCES):
        if os.strerror(code) in text:
            return of_errno(code, otherwise)
    # fork and threads beyond pids.max or the limit of processes; files that block never return it
    return "machine" if os.strerror(errno.EAGAIN) in text else otherwise


def of_exit(returncode: int, otherwise: Fault) -> Fault:
    """The fault behind an exit code; -N, or 128 + N from a shell, stands for the signal N."""
    number = -returncode if returncode < 0 else returncode - 128
    return "machine" if number in _FROM_OUTSIDE else otherwise


def of_os_error(error: OSError, under_test: Sequence[Path]) -> Fault:
    """The fault behind an OSError; paths under test begin with one of `under_test`."""
    if str(error.filename).startswith(tuple(map(str, under_test))):
        return of_errno(error.errno, "filesystem")
    return "machine"


def of_bench(error: "BenchError", outside: Sequence[Path] = ()) -> Fault:
    """The fault behind an error of the microbenchmark; `outside` are directories not under test."""
    if killed := _KILLED.search(error.message):
        return of_exit(-int(killed[1]), "filesystem")
    elsewhere = (error.path or "").startswith((*_PLACES, *map(str, outside)))
    if elsewhere or (_CALLS.fullmatch(error.call) and error.errno):
        return "machine"
    return of_errno(error.errno, "filesystem")
