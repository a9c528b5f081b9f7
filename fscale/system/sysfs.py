# SPDX-License-Identifier: GPL-2.0-only
"""Reads one-line files below /proc and /sys."""

import contextlib
from pathlib import Path


def text(path: Path) -> str | None:
    """Return the content of a file, stripped of white space; None if it cannot be read.

    Invalid UTF-8 is replaced: a process may have chosen such a name, or the kernel truncated it.
    """
    with contextlib.suppress(OSError):
        return path.read_text(errors="replace").strip()
    return None
