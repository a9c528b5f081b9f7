# SPDX-License-Identifier: GPL-2.0-only
"""Tables of results for other programs: a row for each pair of calls, or for each object."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from fscale.analysis.tables.column import RUN_NAME, Column, Row, make_row
from fscale.commute.matrix import Matrix, PairCount, Spoiler


@dataclass(frozen=True)
class _OfMatrix:
    run: str
    matrix: Matrix


@dataclass(frozen=True)
class _Pair(_OfMatrix):
    count: PairCount


@dataclass(frozen=True)
class _Object(_OfMatrix):
    spoiler: Spoiler


@dataclass(frozen=True)
class ConflictTable:
    """A table: what a row is, its columns, and what its rows are made of."""

    row: str
    columns: tuple[Column[Any], ...]
    sources: Callable[[str, Matrix], Iterable[_OfMatrix]]


def _pairs(run: str, of: Matrix) -> Iterator[_Pair]:
    return (_Pair(run, of, count) for count in of.pairs)


def _objects(run: str, of: Matrix) -> Iterator[_Object]:
    return (_Object(run, of, spoiler) for spoiler in of.spoilers)


_GUEST: tuple[Column[_OfMatrix], ...] = (
    Column("run", "string", RUN_NAME, lambda o: o.run),
    Column("filesystem", "string", "file system under test", lambda o: o.matrix.filesystem),
    Column("kernel", "string", "`uname -r` of the guest", lambda o: o.matrix.kernel),
    Column(
        "boots",
        "integer",
        "boots of the guest; a conflict counts if each has it",
        lambda o: o.matrix.boots,
    ),
)

_PAIRS: tuple[Column[_Pair], ...] = (
    Column("a", "string", "call of process 0", lambda o: o.count.calls[0]),
    Column("b", "string", "the other call", lambda o: o.count.calls[1]),
    Column("tests", "integer", "tests of the pair that were executed", lambda o: o.count.tests),
    Column("free", "integer", "of these, without a conflict", lambda o: o.count.free),
    Column(
        "layout",
        "integer",
        "of these, with conflicts at merely different bytes of a line",
        lambda o: o.count.layout,
    ),
)

_OBJECTS: tuple[Column[_Object], ...] = (
    Column("object", "string", "what lies in the line", lambda o: o.spoiler.object),
    Column(
        "bytes",
        "string",
        "same, or different: the calls accessed different bytes of the line",
        lambda o: "different" if o.spoiler.layout else "same",
    ),
    Column(
        "pairs", "integer", "pairs of calls that conflict there", lambda o: len(o.spoiler.pairs)
    ),
    Column("tests", "integer", "tests that conflict there", lambda o: o.spoiler.tests),
    Column(
        "functions",
        "string",
        "kernel functions that access it in the first of these tests",
        lambda o: ", ".join(o.spoiler.functions),
    ),
)

TABLES: dict[str, ConflictTable] = {
    "pairs": ConflictTable(
        "a pair of calls of a file system and kernel in `fscale commute`",
        (*_GUEST, *_PAIRS),
        _pairs,
    ),
    "objects": ConflictTable(
        "an object at which calls conflict, of a file system and kernel in `fscale commute`",
        (*_GUEST, *_OBJECTS),
        _objects,
    ),
}


def rows(name: str, run: str, matrices: Iterable[Matrix]) -> list[Row]:
    """The rows of the table `name`; `run` names the result."""
    table = TABLES[name]
    sources = (source for of in matrices for source in table.sources(run, of))
    return [make_row(table.columns, source) for source in sources]
