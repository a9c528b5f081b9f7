# SPDX-License-Identifier: GPL-2.0-only
"""The BTF reader on hand-made type information, damaged data, and where kernel memory lies."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fscale.runner.profilers.btf import BadBtf, Btf


class Builder:
    """Writes BTF (Documentation/bpf/btf.rst)."""

    def __init__(self, order: str = "<", layout: dict[int, tuple[int, int]] | None = None) -> None:
        self.order = order
        self.layout = layout
        self.strings = b"\0"
        self.types = b""

    def name(self, text: str) -> int:
        if not text:
            return 0
        self.strings += text.encode() + b"\0"
        return len(self.strings) - len(text) - 1

    def add(self, name: str, kind: int, size: int, extra: bytes = b"", count: int = 0) -> None:
        self.types += self.pack("III", self.name(name), kind << 24 | count, size) + extra

    def members(self, *members: tuple[str, int, int]) -> bytes:
        return b"".join(self.pack("III", self.name(n), t, 8 * o) for n, t, o in members)

    def pack(self, fields: str, *values: int) -> bytes:
        return struct.pack(self.order + fields, *values)

    def bytes(self) -> bytes:
        types, strings = self.types, self.strings
        rows = self.layout or {}
        length = 24 if self.layout is None else 32
        header = self.pack(
            "HBBIIIII", 0xEB9F, 1, 0, length, 0, len(types), len(types), len(strings)
        )
        layout = b"".join(
            self.pack("BBH", *rows.get(kind, (0, 0)), 0)
            for kind in range(max(rows, default=-1) + 1)
        )
        if self.layout is not None:
            header += self.pack("II", len(types) + len(strings), len(layout))
        return header + types + strings + layout


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


def thing(b: Builder, *unknown: tuple[int, int, int]) -> Btf:
    """The types of a struct behind those of other kinds: kind, elements, 32-bit words."""
    for kind, count, words in unknown:
        b.add("", kind, 0, b.pack(f"{words}I", *range(words)), count)
    b.add("thing", 4, 16, b.members(("x", 0, 0), ("y", 0, 12)), 2)
    return Btf(b.bytes())


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("layout", [None, {}, {1: (4, 0), 4: (0, 12)}])
def test_either_byte_order_and_header_is_read(
    order: str, layout: dict[int, tuple[int, int]] | None
) -> None:
    assert thing(Builder(order, layout)).offset("thing", "y") == 12


@pytest.mark.parametrize("order", "<>")
def test_a_kind_that_the_layout_describes_is_skipped(order: str) -> None:
    b = Builder(order, {1: (4, 0), 40: (8, 4), 127: (0, 8)})
    assert thing(b, (40, 3, 5), (127, 2, 4)).offset("thing", "y") == 12


def test_locations_of_inlined_functions_are_skipped() -> None:
    unknown = (20, 2, 3), (21, 3, 3), (22, 2, 6)
    assert thing(Builder(), *unknown).offset("thing", "y") == 12
    # The layout of the kernel that wrote them counts for more.
    assert thing(Builder("<", {1: (4, 0), 22: (0, 16)}), (22, 2, 8)).offset("thing", "y") == 12
    # A layout without rows says nothing.
    assert thing(Builder("<", {22: (0, 0)}), (22, 2, 6)).offset("thing", "y") == 12


def test_a_struct_may_have_more_members_than_16_bits_count() -> None:
    b = Builder()
    count = (1 << 16) + 1
    b.add("thing", 4, count, b"\0" * 12 * count, count)
    b.add("after", 4, 8, b.members(("x", 0, 4)), 1)
    assert Btf(b.bytes()).offset("after", "x") == 4


@pytest.mark.parametrize("kind", [23, 40, 127])
def test_a_kind_without_description_is_named(kind: int) -> None:
    with pytest.raises(BadBtf, match=f"type kind {kind} is unknown"):
        thing(Builder(), (kind, 1, 1))


def test_truncated_parts_are_damage() -> None:
    good = Builder("<", {1: (4, 0)})
    good.add("int", 1, 4, good.pack("I", 32))
    whole = good.bytes()
    for cut in range(len(whole)):
        with pytest.raises(BadBtf):
            Btf(whole[:cut])


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
