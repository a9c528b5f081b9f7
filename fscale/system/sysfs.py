# SPDX-License-Identifier: GPL-2.0-only
"""The one-line files below /proc and /sys."""

import contextlib
from pathlib import Path


def text(path: Path) -> str | None:
    """What is in the file, without blanks at its ends; None where it cannot be read."""
    with contextlib.suppress(OSError):
        return path.read_text().strip()
    return None
