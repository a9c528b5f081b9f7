# SPDX-License-Identifier: GPL-2.0-only
"""The one-line files below /proc and /sys."""

import contextlib
from pathlib import Path


def text(path: Path) -> str | None:
    """What is in the file, without blanks at its ends; None where it cannot be read.

    A name that a process gave itself, or that the kernel cut off, need not be UTF-8.
    """
    with contextlib.suppress(OSError):
        return path.read_text(errors="replace").strip()
    return None


def ranges(numbers: list[int]) -> str:
    """`0-3,8` from rising numbers, as the kernel writes lists of CPUs and nodes."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{r[0]}-{r[-1]}" if len(r) > 1 else str(r[0]) for r in runs)
