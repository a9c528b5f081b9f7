# SPDX-License-Identifier: GPL-2.0-only
"""Exhaustive choice: a function runs once for each sequence of choices that it can make."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


class OutsideModel(Exception):  # noqa: N818 - not an error: the execution ends without a result
    """An execution left the bounds of the model."""


class Choices:
    """The choices of one execution: a prefix is given, each later one is the first option."""

    def __init__(self, given: Sequence[int] = ()) -> None:
        self._given = given
        self._symbols: Counter[str] = Counter()
        self.made: list[tuple[int, int]] = []
        """each choice, with the number of its options"""

    def pick(self, options: int) -> int:
        """One of so many options, by number."""
        at = len(self.made)
        self.made.append((self._given[at] if at < len(self._given) else 0, options))
        return self.made[-1][0]

    def symbol(self, kind: str, most: int) -> int:
        """One of `most` interchangeable symbols, from 0: one that was picked before, or the next.

        So two executions never differ in the names of their symbols alone.
        """
        chosen = self.pick(min(self._symbols[kind] + 1, most))
        self._symbols[kind] = max(self._symbols[kind], chosen + 1)
        return chosen


def explore(run: Callable[[Choices], T]) -> Iterator[T]:
    """The result of each execution that stays inside the model, depth first."""
    given: list[int] = []
    while True:
        choices = Choices(given)
        with contextlib.suppress(OutsideModel):
            yield run(choices)
        made = choices.made
        while made and made[-1][0] + 1 == made[-1][1]:
            made.pop()
        if not made:
            return
        given = [choice for choice, _ in made]
        given[-1] += 1
