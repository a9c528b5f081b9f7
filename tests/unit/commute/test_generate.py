# SPDX-License-Identifier: GPL-2.0-only
"""The pairs of calls that commute, as one would find them by hand."""

import itertools

import pytest

from fscale.commute.calls import Call
from fscale.commute.choices import Choices, OutsideModel, explore
from fscale.commute.generate import ORDERS, execute, generate, pairs
from fscale.commute.posix import CALLS
from fscale.commute.script import outcome
from fscale.commute.states import World, completed, same

EXCLUSIVE = ("creat", "excl")


def commute(a, b, known):
    initial = completed(known)
    (one, results), (other, others) = (execute(World(initial), a, b, order) for order in ORDERS)
    return one.settle(results) == other.settle(others) and same(one, other)


def test_every_execution_is_explored_once():
    def run(choices: Choices):
        first = choices.pick(3)
        if first == 1:
            raise OutsideModel
        return first, choices.pick(1 + first)

    assert list(explore(run)) == [(0, 0), (2, 0), (2, 1), (2, 2)]


def test_symbols_have_the_names_of_their_first_use():
    words = list(explore(lambda choices: [choices.symbol("x", 3) for _ in range(4)]))
    assert len(words) == 14  # partitions of four things into at most three classes
    assert all(word.index(n) < word.index(n + 1) for word in words for n in range(max(word)))


def test_all_pairs():
    assert len(pairs(list(CALLS))) == 18 * 19 / 2
    assert pairs(["rename", "open"]) == [("open", "open"), ("open", "rename"), ("rename", "rename")]


def test_two_stats_always_commute():
    # Of one path: absent, or there. Of two in a directory, or in two: neither, one, or both there,
    # as links to one file or as two files; which of them is there makes no difference.
    assert len(list(generate("stat", "stat"))) == 2 * (2 + 2 * 4)


def test_two_unlinks():
    tests = list(generate("unlink", "unlink"))
    assert not any(test.a.arguments == test.b.arguments for test in tests if _found(test))
    # Of one absent path; of two, in one directory or in two, as for stat.
    assert len(tests) == 2 * (1 + 2 * 4)


def _found(test):
    return test.known["name", *test.a.arguments[0]] is not None


@pytest.mark.parametrize(
    ("a", "b", "known", "expected"),
    [
        # Two names can be made, one cannot.
        (("link", (0, 0), (0, 1)), ("link", (0, 0), (0, 2)), {("name", 0, 0): 0}, True),
        (("link", (0, 0), (0, 1)), ("link", (0, 0), (0, 1)), {("name", 0, 0): 0}, False),
        (("open", (0, 0), EXCLUSIVE), ("open", (0, 1), EXCLUSIVE), {}, False),
        (("open", (0, 0), (*EXCLUSIVE, "anyfd")), ("open", (0, 1), EXCLUSIVE), {}, True),
        # The same value may be written twice to one page, but an offset moves.
        (
            ("pwrite", 0, 0, 1),
            ("pwrite", 0, 0, 1),
            {("open", 0, 0): True, ("file", 0, 0): ("inode", 0)},
            True,
        ),
        (
            ("pwrite", 0, 0, 1),
            ("pwrite", 0, 0, 2),
            {("open", 0, 0): True, ("file", 0, 0): ("inode", 0)},
            False,
        ),
        (
            ("read", 0),
            ("read", 0),
            {("open", 0, 0): True, ("file", 0, 0): ("pipe", 0, "r"), ("queue", 0): (1, 1)},
            True,
        ),
        (
            ("read", 0),
            ("read", 0),
            {("open", 0, 0): True, ("file", 0, 0): ("pipe", 0, "r"), ("queue", 0): (1, 2)},
            False,
        ),
        # A rename to another link of the file does nothing, to another file does.
        (
            ("rename", (0, 0), (0, 1)),
            ("stat", (0, 0)),
            {("name", 0, 0): 0, ("name", 0, 1): 0},
            True,
        ),
        (
            ("rename", (0, 0), (0, 1)),
            ("stat", (0, 0)),
            {("name", 0, 0): 0, ("name", 0, 1): 1},
            False,
        ),
        (("mmap", 0, "rw"), ("mmap", 0, "rw"), {}, True),
        (("mmap", 0, "rw"), ("mmap", 0, "r"), {}, False),
    ],
)
def test_pairs_in_one_process(a, b, known, expected):
    assert commute(Call(0, a[0], a[1:]), Call(0, b[0], b[1:]), known) is expected


def test_pages_are_read_before_and_after_they_are_first_written():
    written = {test.known.get(("anonymous", 0, 0), 1) for test in generate("memread", "stat")}
    assert written == {0, 1}


def test_no_state_of_two_renames_is_missing():
    """Each concrete state in which two renames commute takes a path that a test takes."""
    paths = list(itertools.product(range(2), range(2)))
    tests = list(generate("rename", "rename"))
    shapes = {_renames(test.a, test.b, test.known) for test in tests}
    for inodes in itertools.product((None, 0, 1), repeat=len(paths)):
        known = {("name", *path): inode for path, inode in zip(paths, inodes, strict=True)}
        for words in itertools.product(paths, repeat=4):
            a, b = Call(0, "rename", words[:2]), Call(0, "rename", words[2:])
            if commute(a, b, known):
                assert not shapes.isdisjoint({_renames(a, b, known), _renames(b, a, known)})


def _renames(a, b, known):
    """Which paths, directories and files of two renames are the same, and which are there."""
    paths = [*a.arguments, *b.arguments]
    inodes = [known.get(("name", *path)) for path in paths]
    sources = [inodes[0] is None, inodes[2] is None]
    # Where a rename ends because nothing is there, what is at its other path is not looked at.
    for source, target in ((0, 1), (2, 3)):
        if inodes[source] is None and paths[target] not in _looked_at(paths, inodes):
            inodes[target] = None
    return (
        tuple(paths.index(path) for path in paths),
        tuple([path[0] for path in paths].index(path[0]) for path in paths),
        tuple(None if inode is None else inodes.index(inode) for inode in inodes),
        *sources,
    )


def _looked_at(paths, inodes):
    looked = {paths[0], paths[2]}
    return looked | {paths[i + 1] for i in (0, 2) if inodes[i] is not None}


def test_tests_commute_in_the_state_that_is_made():
    for test in itertools.islice(generate("open", "mmap"), 0, None, 7):
        one, other = (sorted(outcome(test, order)[1:]) for order in ORDERS)
        assert one == other, test.id


@pytest.mark.parametrize("call", ["lseek", "write", "pwrite", "memwrite"])
def test_what_is_written_differs_from_what_was_there(call: str) -> None:
    """Otherwise a kernel need not store it, and a write that is lost does not show."""
    changed = 0
    for test in generate("stat", call):
        initial = completed(test.known)
        world, _ = execute(World(initial), test.a, test.b, "ab")
        for access in world.trace:
            if access.kind == "put" and access.key[0] in ("offset", "page", "anonymous"):
                decided = access.key in test.known
                assert decided or initial.read(access.key) != access.value, test.id
                changed += not decided
    assert changed
