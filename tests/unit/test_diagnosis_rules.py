# SPDX-License-Identifier: GPL-2.0-only
"""When a rule fits a stack, and what a place makes of a name, case by case."""

import tomllib
from typing import Any

import pytest

from analysis.diagnosis.naming import (
    IMAGE,
    AddressBook,
    By,
    Name,
    Place,
    _judge,
    _locks_at,
    name_lock,
)
from analysis.diagnosis.rules import HERE, Compiled, _compile, match, owners, rules
from fscale.model import catalogue, paths


def rule(**keys: Any) -> Compiled:
    return _compile({"object": "x_lock of y", "scope": "File", "fs": "VFS"} | keys)


@pytest.mark.parametrize(
    ("keys", "frames", "fits"),
    [
        ({"caller": ["a"]}, "a b c", True),
        ({"caller": ["a"]}, "b a", False),
        ({"caller": ["a"]}, "ab", False),
        ({"caller": ["a", "b.*"]}, "bc", True),
        ({"caller": ["a|b", "c"]}, "b", True),
        ({"leaf": ["a"]}, "a", True),
        ({"caller": ["b"], "leaf": ["a"]}, "a", False),
        ({"caller": ["a"]}, "", False),
        ({"caller": ["a"], "below": ["b", "d"]}, "a b c d", True),
        ({"caller": ["a"], "below": ["b", "d"]}, "a d c b", False),
        ({"caller": ["a"], "below": ["b", "d"]}, "a b c", False),
        ({"caller": ["a"], "below": ["b", "b"]}, "a b", False),
        ({"caller": ["a"], "without": ["c"]}, "a b", True),
        ({"caller": ["a"], "without": ["c"]}, "a b c", False),
        ({"caller": ["a"], "without": ["x", "c"]}, "a b c", False),
        ({"caller": ["a"], "without": ["a"]}, "a", False),
        ({"caller": ["a"], "fs": "btrfs"}, "a xfs_create", False),
        ({"caller": ["a"], "fs": "btrfs"}, "a btrfs_create xfs_create", True),
        ({"caller": ["a"], "fs": "btrfs"}, "a vfs_create", True),
        ({"caller": ["a"], "fs": "VFS"}, "a xfs_create", True),
    ],
)
def test_when_a_rule_fits(keys: dict[str, Any], frames: str, fits: bool) -> None:
    assert rule(**keys).fits(tuple(frames.split()), owners({})) is fits


def test_the_first_rule_that_fits_is_taken() -> None:
    first, second = rule(caller=["a"], object="1"), rule(caller=["a|b"], object="2")
    assert match((first, second), ("a",), {}) is first.rule
    assert match((first, second), ("b",), {}) is second.rule
    assert match((first, second), ("c",), {}) is None


def test_a_member_is_matched_as_the_last_part_of_a_path() -> None:
    member = rule(caller=["a"], member="lock|sem").member
    assert member is not None
    assert [bool(member.match(path)) for path in ("lock", "s.inode.sem", "unlock", "lock.x")] == [
        True, True, False, False,
    ]  # fmt: skip
    assert rule(caller=["a"]).member is None
    assert rule(caller=["a"]).without is None


def test_all_rules_are_read_in_order() -> None:
    data = tomllib.loads((HERE / "locks.toml").read_text())
    found = rules()
    for key, compiled in (
        ("lock", found.locks),
        ("wait", found.waits),
        ("counter", found.counters),
    ):
        assert [c.rule.object for c in compiled] == [r["object"] for r in data[key]]
    assert len(found.locks) > 50


def test_functions_come_from_the_files_of_the_file_systems() -> None:
    assert owners({})["xfs"] == ("xfs_", "xlog_")
    told = {catalogue.load_filesystem(n).kernel for n in catalogue.names(paths.FILESYSTEMS)
            if catalogue.load_filesystem(n).functions}  # fmt: skip
    assert set(owners({})) == told


STATIC = rule(caller=["a"], static=True)
MEMBER = rule(caller=["a"], member="lock", struct="inode")
ANYWHERE = rule(caller=["a"])
LAYOUTS = {"layouts": {"inode": [[8, "i.lock", "spinlock"], [16, "i.sem", "rwsem"]]}}


@pytest.mark.parametrize(
    ("compiled", "place", "by"),
    [
        (STATIC, Place("static"), By.ADDRESS_AND_STACK),
        (STATIC, Place("static", symbol="x_lock+0x8"), By.ADDRESS_AND_STACK),
        (STATIC, Place("static", symbol="z_lock"), None),
        (STATIC, Place("unknown"), By.STACK),
        (STATIC, Place("memory"), None),
        (STATIC, Place("slab", "inode", 8), None),
        (ANYWHERE, Place("slab", "inode", 8), By.STACK),
        (MEMBER, Place("memory"), By.STACK),
        (MEMBER, Place("unknown"), By.STACK),
        (MEMBER, Place("static"), None),
        (MEMBER, Place("slab", "inode", 8, "inode.i.lock"), By.ADDRESS_AND_STACK),
        (MEMBER, Place("slab", "inode", 16, "inode.i.sem"), None),
        (MEMBER, Place("slab", "kmalloc-64", 8), By.ADDRESS_AND_STACK),
        (MEMBER, Place("slab", "kmalloc-64", 16), None),
        (MEMBER, Place("slab", "kmalloc-64", 24), None),
        (rule(caller=["a"], member="lock"), Place("slab", "kmalloc-64", 8), By.STACK),
        (rule(caller=["a"], member="lock", struct="file"), Place("slab", "x", 8), By.STACK),
    ],
)
def test_what_a_rule_rests_on_at_a_place(compiled: Compiled, place: Place, by: By | None) -> None:
    assert _judge(compiled, place, AddressBook(LAYOUTS, {})) is by


def test_the_locks_at_an_offset() -> None:
    book = AddressBook(LAYOUTS, {})
    assert _locks_at(MEMBER.rule, Place("slab", "a", 8, "b.c"), book) == ["b.c"]
    assert _locks_at(MEMBER.rule, Place("slab", "a", 8), book) == ["i.lock"]
    assert _locks_at(MEMBER.rule, Place("slab", "a", 9), book) == []
    assert _locks_at(MEMBER.rule, Place("slab", "a"), book) is None
    assert _locks_at(ANYWHERE.rule, Place("slab", "a", 8), book) is None


PAGES, DIRECT = 0xFFFFEA0000000000, 0xFFFF888000000000
MEMORY = {"direct_map": DIRECT, "page_array": PAGES, "page_bits": 12, "page_size": 64}
LOCK = DIRECT + (5 << 12) + 3 * 192 + 8  # in the third object of a slab whose first page is 5


def book(**maps: Any) -> AddressBook:
    """Of a lock at LOCK in the cache of inodes, with what the maps say otherwise."""
    known = {
        "@page": {str(LOCK - (1 << 64)): PAGES + 5 * 64 - (1 << 64)},
        "@cache": {hex(LOCK): -7},
        "@cache_name": {"-7": "inode_cache"},
        "@cache_size": {"-7": 192},
    }
    profile = LAYOUTS | {
        "memory": MEMORY, "symbols": {f"{LOCK:#x}": "x_lock", f"{IMAGE:#x}": "rename_lock"},
        "cache_structs": {"inode_cache": "inode"},
    }  # fmt: skip
    return AddressBook(profile, known | {f"@{name}": value for name, value in maps.items()})


@pytest.mark.parametrize(
    ("maps", "place"),
    [
        ({}, Place("slab", "inode_cache", 8, "inode.i.lock")),
        ({"cache_name": {"-7": "inode"}}, Place("slab", "inode", 8, "inode.i.lock")),
        ({"cache_name": {"-7": "other"}}, Place("slab", "other", 8)),
        ({"cache_size": {"-7": 1 << 20}}, Place("slab", "inode_cache", 584)),
        ({"cache_size": {"-7": 1}}, Place("slab", "inode_cache", 0)),
        ({"cache_size": {"-7": 0}}, Place("unknown")),
        ({"cache_size": {}}, Place("unknown")),
        ({"cache_name": {"-7": 7}}, Place("unknown")),
        ({"cache": {}}, Place("memory", symbol="x_lock")),
        ({"page": {}}, Place("unknown", symbol="x_lock")),
        ({"page": {"damaged": 1}}, Place("unknown", symbol="x_lock")),
        ({"page": {"damaged": 1, str(LOCK): PAGES + 5 * 64}},
         Place("slab", "inode_cache", 8, "inode.i.lock")),
    ],
)  # fmt: skip
def test_the_place_of_an_address(maps: dict[str, Any], place: Place) -> None:
    assert book(**maps).place(LOCK) == place


def test_the_kernels_image_and_what_is_not_known() -> None:
    assert book().place(IMAGE) == Place("static", symbol="rename_lock")
    assert book().place(IMAGE - 1) == Place("unknown")
    bare = AddressBook({"memory": None}, {"@page": {str(LOCK): PAGES}, "@cache": {str(LOCK): 7}})
    assert bare.place(LOCK) == Place("unknown")
    assert (bare.knows("inode"), book().knows("inode")) == (False, True)
    assert book().paths("inode", 16) == ["i.sem"]
    assert book().paths("inode", 9) == book().paths("file", 8) == []


def test_of_several_members_at_an_offset_the_innermost_is_named() -> None:
    layouts = {"inode": [[8, "i", "struct"], [8, "i.lock", "spinlock"]]}
    profile = {"memory": MEMORY, "layouts": layouts}
    maps = {"@page": {str(LOCK): PAGES + 5 * 64}, "@cache": {str(LOCK): 7},
            "@cache_name": {"7": "inode"}, "@cache_size": {"7": 192}}  # fmt: skip
    found = AddressBook(profile, maps)
    assert found.place(LOCK).member == "inode.i.lock"
    assert found.paths("inode", 8) == ["i", "i.lock"]


EMPTY = AddressBook({}, {})


@pytest.mark.parametrize(
    ("frames", "place", "name"),
    [
        ("f", Place("slab", "c", 8, "s.i.lock"), Name("s->i.lock", None, By.ADDRESS)),
        ("f", Place("static", symbol="g"), Name("g", None, By.ADDRESS)),
        ("f g", Place("unknown"), Name("f", None, By.NOTHING)),
        ("", Place("unknown"), Name("?", None, By.NOTHING)),
        # The lock is taken by the interrupt's handler, not by the thread below it.
        ("h asm_sysvec_x g", Place("unknown"), Name("h", None, By.NOTHING)),
        ("asm_sysvec_x g", Place("unknown"), Name("asm_sysvec_x", None, By.NOTHING)),
    ],
)
def test_names_without_a_rule(frames: str, place: Place, name: Name) -> None:
    assert name_lock("spinlock", place, ("_raw_spin_lock", *frames.split()), EMPTY) == name


def test_a_rule_is_for_its_kinds_of_lock() -> None:
    rename = ("_raw_spin_lock", "d_move", "vfs_rename")
    assert name_lock("spinlock", Place("unknown"), rename, EMPTY).object == "rename_lock"
    assert name_lock("mutex", Place("unknown"), rename, EMPTY).object == "d_move"
    create = ("down_write", "path_openat", "do_filp_open")
    found = name_lock("rwsem write", Place("unknown"), create, EMPTY)
    assert (found.object, found.by) == ("inode->i_rwsem of the shared directory", By.STACK)
    assert found.rule is not None
    assert found.scope == found.rule.scope
