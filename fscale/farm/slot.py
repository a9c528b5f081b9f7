# SPDX-License-Identifier: GPL-2.0-only
"""A CPU for each task of a machine, so that two guests do not share one while another idles."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from typing import IO

from fscale.model import paths


@contextlib.contextmanager
def own_cpu() -> Iterator[int]:
    """Hold a CPU that no other task of this user holds; if all are held, share the first one."""
    directory = paths.cache_dir("cpus")
    directory.mkdir(parents=True, exist_ok=True)
    cpus = sorted(os.sched_getaffinity(0))
    for cpu in cpus:
        # The cache may be on a file system that machines share.
        with (directory / f"{os.uname().nodename}-{cpu}").open("w") as lock:
            if _taken(lock):
                yield cpu
                return
    yield cpus[0]


def _taken(lock: IO[str]) -> bool:
    """Whether this process has got the lock, which lasts until the file is closed."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
