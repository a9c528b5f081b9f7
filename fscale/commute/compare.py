# SPDX-License-Identifier: GPL-2.0-only
"""Which pairs of calls conflict in one result and not in another."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from fscale.commute.conflicts import Conflict, lasting
from fscale.commute.matrix import Matrix, Pair
from fscale.commute.store import Store, boot_name
from fscale.model.bench import Strict
from fscale.model.errors import FscaleError
from fscale.model.tables import Column, Row, Table
from fscale.model.words import plural

_OBJECTS = 4
LAYOUT_BOOTS = 6
"""Boots of each side from which on conflicts of different bytes count: where the objects of a slab
lie in lines differs between boots."""


class Side(Strict):
    """A file system with a kernel."""

    filesystem: str
    kernel: str
    boots: int


class Change(Strict):
    """A pair of calls of which some tests conflict on one side only."""

    calls: Pair
    tests: list[str] = Field(
        description="ids of those that conflict in every boot of one side and in none of the other"
    )
    objects: list[str] = Field(description="where they conflict, those of the most tests first")


class Compared(Strict):
    """Two sides, judged by the tests that both executed."""

    base: Side
    new: Side
    tests: int
    conflicting: list[Change] = Field(description="pairs that conflict in new only")
    free: list[Change] = Field(description="pairs that conflict in base only")
    unjudged: int = Field(
        description="tests that conflict on one side only, and merely at different bytes of a "
        f"line, which counts with {LAYOUT_BOOTS} boots of each side"
    )


class ConflictComparison(Strict):
    """`compare --json` of two results of `fscale commute`."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    compared: list[Compared]

    def text(self) -> str:
        """The file."""
        return self.model_dump_json(by_alias=True, indent=1) + "\n"

    @property
    def worse(self) -> bool:
        """Whether a pair newly conflicts."""
        return any(one.conflicting for one in self.compared)


FoundByBoots = Mapping[str, Sequence[Sequence[Conflict]]]
"""the conflicts that each boot found, by the id of the test"""


def compare(base: Store, new: Store) -> ConflictComparison:
    """Compare two results.

    Raises:
        FscaleError: one of them cannot be read, or they have no file system or test in common.
    """
    old_tests, new_tests = base.load_tests(), new.load_tests()
    both = [test for test, lines in old_tests.items() if new_tests.get(test) == lines]
    if not both:
        raise FscaleError(
            f"{base.directory} and {new.directory} have no test in common; execute both with the "
            "same --calls, --each and --seed"
        )
    return ConflictComparison(
        compared=[
            _compared(one, boots_of(base, one, both), other, boots_of(new, other, both), both)
            for one, other in _matched(base, new)
        ]
    )


def _matched(base: Store, new: Store) -> list[tuple[Matrix, Matrix]]:
    """The matrices to compare: of each if there is one, or else those of the same file system."""
    old, later = base.load_matrices(), new.load_matrices()
    if len(old) == len(later) == 1:
        return [(old[0], later[0])]
    for store, found in ((base, old), (new, later)):
        if len({one.kernel for one in found}) > 1:
            raise FscaleError(
                f"{store.directory} has several kernels; give each another --output, and compare "
                "these"
            )
    named = {one.filesystem: one for one in later}
    both = [(one, named[one.filesystem]) for one in old if one.filesystem in named]
    if not both:
        raise FscaleError(f"{base.directory} and {new.directory} have no file system in common")
    return both


def boots_of(store: Store, of: Matrix, tests: Iterable[str]) -> FoundByBoots:
    """The conflicts of these tests in each boot of a matrix.

    Raises:
        FscaleError: a boot is missing, damaged, or lacks a test.
    """
    boots = []
    for number in range(1, of.boots + 1):
        name = boot_name(of.filesystem, of.kernel, number)
        if (stored := store.load_boot(name)) is None:
            raise FscaleError(
                f"{store.directory / name} is missing; the command that made it resumes"
            )
        boots.append(stored[1])
    try:
        return {test: [boot[test] for boot in boots] for test in tests}
    except KeyError as error:
        raise FscaleError(f"a boot in {store.directory} lacks the test {error}") from None


def _compared(
    base: Matrix, before: FoundByBoots, new: Matrix, after: FoundByBoots, tests: Sequence[str]
) -> Compared:
    layout = min(base.boots, new.boots) >= LAYOUT_BOOTS
    worse, better = appearing(before, after), appearing(after, before)
    return Compared(
        base=_side(base),
        new=_side(new),
        tests=len(tests),
        conflicting=_changes(worse, layout=layout),
        free=_changes(better, layout=layout),
        unjudged=0
        if layout
        else sum(one.layout for found in (worse, better) for one in found.values()),
    )


def _side(of: Matrix) -> Side:
    return Side(filesystem=of.filesystem, kernel=of.kernel, boots=of.boots)


@dataclass(frozen=True)
class Appearing:
    """Where a test conflicts in every boot of one side, and not in any of the other."""

    objects: set[str]
    layout: bool
    """merely at different bytes of a line"""


def appearing(before: FoundByBoots, after: FoundByBoots) -> dict[str, Appearing]:
    """The tests that conflict in every boot `after`, and in none `before`."""
    found = {}
    for test, boots in after.items():
        kept, was = lasting(boots), [one for boot in before[test] for one in boot]
        same = {one.object for one in kept if not one.layout}
        if same and all(one.layout for one in was):
            found[test] = Appearing(same, layout=False)
        elif kept and not was:
            found[test] = Appearing({one.object for one in kept}, layout=True)
    return found


def _changes(found: Mapping[str, Appearing], *, layout: bool) -> list[Change]:
    """The pairs of these tests; with those of different bytes if `layout`."""
    tests: dict[Pair, list[str]] = defaultdict(list)
    objects: dict[Pair, Counter[str]] = defaultdict(Counter)
    for test, one in found.items():
        if layout or not one.layout:
            a, b, _ = test.split("-")
            tests[a, b].append(test)
            objects[a, b].update(one.objects)
    return [
        Change(calls=pair, tests=ids, objects=[name for name, _ in objects[pair].most_common()])
        for pair, ids in tests.items()
    ]


def summary(one: Compared) -> str:
    """The answer in a line."""
    sides = " and ".join(f"{side.filesystem} on {side.kernel}" for side in (one.base, one.new))
    said = (
        f"{sides} executed {plural(one.tests, 'test')}: {plural(len(one.conflicting), 'pair')} of "
        f"calls newly conflict, {len(one.free)} no longer do"
    )
    if one.unjudged:
        said += (
            f"; in {plural(one.unjudged, 'test')} merely different bytes of a line do, which count "
            f"with --boots {LAYOUT_BOOTS} on both sides"
        )
    return said


def table(one: Compared) -> Table:
    """The pairs of calls that changed."""
    columns = [
        *(Column("calls"), Column("conflict"), Column("tests", right=True)),
        *(Column("first test", 1), Column("objects", 2)),
    ]
    changes = [
        *(("new only", change) for change in one.conflicting),
        *(("base only", change) for change in one.free),
    ]
    rows = [
        Row(
            [
                *(", ".join(change.calls), where, str(len(change.tests))),
                *(change.tests[0], ", ".join(change.objects[:_OBJECTS])),
            ]
        )
        for where, change in changes
    ]
    return Table(columns, rows)
