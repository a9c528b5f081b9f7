# SPDX-License-Identifier: GPL-2.0-only
"""Numbers in sentences and names."""

import re

LONGEST = 18  # digits of a number in a name


def plural(count: int, noun: str) -> str:
    """ "1 cell", "2 cells"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def ranges(numbers: list[int]) -> str:
    """Format rising numbers as the kernel formats lists of CPUs and nodes: `0-3,8`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{r[0]}-{r[-1]}" if len(r) > 1 else str(r[0]) for r in runs)


def natural(text: str) -> str:
    """Sort key by which numbers in texts ascend: `block=4096` is before `block=16384`."""
    return re.sub("[0-9]+", lambda number: number[0].zfill(LONGEST), text)
