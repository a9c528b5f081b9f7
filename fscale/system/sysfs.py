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


def ranges(numbers: list[int]) -> str:
    """Format rising numbers as the kernel formats lists of CPUs and nodes: `0-3,8`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{r[0]}-{r[-1]}" if len(r) > 1 else str(r[0]) for r in runs)
