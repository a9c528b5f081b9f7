# SPDX-License-Identifier: GPL-2.0-only
"""Replaces a directory on the host that a guest may have written."""

import fcntl
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from fscale.vm import untrusted


def replace(directory: Path, files: Mapping[str, bytes]) -> None:
    """Create `directory` again, with these files.

    The guest may have left anything under its name; it is removed, and links are never followed.
    The guest must have ended.
    """
    parent = os.open(directory.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Two commands may end at the same time.
        fcntl.flock(parent, fcntl.LOCK_EX)
        fresh = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f".{directory.name}-"))
        fresh.chmod(0o755)
        for name, content in files.items():
            (fresh / name).write_bytes(content)
        untrusted.remove(directory)
        fresh.rename(directory)
    finally:
        os.close(parent)
