# SPDX-License-Identifier: GPL-2.0-only
"""The BTF reader on hand-made type information, damaged data, and where kernel memory lies."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fscale.runner.profilers.btf import BadBtf, Btf


class Builder:
    """Writes BTF (Documentation/bpf/btf.rst)."""

    def __init__(self) -> None:
        self.strings = b"\0"
        self.types = b""

    def name(self, text: str) -> int:
        if not text:
            return 0
        self.strings += text.encode() + b"\0"
        return len(self.strings) - len(text) - 1

    def add(self, name: str, kind: int, size: int, extra: bytes = b"", count: int = 0) -> None:
        self.types += struct.pack("<III", self.name(name), kind << 24 | count, size) + extra

    def members(self, *members: tuple[str, int, int]) -> bytes:
        return b"".join(struct.pack("<III", self.name(n), t, 8 * o) for n, t, o in members)

    def bytes(self) -> bytes:
        header = struct.pack(
            "<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(self.types), len(self.types), len(self.strings)
        )
        return header + self.types + self.strings


@pytest.fixture
def data() -> bytes:
    b = Builder()
    b.add("int", 1, 4, struct.pack("<I", 32))  # 1
    b.add("raw_spinlock", 4, 4, b.members(("slock", 1, 0)), 1)  # 2
    b.add("raw_spinlock_t", 8, 2)  # 3: typedef
    b.add("mutex", 4, 24, b.members(("owner", 1, 0), ("wait_lock", 3, 8)), 2)  # 4
    b.add("", 5, 24, b.members(("lock", 4, 0), ("number", 1, 0)), 2)  # 5: anonymous union
    b.add("", 3, 0, struct.pack("<III", 4, 1, 2))  # 6: struct mutex[2]
    b.add("outer", 4, 96, b.members(("a", 1, 0), ("", 5, 8), ("many", 6, 40)), 3)  # 7
    b.add(
        "kinds",
        6,
        4,
        struct.pack("<IiIi", b.name("PGTY_buddy"), 0xF0, b.name("PGTY_slab"), 0xF5),
        2,
    )
    b.add("rcu", 18, 7)  # a type tag, which old readers do not know
    return b.bytes()


def test_nested_anonymous_and_array_members_are_found(data: bytes) -> None:
    btf = Btf(data)
    assert btf.size("outer") == 96
    assert btf.offset("outer", "lock.wait_lock") == 16
    assert btf.offset("outer", "many[1].wait_lock") == 40 + 24 + 8
    assert {m.type for m in btf.members("outer") if m.path == "lock.wait_lock"} == {
        "raw_spinlock_t"
    }
    assert btf.enum("PGTY_slab") == 0xF5
    assert btf.size("absent") is None
    assert btf.offset("outer", "absent") is None


def test_a_module_adds_to_its_kernel(data: bytes) -> None:
    base = Btf(data)
    module = Builder()
    module.strings = b""
    shift = len(base._strings)
    name = struct.pack("<III", shift, 4 << 24 | 1, 24) + struct.pack("<III", shift + 6, 4, 0)
    module.types, module.strings = name, b"inode\0m\0"
    both = Btf(module.bytes(), base)
    assert both.offset("inode", "m.wait_lock") == 8
    assert both.size("outer") == 96


def test_a_member_of_a_type_that_is_not_there_is_damage() -> None:
    b = Builder()
    b.add("thing", 4, 8, b.members(("x", 257, 0)), 1)
    with pytest.raises(BadBtf, match="257"):
        list(Btf(bytes(b.bytes())).members("thing"))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_damaged_types_give_an_error_and_nothing_else(draw: st.DataObject) -> None:
    b = Builder()
    b.add("int", 1, 4, struct.pack("<I", 32))
    b.add("thing", 4, 8, b.members(("x", 1, 0), ("y", 1, 4)), 2)
    good = bytearray(b.bytes())
    for _ in range(draw.draw(st.integers(1, 6))):
        good[draw.draw(st.integers(0, len(good) - 1))] = draw.draw(st.integers(0, 255))
    cut = draw.draw(st.integers(0, len(good)))
    try:
        btf = Btf(bytes(good[:cut]))
        list(btf.members("thing"))
    except BadBtf:
        pass
