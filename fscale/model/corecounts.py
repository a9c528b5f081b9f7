# SPDX-License-Identifier: GPL-2.0-only
"""Core counts as users write them: numbers, ranges and shares of the machine.

A range with a stride is written as taskset and Slurm write it: `1-16:4` is 1, 5, 9 and 13.
"""

import re
from collections.abc import Iterable, Sequence

from fscale.model.limits import MOST_CORES

CoreCount = int | str
"""a number, a range such as "1-8" or "2-16:2", or a share such as "50%\""""

_RANGE = re.compile(r"(\d+)-(\d+)(?::(\d+))?")
_SHARE = re.compile(r"(\d+)%")
_ALL = 100  # per cent
_KINDS = (
    "give a number such as 4, a range such as 1-8 or 2-16:2 (every second), or a share of the "
    "machine such as 50%"
)


def parse(value: object) -> list[CoreCount]:
    """Parse one or more core counts: a number, or text with commas such as "1,4-16:4,100%".

    Raises:
        ValueError: a part is not a core count; the text names it.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return [_checked(value, str(value))]
    if not isinstance(value, str):
        raise ValueError(f"{str(value)[:60]!r} is not a core count; {_KINDS}")
    return [_one(part.strip()) for part in value.split(",")]


def _one(text: str) -> CoreCount:
    if text.removeprefix("-").isdecimal():
        return _checked(int(text), text)
    if ends := _range(text):
        first, last, stride = ends
        _checked(first, text)
        if last < first or stride < 1:
            raise ValueError(
                f"{text!r} is not a range; give the smaller number first, and a stride of 1 or more"
            )
        if last > MOST_CORES:
            raise ValueError(f"{text!r} ends beyond {MOST_CORES} cores; give a smaller range")
        return text
    if match := _SHARE.fullmatch(text):
        if not 1 <= int(match[1]) <= _ALL:
            raise ValueError(f"{text!r} is not a share of the machine; give 1% to 100%")
        return text
    raise ValueError(f"{text[:60]!r} is not a core count; {_KINDS}")


def _range(text: str) -> tuple[int, int, int] | None:
    """First, last and stride of a range; None if the text is something else."""
    match = _RANGE.fullmatch(text)
    return (int(match[1]), int(match[2]), int(match[3] or 1)) if match else None


def _checked(count: int, text: str) -> int:
    if count < 1:
        raise ValueError(f"{text}: a measurement needs at least 1 core; give 1 or more")
    return count


def expand(asked: Iterable[CoreCount], cpus: int) -> list[int]:
    """Return the core counts on a machine with `cpus` usable CPUs, rising, each once.

    Counts beyond `cpus` are among them.
    """
    expanded: set[int] = set()
    for one in asked:
        if isinstance(one, int):
            expanded.add(one)
        elif match := _SHARE.fullmatch(one):
            expanded.add(share(int(match[1]), cpus))
        elif ends := _range(one):
            first, last, stride = ends
            expanded |= set(range(first, last + 1, stride))
    return sorted(expanded)


def share(percent: int, cpus: int) -> int:
    """Return a share of `cpus` in whole CPUs, rounded to the nearest, at least 1."""
    return max(1, (cpus * percent + _ALL // 2) // _ALL)


def largest(asked: Iterable[CoreCount]) -> int:
    """Return the largest of the core counts that are not shares; 0 if all are."""
    return max(expand((one for one in asked if not _is_share(one)), 0), default=0)


def _is_share(one: CoreCount) -> bool:
    return isinstance(one, str) and one.endswith("%")


def numbers(asked: Sequence[CoreCount]) -> list[int] | None:
    """Return the core counts, rising, each once; None if a share makes them depend on a machine."""
    return None if any(map(_is_share, asked)) else expand(asked, 0)
