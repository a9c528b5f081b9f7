# SPDX-License-Identifier: GPL-2.0-only
"""Reads and removes files that a guest may have written, without following links."""

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

    Its directory must be writable by the host only. FileNotFoundError if there is no such file;
    FscaleError if it is a link, a device, a directory or too large.
    """
    try:
        # O_NONBLOCK, so that a FIFO does not block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise FscaleError(f"the guest left {path}, which is not a regular file") from None
        raise
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FscaleError(f"the guest left {path}, which is not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(largest + 1)
    finally:
        os.close(descriptor)
    if len(content) > largest:
        raise FscaleError(f"the guest left {path}, which is larger than {largest} bytes")
    return content


def remove(path: Path) -> None:
    """Remove a file, a link itself, or a whole directory, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
