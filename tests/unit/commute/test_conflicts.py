# SPDX-License-Identifier: GPL-2.0-only
"""Conflicts get names, and those of one boot alone are dropped."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from fscale.commute import matrix
from fscale.commute.calls import Call
from fscale.commute.conflicts import Conflict, lasting, named
from fscale.commute.generate import PairTest
from fscale.sim.output import ConflictLine, Conflicts, parse
from fscale.sim.symbols import Symbols

SYMBOLS = Symbols(
    [
        "ffffffff81000000 T down_write",
        "ffffffff81000100 T up_write",
        "ffffffff82000040 D rename_lock",
        "ffffffff82000048 D mount_lock",
    ]
)


class OneStruct:
    """Types of a slab with two members, of 8 and of 32 bytes."""

    def member(self, cache: str, offset: int) -> str:
        return f"{cache}.{'first' if offset < 8 else 'second'}"


def line(va: str, shared: int, **more: object) -> ConflictLine:
    a = [
        {"pc": "0xffffffff81000008", "write": False},
        {"pc": "0xffffffff81000108", "write": True},
    ]
    record = {"va": va, "bytes": hex(shared), "layout": False, "a": a, "b": a[:1], **more}
    whole = {"type": "conflicts", "pair": 3, "lost": 0, "lines": [record]}
    found = parse(json.dumps(whole).encode())
    assert isinstance(found, Conflicts)
    return found.lines[0]


@pytest.mark.parametrize(
    ("va", "names"),
    [
        ("0xffffffff82000040", ["rename_lock", "mount_lock"]),
        ("0xffffffff82000080", ["mount_lock+0x38"]),
        # Where these lie differs from boot to boot.
        ("0xffff888001234500", ["memory"]),
        ("0xffffea0000001000", ["struct page"]),
        ("0xffffc90000001000", ["vmalloc area"]),
    ],
)
def test_names(va: str, names: list[str]) -> None:
    types: Any = None
    found = named(line(va, 0xFF0F), SYMBOLS, types)
    functions = ("up_write", "down_write"), ("down_write",)
    assert found == [Conflict(name, False, *functions) for name in names]


def test_each_member_in_a_line_is_named_once() -> None:
    slab = {"cache": "inode", "object": "0xffff888001234518", "size": 40}
    types: Any = OneStruct()

    def members(shared: int) -> list[str]:
        return [
            one.object for one in named(line("0xffff888001234500", shared, **slab), SYMBOLS, types)
        ]

    assert members(0xFF << 24) == ["inode.first"]
    assert members(0xFF << 28) == ["inode.first", "inode.second"]
    # Of the object before it.
    assert members(1 << 23) == ["inode.second"]


def test_neighbouring_bytes_without_members_are_one_object() -> None:
    slab = {"cache": "kmalloc-64", "object": "0xffff888001234500", "size": 64}
    types: Any = SimpleNamespace(member=lambda cache, offset: f"{cache}+{offset:#x}")
    found = named(line("0xffff888001234500", 0xFF0F0, **slab), SYMBOLS, types)
    assert [one.object for one in found] == ["kmalloc-64+0x4", "kmalloc-64+0xc"]


def test_a_conflict_of_one_boot_is_dropped() -> None:
    one, other, layout = (
        Conflict(name, apart, (), ())
        for name, apart in (("i_rwsem", False), ("jiffies", False), ("i_rwsem", True))
    )
    assert lasting([[one, one, other], [one, one, layout]]) == [one, one]
    assert lasting([[one, one], [other, one], [one, one]]) == [one]
    assert lasting([[one]]) == [one]


def test_objects_are_ordered_by_the_pairs_that_they_spoil() -> None:
    def test_of(a: str, b: str) -> PairTest:
        return PairTest(f"{a}-{b}-1", Call(0, a, ()), Call(0, b, ()), {})

    rwsem = Conflict("i_rwsem", False, ("down_write",), ("up_write",))
    line_of_it = Conflict("i_rwsem", True, ("down_write",), ())
    found = matrix.matrix(
        "tmpfs",
        "6.12",
        2,
        {
            test_of("link", "link"): [rwsem, rwsem, line_of_it],
            test_of("link", "stat"): [],
            test_of("link", "unlink"): [rwsem],
            test_of("unlink", "unlink"): [line_of_it],
        },
        dict.fromkeys([("link", "link"), ("link", "unlink"), ("unlink", "unlink")], 1)
        | {("link", "stat"): 7},
    )
    assert (found.total.tests, found.total.free, found.total.layout) == (4, 1, 1)
    assert found.share == 0.7
    assert [(one.object, one.layout, one.tests) for one in found.spoilers] == [
        ("i_rwsem", False, 2),
        ("i_rwsem", True, 2),
    ]
    assert found.spoilers[0].functions == ["down_write", "up_write"]
    assert found.pairs[0] == matrix.PairCount(calls=("link", "link"), tests=1)


def test_the_triangle() -> None:
    texts = {("open", "open"): "7", ("open", "link"): "100", ("link", "link"): "50"}
    assert matrix.lines(texts) == [
        "       o   l",
        "       p   i",
        "       e   n",
        "       n   k",
        "open   7",
        "link 100  50",
    ]
