# SPDX-License-Identifier: GPL-2.0-only
"""Alternatives in braces, as a shell has them: `ext4:mount=commit={1,5}` names two file systems."""

import re
from collections import Counter
from collections.abc import Iterable

_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


def expand(text: str) -> list[str]:
    """Return the texts that a text with alternatives stands for; without any, the text itself.

    Raises:
        ValueError: an alternative is given twice.
    """
    if not (braces := _BRACES.search(text)):
        return [text]
    values = braces[1].split(",")
    if twice := first_twice(values):
        raise ValueError(f"{text}: {twice} is given twice; give each alternative once")
    before, after = text[: braces.start()], text[braces.end() :]
    return [one for value in values for one in expand(f"{before}{value}{after}")]


def several(text: str) -> bool:
    """Return whether a text stands for several ones."""
    return _BRACES.search(text) is not None


def first_twice(values: Iterable[object]) -> str | None:
    """Return the first value that occurs more than once, as text; None if there is none."""
    counts = Counter(map(str, values))
    return next((value for value, count in counts.items() if count > 1), None)
