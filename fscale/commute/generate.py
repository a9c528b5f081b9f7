# SPDX-License-Identifier: GPL-2.0-only
"""Finds the states and arguments in which two calls commute.

Two calls commute in a state if both orders give the same results and the same state. The rule's
SIM-commutativity wants this of every prefix as well; the prefixes of two calls have one call.
"""

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fscale.commute.calls import Call, choose
from fscale.commute.choices import Choices, explore
from fscale.commute.posix import CALLS, Result
from fscale.commute.states import Key, Value, World, lazily, same
from fscale.model.bench import Strict

ORDERS = ("ab", "ba")


@dataclass(frozen=True, eq=False)
class PairTest:
    """Two calls, `a` of process 0, and the parts of an initial state in which they commute."""

    id: str
    a: Call
    b: Call
    known: dict[Key, Value]

    @property
    def pair(self) -> tuple[str, str]:
        """The names of both calls."""
        return self.a.name, self.b.name


def pairs(calls: Sequence[str]) -> list[tuple[str, str]]:
    """All pairs of some calls, each call with itself too, in the order of the model."""
    ordered = [name for name in CALLS if name in calls]
    return list(itertools.combinations_with_replacement(ordered, 2))


def generate(first: str, second: str) -> Iterator[PairTest]:
    """The tests of a pair: one of all that take the same path through the model."""
    seen: set[Shape] = set()
    for found in explore(lambda choices: _commuting(choices, first, second)):
        if found is None or not seen.isdisjoint(found.shapes):
            continue
        seen.add(found.shapes[0])
        yield PairTest(f"{first}-{second}-{len(seen)}", found.a, found.b, found.known)


class Selection(Strict):
    """At most `each` tests of each pair of some calls, drawn by seed; None: all of them."""

    calls: tuple[str, ...]
    each: int | None
    seed: int

    def draw(self) -> tuple[dict[tuple[str, str], int], list[PairTest]]:
        """The number of tests that each pair has, and the tests."""
        counts: dict[tuple[str, str], int] = {}
        drawn: list[PairTest] = []
        for pair in pairs(self.calls):
            tests = list(generate(*pair))
            counts[pair] = len(tests)
            shuffled = random.Random(f"{self.seed} {pair}").sample(range(len(tests)), len(tests))
            drawn += [tests[number] for number in sorted(shuffled[: self.each])]
        return counts, drawn


# The calls' accesses and results, without the names of what they access.
Shape = tuple[tuple[Value, ...], ...]


@dataclass(frozen=True)
class _Found:
    a: Call
    b: Call
    known: dict[Key, Value]
    shapes: tuple[Shape, ...]
    """also that of the mirror image, if both calls are the same one"""


def _commuting(choices: Choices, first: str, second: str) -> _Found | None:
    a = choose(choices, first, 0)
    b = choose(choices, second, choices.pick(2))
    initial = lazily(choices)
    (one, results), (other, others) = (execute(World(initial), a, b, order) for order in ORDERS)
    agree = results == others or one.settle(results) == other.settle(others)
    if not agree or not same(one, other):
        return None
    shapes = [_shape(one, (a, b), results)]
    if first == second:
        shapes.append(_shape(other, (b, a), results[::-1]))
    return _Found(a, b, initial.known, tuple(shapes))


def execute(world: World, a: Call, b: Call, order: str) -> tuple[World, tuple[Result, Result]]:
    """Execute both calls in an order; the results are those of `a` and of `b`."""
    calls = {"a": a, "b": b}
    results = {step: calls[step].run(world, step) for step in order}
    return world, (results["a"], results["b"])


def _shape(world: World, calls: tuple[Call, Call], results: Sequence[Result]) -> Shape:
    """The path of both calls through the model, in the order in which they were executed.

    What is accessed and what is found there is numbered by its first appearance, so that equal and
    different things are told apart, but not which ones they are. Sizes and contents are left out.
    """
    numbers: dict[Value, int] = {}

    def number(thing: Value) -> int:
        return numbers.setdefault(thing, len(numbers))

    def found(key: Key, value: Value) -> Value:
        match key[0], value:
            case "name", int() | str():
                return number(("inode", value))
            case "file" | "memory", (kind, thing, *end):
                return kind, number((kind, thing)), *end
            case "anonymous", int():
                return value == 0
            case _, bool() | str() | None:
                return value
        return "..."

    def argument(value: Any) -> Value:
        match value:
            case (int(directory), int()):
                return number(("name", *value)), number(("directory", directory))
            case int():
                return "..."
        return value

    steps = {world.trace[0].step: 0} if world.trace else {}
    path: list[tuple[Value, ...]] = [(call.process == calls[0].process,) for call in calls]
    path += [tuple(map(argument, call.arguments)) for call in calls]
    path += [result[:1] for result in results]
    for access in world.trace:
        key, place = access.key, number(access.key)
        inside = number(("directory", key[1])) if key[0] == "name" else None
        step = steps.setdefault(access.step, 1)
        path.append((step, access.kind, key[0], place, inside, found(key, access.value)))
    return tuple(path)
