# SPDX-License-Identifier: GPL-2.0-only
"""The matrix of calls: which part of their tests has no conflict, and which objects spoil it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal, Self

from pydantic import Field, model_validator
from rich.console import Console

from fscale.commute.conflicts import Conflict
from fscale.commute.generate import PairTest
from fscale.commute.posix import CALLS
from fscale.model.bench import Strict
from fscale.model.tables import Column, Row, Table
from fscale.model.words import plural

Pair = tuple[str, str]
_MOST_SHOWN = 20
"""objects in a terminal"""


class Count(Strict):
    """Tests of a pair of calls, or of all."""

    tests: int = 0
    free: int = Field(default=0, description="without a conflict")
    layout: int = Field(
        default=0, description="in which all conflicts are of different bytes of a line"
    )

    def add(self, conflicts: Sequence[Conflict]) -> None:
        """Count a test with its conflicts."""
        self.tests += 1
        self.free += not conflicts
        self.layout += bool(conflicts) and all(one.layout for one in conflicts)


class PairCount(Count):
    """Tests of a pair of calls."""

    calls: Pair

    @property
    def percent(self) -> int:
        """The share of tests without a conflict, rounded down."""
        return 100 * self.free // self.tests


class Spoiler(Strict):
    """An object at which tests conflict."""

    object: str
    layout: bool = Field(description="whether the calls accessed different bytes of a line")
    pairs: list[Pair]
    tests: int
    functions: list[str] = Field(description="those of both calls in the first test")


class Matrix(Strict):
    """What was found for a file system with a kernel."""

    filesystem: str
    kernel: str
    boots: int = Field(ge=1)
    total: Count
    share: float = Field(
        description="estimated part of the model's tests without a conflict: each pair counts as "
        "often as it has tests"
    )
    pairs: list[PairCount] = Field(min_length=1)
    spoilers: list[Spoiler] = Field(description="those of the most pairs first")

    @model_validator(mode="after")
    def _possible(self) -> Self:
        for count in self.pairs:
            if not set(count.calls) <= CALLS.keys():
                raise ValueError(f"no such calls: {count.calls}")
            if not 0 <= count.free <= count.tests or not count.tests:
                raise ValueError(f"{count.free} of {count.tests} tests have no conflict")
        return self


class Matrices(Strict):
    """`matrix.json`: the pairs of calls that conflict."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    matrices: list[Matrix]

    def text(self) -> str:
        """The file."""
        return self.model_dump_json(by_alias=True, indent=1) + "\n"


def matrix(
    filesystem: str,
    kernel: str,
    boots: int,
    found: Mapping[PairTest, Sequence[Conflict]],
    sizes: Mapping[Pair, int],
) -> Matrix:
    """Count the conflicts that were found in every boot; `sizes`: how many tests a pair has."""
    total = Count()
    pairs: dict[Pair, PairCount] = {}
    spoiled: dict[tuple[str, bool], list[tuple[PairTest, Conflict]]] = defaultdict(list)
    for test, conflicts in found.items():
        total.add(conflicts)
        pairs.setdefault(test.pair, PairCount(calls=test.pair)).add(conflicts)
        for key, one in {(one.object, one.layout): one for one in conflicts}.items():
            spoiled[key].append((test, one))
    spoilers = [
        Spoiler(
            object=key[0],
            layout=key[1],
            pairs=list(dict.fromkeys(test.pair for test, _ in tests)),
            tests=len(tests),
            functions=list(dict.fromkeys([*tests[0][1].a, *tests[0][1].b])),
        )
        for key, tests in spoiled.items()
    ]
    spoilers.sort(key=lambda one: (-len(one.pairs), -one.tests, one.object))
    free = sum(sizes[pair] * count.free / count.tests for pair, count in pairs.items())
    share = free / sum(sizes[pair] for pair in pairs)
    return Matrix(
        filesystem=filesystem,
        kernel=kernel,
        boots=boots,
        total=total,
        share=share,
        pairs=list(pairs.values()),
        spoilers=spoilers,
    )


def sentence(found: Matrix) -> str:
    """The answer of a matrix."""
    total = found.total
    return (
        f"{found.filesystem} on {found.kernel}, {plural(found.boots, 'boot')}: {total.free} of "
        f"{plural(total.tests, 'test')} have no conflict, which makes {found.share:.0%} of all; in "
        f"{total.layout} merely different data of one line conflict."
    )


def lines(texts: Mapping[Pair, str]) -> list[str]:
    """A triangle, calls by calls, with a text for each pair; the names at the top stand upright."""
    names = [name for name in CALLS if any(name in pair for pair in texts)]
    width = 1 + max(map(len, texts.values()))
    longest = max(map(len, names))
    heads = [name.rjust(longest) for name in names]
    rows = ["".join(head[at].rjust(width) for head in heads) for at in range(longest)]
    lines = [" " * longest + row for row in rows]
    for name in names:
        cells = (texts[other, name].rjust(width) for other in names if (other, name) in texts)
        lines.append(name.ljust(longest) + "".join(cells))
    return lines


def spoilers_table(found: Matrix, most: int) -> Table:
    """The objects that spoil the most pairs."""
    columns = [
        *(Column("object"), Column("bytes"), Column("pairs", right=True)),
        *(Column("tests", right=True), Column("functions", 1)),
    ]
    rows = [
        Row(
            [
                *(one.object, "different" if one.layout else "same", str(len(one.pairs))),
                *(str(one.tests), ", ".join(one.functions[:4])),
            ]
        )
        for one in found.spoilers[:most]
    ]
    return Table(columns, rows)


def print_matrix(console: Console, found: Matrix) -> None:
    """Print a matrix, and the objects of most pairs."""
    console.print(f"\n{sentence(found)}\nTests without a conflict in percent:", soft_wrap=True)
    for line in lines({count.calls: str(count.percent) for count in found.pairs}):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print(spoilers_table(found, _MOST_SHOWN))
