# SPDX-License-Identifier: GPL-2.0-only
"""Reading and removing what a guest can have made: never through a link, never unbounded."""

import errno
import os
import shutil
import stat
from pathlib import Path

from fscale.model.errors import FscaleError

# A crash test's result is a few kilobytes.
LARGEST = 16 << 20


def read(path: Path, largest: int = LARGEST) -> bytes:
    """The content of a regular file of at most `largest` bytes.

    The directory that holds it must be the host's own. FileNotFoundError when there is no such
    file; FscaleError when it is a link, a device, a directory or too large.
    """
    try:
        # Not blocked by a FIFO either.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise FscaleError(f"{path} is no regular file; the guest left it so") from None
        raise
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FscaleError(f"{path} is no regular file; the guest left it so")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(largest + 1)
    finally:
        os.close(descriptor)
    if len(content) > largest:
        raise FscaleError(f"{path}, which the guest left, is larger than {largest} bytes")
    return content


def remove(path: Path) -> None:
    """Remove whatever is there, if anything: a file, a link itself, a whole directory."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
