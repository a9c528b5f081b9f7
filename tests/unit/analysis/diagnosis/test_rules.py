# SPDX-License-Identifier: GPL-2.0-only
"""When a rule fits a stack, and what a place makes of a name, case by case."""

import re
import tomllib
from typing import Any

import pytest

from fscale.analysis.diagnosis.naming import (
    IMAGE,
    AddressBook,
    By,
    LockPlace,
    Name,
    _judge,
    _locks_at,
    name_lock,
)
from fscale.analysis.diagnosis.rules import HERE, Compiled, _compile, kernels, match, owners, rules
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
IN_CACHE = rule(caller=["a"], member="lock", cache=".*inode.*")
BY_CACHE = rule(caller=["a"], cache=".*inode.*")
BY_SYMBOL = rule(caller=["a"], symbol="zones")
OF_TWO = rule(caller=["a"], member="lock", struct=["inode", "file"])
PART = rule(caller=["a"], member="i\\.lock", struct="inode", part=True)
LAYOUTS = {
    "layouts": {
        "inode": [[8, "i.lock", "spinlock"], [16, "i.sem", "rwsem"]],
        "file": [[40, "f.lock", "spinlock"]],
    }
}


@pytest.mark.parametrize(
    ("compiled", "place", "by"),
    [
        (STATIC, LockPlace("static"), By.ADDRESS_AND_STACK),
        (STATIC, LockPlace("static", symbol="x_lock+0x8"), By.ADDRESS_AND_STACK),
        (STATIC, LockPlace("static", symbol="z_lock"), None),
        (STATIC, LockPlace("unknown"), By.STACK),
        (STATIC, LockPlace("memory"), None),
        (STATIC, LockPlace("slab", "inode", 8), None),
        (ANYWHERE, LockPlace("slab", "inode", 8), By.STACK),
        (MEMBER, LockPlace("memory"), By.STACK),
        (MEMBER, LockPlace("unknown"), By.STACK),
        (MEMBER, LockPlace("static"), None),
        (MEMBER, LockPlace("slab", "inode", 8, "inode.i.lock"), By.ADDRESS_AND_STACK),
        (MEMBER, LockPlace("slab", "inode", 16, "inode.i.sem"), None),
        (MEMBER, LockPlace("slab", "kmalloc-64", 8), By.ADDRESS_AND_STACK),
        (MEMBER, LockPlace("slab", "kmalloc-64", 16), None),
        (MEMBER, LockPlace("slab", "kmalloc-64", 24), None),
        (rule(caller=["a"], member="lock"), LockPlace("slab", "kmalloc-64", 8), None),
        (rule(caller=["a"], member="lock", struct="dir"), LockPlace("slab", "x", 8), None),
        (
            rule(caller=["a"], member="lock", struct="dir"),
            LockPlace("slab", "kmalloc-8", 8),
            By.STACK,
        ),
        (MEMBER, LockPlace("slab", "file", 8, "file.i.lock"), None),
        (MEMBER, LockPlace("slab", "inode", 8, "inode.i.unlock"), None),
        (ANYWHERE, LockPlace("slab", "file", 8, "file.i.lock"), None),
        (ANYWHERE, LockPlace("static", symbol="a_lock"), None),
        (STATIC, LockPlace("static", symbol="lock"), None),
        (STATIC, LockPlace("static", symbol="x_lock of"), By.ADDRESS_AND_STACK),
        (IN_CACHE, LockPlace("slab", "f_inode_cache", 24), By.STACK),
        (IN_CACHE, LockPlace("slab", "dentry", 24), None),
        (IN_CACHE, LockPlace("slab", "kmalloc-64", 24), None),
        (IN_CACHE, LockPlace("memory"), By.STACK),
        (BY_CACHE, LockPlace("slab", "f_inode_cache", 24), By.ADDRESS_AND_STACK),
        (BY_CACHE, LockPlace("slab", "f_inode_cache", 24, "f.lock"), By.ADDRESS_AND_STACK),
        (BY_CACHE, LockPlace("slab", "dentry", 24), None),
        (BY_SYMBOL, LockPlace("static", symbol="zones+0x40"), By.ADDRESS_AND_STACK),
        (BY_SYMBOL, LockPlace("static", symbol="zones_too"), None),
        (BY_SYMBOL, LockPlace("static"), By.STACK),
        (OF_TWO, LockPlace("slab", "kmalloc-64", 40), By.ADDRESS_AND_STACK),
        (OF_TWO, LockPlace("slab", "kmalloc-64", 16), None),
        (OF_TWO, LockPlace("slab", "file", 40, "file.f.lock"), By.ADDRESS_AND_STACK),
        (PART, LockPlace("slab", "kmalloc-64", 8), By.ADDRESS_AND_STACK),
        (PART, LockPlace("slab", "kmalloc-64", 8 + 16), By.ADDRESS_AND_STACK),
        (PART, LockPlace("slab", "kmalloc-64", 8 + 4), None),
        (PART, LockPlace("slab", "kmalloc-64", 4), None),
    ],
)
def test_what_a_rule_rests_on_at_a_place(
    compiled: Compiled, place: LockPlace, by: By | None
) -> None:
    assert _judge(compiled, place, AddressBook(LAYOUTS, {})) is by


def test_the_locks_at_an_offset() -> None:
    book = AddressBook(LAYOUTS, {})
    assert _locks_at(MEMBER.rule, LockPlace("slab", "a", 8, "inode.c"), book) == ["inode.c"]
    assert _locks_at(MEMBER.rule, LockPlace("slab", "a", 8, "b.c"), book) == []
    assert _locks_at(MEMBER.rule, LockPlace("slab", "a", 8), book) == ["i.lock"]
    assert _locks_at(MEMBER.rule, LockPlace("slab", "a", 9), book) == []
    assert _locks_at(MEMBER.rule, LockPlace("slab", "a"), book) is None
    assert _locks_at(ANYWHERE.rule, LockPlace("slab", "a", 8), book) is None


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
        ({}, LockPlace("slab", "inode_cache", 8, "inode.i.lock")),
        ({"cache_name": {"-7": "inode"}}, LockPlace("slab", "inode", 8, "inode.i.lock")),
        ({"cache_name": {"-7": "other"}}, LockPlace("slab", "other", 8)),
        ({"cache_size": {"-7": 1 << 20}}, LockPlace("slab", "inode_cache", 584)),
        ({"cache_size": {"-7": 1}}, LockPlace("slab", "inode_cache", 0)),
        ({"cache_size": {"-7": 0}}, LockPlace("unknown")),
        ({"cache_size": {}}, LockPlace("unknown")),
        ({"cache_name": {"-7": 7}}, LockPlace("unknown")),
        ({"cache": {}}, LockPlace("static", symbol="x_lock")),
        ({"page": {}}, LockPlace("unknown")),
        ({"page": {"damaged": 1}}, LockPlace("unknown")),
        ({"page": {"damaged": 1, str(LOCK): PAGES + 5 * 64}},
         LockPlace("slab", "inode_cache", 8, "inode.i.lock")),
    ],
)  # fmt: skip
def test_the_place_of_an_address(maps: dict[str, Any], place: LockPlace) -> None:
    assert book(**maps).place(LOCK) == place


def test_the_kernels_image_and_what_is_not_known() -> None:
    assert book().place(IMAGE) == LockPlace("static", symbol="rename_lock")
    assert book().place(IMAGE - 1) == LockPlace("unknown")
    bare = AddressBook({"memory": None}, {"@page": {str(LOCK): PAGES}, "@cache": {str(LOCK): 7}})
    assert bare.place(LOCK) == LockPlace("unknown")
    assert (bare.knows("inode"), book().knows("inode")) == (False, True)
    assert book().paths("inode", 16) == ["i.sem"]
    assert book().paths("inode", 9) == book().paths("file", 8) == []


# Architecture -> where the image begins and ends, a static lock in it, a lock beside it.
IMAGES = {
    "x86-64": (0xFFFFFFFF9E000000, 0xFFFFFFFFA1C00000, 0xFFFFFFFFA0E1B2C0, 0xFFFF888100001000),
    "arm64": (0xFFFF800080000000, 0xFFFF800083A00000, 0xFFFF800082A1B2C0, 0xFFFF000012345680),
    "arm64 KASLR": (0xFFFFC3B1E7A00000, 0xFFFFC3B1EB400000, 0xFFFFC3B1EA41B2C0, 0xFFFF0A8012345680),
    "arm64 52": (0xFFF8000080000000, 0xFFF8000083A00000, 0xFFF8000082A1B2C0, 0xFFF00A8012345680),
    "riscv": (0xFFFFFFFF80000000, 0xFFFFFFFF82A00000, 0xFFFFFFFF81E1B2C0, 0xFF60000012345680),
    "ppc64": (0xC000000000000000, 0xC000000003A00000, 0xC000000002A1B2C0, 0xC000000012345680),
    "s390": (0x100000, 0x3A00000, 0x2A1B2C0, 0x12345680),
    "s390 high": (0x3FFE0000000, 0x3FFE3A00000, 0x3FFE2A1B2C0, 0x12345680),
}  # fmt: skip


@pytest.mark.parametrize("architecture", IMAGES)
def test_a_static_lock_is_in_the_image_wherever_that_is(architecture: str) -> None:
    start, end, lock, heap = IMAGES[architecture]
    maps = {"@page": {str(address): 64 for address in (lock, heap, end)}}
    memory = {"memory": MEMORY, "image": [start, end]}
    named = AddressBook(memory | {"symbols": {f"{lock:#x}": "rename_lock"}}, maps)
    assert named.place(lock) == LockPlace("static", symbol="rename_lock")
    assert named.place(heap).kind == "memory"
    frames = ("_raw_spin_lock+0x8", "d_move+0x10", "vfs_rename+0x20")
    found = name_lock("spinlock", named.place(lock), frames, named)
    assert (found.object, found.by) == ("rename_lock", By.ADDRESS_AND_STACK)
    assert found.rule is not None
    assert found.rule.table3 == "rename-lock"
    without = AddressBook(memory, maps)
    assert [without.place(a).kind for a in (start, end - 1, end)] == ["static", "static", "memory"]
    # Profiles of before do not say where the image was, but list the symbols of static locks alone.
    old = AddressBook({"memory": MEMORY, "symbols": {f"{lock:#x}": "rename_lock"}}, maps)
    assert old.place(lock) == LockPlace("static", symbol="rename_lock")
    assert old.place(heap).kind == "memory"


def test_a_lock_in_a_modules_data_is_static() -> None:
    lock = 0xFFFF80007A1B2C00
    profile = {"memory": MEMORY, "image": IMAGES["arm64"][:2], "symbols": {hex(lock): "m"}}
    place = AddressBook(profile, {"@page": {str(lock): 64}}).place(lock)
    assert place == LockPlace("static", symbol="m")


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
        ("f", LockPlace("slab", "c", 8, "s.i.lock"), Name("s->i.lock", None, By.ADDRESS)),
        ("f", LockPlace("static", symbol="g"), Name("g", None, By.ADDRESS)),
        ("f g", LockPlace("unknown"), Name("f", None, By.NOTHING)),
        ("", LockPlace("unknown"), Name("?", None, By.NOTHING)),
        # The lock is taken by the interrupt's handler, not by the thread below it.
        ("h asm_sysvec_x g", LockPlace("unknown"), Name("h", None, By.NOTHING)),
        ("asm_sysvec_x g", LockPlace("unknown"), Name("asm_sysvec_x", None, By.NOTHING)),
    ],
)
def test_names_without_a_rule(frames: str, place: LockPlace, name: Name) -> None:
    assert name_lock("spinlock", place, ("_raw_spin_lock", *frames.split()), EMPTY) == name


def test_a_rule_is_for_its_kinds_of_lock() -> None:
    rename = ("_raw_spin_lock", "d_move", "vfs_rename")
    assert name_lock("spinlock", LockPlace("unknown"), rename, EMPTY).object == "rename_lock"
    assert name_lock("mutex", LockPlace("unknown"), rename, EMPTY).object == "d_move"
    create = ("down_write", "path_openat", "do_filp_open")
    found = name_lock("rwsem write", LockPlace("unknown"), create, EMPTY)
    assert (found.object, found.by) == ("inode->i_rwsem of the shared directory", By.STACK)
    assert found.rule is not None
    assert found.scope == found.rule.scope


@pytest.mark.parametrize(
    ("text", "holds", "does_not"),
    [
        ("6.1-6.18", "6.1.0-41-amd64 6.12.48+deb13 6.18.44", "6.0.9 5.19.1 6.19.0-rc3+ 7.0.0"),
        ("6.12-", "6.12.0 6.19.0-rc1 7.0.0 10.1", "6.11.9 6.1.0 5.19.0"),
        ("-6.5", "5.19.0 6.5.7 4.4.0", "6.6.0 6.12.0 7.0.0"),
        ("6.18", "6.18.0 6.18.44-custom", "6.1.8 6.17.9 6.19.0"),
        ("6.1, 6.12-6.18", "6.1.170 6.12.1", "6.2.0 6.11.0 6.19.0"),
    ],
)  # fmt: skip
def test_a_name_by_stack_is_for_the_kernels_of_its_rule(
    text: str, holds: str, does_not: str
) -> None:
    bound = rule(caller=["a"], kernels=text)
    assert [bound.holds_on(release) for release in holds.split()] == [True] * len(holds.split())
    assert not any(bound.holds_on(release) for release in does_not.split())
    # Of what has no release, and where a rule has no kernels, nothing is refused.
    assert bound.holds_on(None)
    assert bound.holds_on("a kernel")
    assert rule(caller=["a"]).holds_on("7.0.0")


@pytest.mark.parametrize(
    "text", ["", "6", "6.1-6", "6.18-6.1", "v6.1", "6.1-6.2-6.3", "-", "6.1,", "6.x", "6.1-7"]
)
def test_a_range_of_kernels_is_checked(text: str) -> None:
    with pytest.raises(ValueError, match="not a range of kernels"):
        kernels(text)


DENTRY = {"memory": MEMORY, "layouts": {"dentry": [[88, "d_lockref.lock", "spinlock_t"]]}}


@pytest.mark.parametrize(
    ("kernel", "place", "expected"),
    [
        ("6.18.44", LockPlace("unknown"), By.STACK),
        ("6.19.0-rc3", LockPlace("unknown"), By.NOTHING),
        ("7.0.0", LockPlace("memory"), By.NOTHING),
        ("5.19.0", LockPlace("unknown"), By.NOTHING),
        ("7.0.0", LockPlace("slab", "dentry", 88, "dentry.d_lockref.lock"), By.ADDRESS_AND_STACK),
    ],
)
def test_an_address_names_on_any_kernel(kernel: str, place: LockPlace, expected: By) -> None:
    frames = ("_raw_spin_lock", "lockref_put_return", "dput", "path_put")
    found = name_lock("spinlock", place, frames, AddressBook(DENTRY | {"kernel": kernel}, {}))
    assert found.by is expected
    named = found.elsewhere if expected is By.NOTHING else found.rule
    assert named is not None
    assert named.table3 == "dentry-lockref"


def test_waits_and_counters_are_for_the_kernels_of_their_rules_too() -> None:
    for table, frames in (
        (rules().waits, ("jbd2_log_wait_commit",)),
        (rules().counters, ("filemap_get_entry",)),
    ):
        assert match(table, frames, {}, "6.12.48") is not None
        assert match(table, frames, {}, "7.0.0") is None


# Who takes a lockref, and whether that is a dentry's.
@pytest.mark.parametrize(
    ("frames", "dentry"),
    [
        ("lockref_get_not_dead __legitimize_path try_to_unlazy", True),
        ("lockref_put_return dput path_put", True),
        ("fast_dput dput", True),
        ("lockref_get path_get do_dentry_open", True),
        ("lockref_get dget_parent d_path", True),
        ("lockref_get_not_dead gfs2_glock_get gfs2_lookup path_openat dput", False),
        ("lockref_put_or_lock gfs2_glock_put gfs2_evict_inode evict dput", False),
        ("lockref_get_not_zero erofs_workgroup_get path_openat", False),
        ("lockref_mark_dead kernfs_x cgroup_destroy_locked", False),
        ("lockref_get nfs_x lookup_open path_openat", False),
        ("lockref_get", False),
    ],
)  # fmt: skip
def test_a_lockref_is_a_dentrys_where_a_dentrys_function_takes_it(
    frames: str, dentry: bool
) -> None:
    stack = tuple(frames.split())
    for place in (LockPlace("unknown"), LockPlace("memory")):
        found = name_lock("spinlock", place, ("_raw_spin_lock", *stack), EMPTY)
        assert (found.rule is not None) is dentry
    if stack[0].startswith("lockref_"):
        assert (match(rules().counters, stack, {}) is not None) is dentry
    for cache, is_one in (("gfs2_glock", False), ("kmalloc-512", False), ("dentry", True)):
        found = name_lock(
            "spinlock", LockPlace("slab", cache, 88), ("_raw_spin_lock", *stack), EMPTY
        )
        assert (found.rule is not None) is (is_one and (dentry or stack[0] != "fast_dput"))


@pytest.mark.parametrize(
    ("kind", "frames", "name"),
    [
        # A dentry's last reference goes, and its inode joins the list of inodes.
        ("spinlock", "list_lru_add __inode_add_lru iput dentry_unlink_inode __dentry_kill dput",
         "list_lru lock of the inode LRU (sb->s_inode_lru)"),
        ("spinlock", "lock_list_lru_of_memcg list_lru_add list_lru_add_obj d_lru_add dput",
         "list_lru lock of the dentry LRU (sb->s_dentry_lru)"),
        ("spinlock", "list_lru_add xfs_buf_rele_cached xfs_buf_rele", None),
        ("spinlock", "__list_lru_walk_one workingset_x", None),
        ("spinlock", "complete_walk path_openat", None),
        ("spinlock", "complete xfs_buf_ioend", "wait queue lock of a completion"),
        ("spinlock", "process_backlog __napi_poll", None),
        ("spinlock", "srcu_gp_start_if_needed __call_srcu", None),
        ("spinlock", "rcu_nocb_try_bypass call_rcu", None),
        ("spinlock", "rcu_report_qs_rdp rcu_core", "RCU node lock"),
        ("spinlock", "__mark_inode_dirty generic_update_time", None),
        ("spinlock", "wb_queue_work wb_start_writeback", "wb->work_lock (writeback work list)"),
        ("spinlock", "shmem_evict_inode evict", None),
        ("mutex", "jbd2_journal_lock_updates ext4_x", None),
    ],
)  # fmt: skip
def test_a_helper_of_many_names_nothing_by_itself(kind: str, frames: str, name: str | None) -> None:
    found = name_lock(kind, LockPlace("unknown"), ("_raw_spin_lock", *frames.split()), EMPTY)
    assert (found.object if found.rule else None) == name


@pytest.mark.parametrize(
    ("frames", "name"),
    [
        ("wait_on_inode iget_locked", "inode being freed or set up (I_FREEING, I_NEW)"),
        ("__folio_lock filemap_fault", "page lock (PG_locked)"),
        ("shmem_fault __do_fault", None),
        ("truncate_inode_pages_range ext4_evict_inode", None),
        ("f2fs_wait_on_page_writeback f2fs_write_begin", None),
        ("blk_mq_freeze_queue_wait elevator_switch", None),
    ],
)
def test_a_sleep_in_a_helper_of_many_names_nothing(frames: str, name: str | None) -> None:
    found = match(rules().waits, tuple(frames.split()), owners({}))
    assert (found.object if found else None) == name


SELINUX = {
    "memory": MEMORY,
    "layouts": {
        "superblock_security_struct": [[16, "lock", "mutex"], [64, "isec_lock", "spinlock_t"]],
        "inode_security_struct": [[36, "lock", "spinlock_t"]],
    },
}
OF_SUPERBLOCK, OF_INODE = "SELinux: isec_lock of the superblock", "SELinux: isec->lock of the inode"


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (LockPlace("slab", "kmalloc-96", 64), OF_SUPERBLOCK),
        # Another module's part of the object comes first.
        (LockPlace("slab", "kmalloc-96", 72), OF_SUPERBLOCK),
        (LockPlace("slab", "kmalloc-96", 36), None),
        (LockPlace("slab", "kmalloc-96", 16), None),
        (LockPlace("slab", "dentry", 64), None),
        (LockPlace("slab", "lsm_inode_cache", 36), OF_INODE),
        (LockPlace("slab", "lsm_inode_cache", 52), OF_INODE),
        (LockPlace("slab", "lsm_inode_cache", 64), None),
        # Both are taken by the same function.
        (LockPlace("unknown"), None),
    ],
)
def test_the_two_locks_of_selinux_are_told_apart_by_their_objects(
    place: LockPlace, name: str | None
) -> None:
    frames = ("_raw_spin_lock", "inode_doinit_with_dentry", "security_d_instantiate", "d_add")
    found = name_lock("spinlock", place, frames, AddressBook(SELINUX, {}))
    assert (found.object if found.rule else None) == name


def literal(pattern: str) -> str:
    """A function that a pattern of locks.toml matches."""
    text = re.sub(r"\(\?[!=][^)]*\)", "", pattern)
    while "(" in text:
        text = re.sub(r"\(([^()|]*)(?:\|[^()]*)?\)\??", r"\1", text)
    text = re.sub(r"\[([^]])[^]]*\]", r"\1", text.split("|")[0])
    return text.replace(".*", "x").replace("?", "").replace(".+", "x")


LAYOUT_OF_ALL = {
    struct: [[7, "nothing", "spinlock_t"]] for c in rules().locks for struct in c.rule.structs
}


def test_no_rule_names_an_object_of_another_cache() -> None:
    """Each rule's callers take a lock in an object that is something else."""
    tried = 0
    for known in ({}, {"layouts": LAYOUT_OF_ALL}):
        book = AddressBook(known, {})
        for compiled in rules().locks:
            asked = compiled.rule
            for caller in asked.caller:
                below = [literal(p) for p in (*asked.next[:1], *asked.below)]
                frames = (literal(caller), *below)
                kind = asked.kind[0] if asked.kind else "spinlock"
                for place in (
                    LockPlace("slab", "decoy", 48), LockPlace("slab", "decoy", 48, "decoy.owner"),
                    LockPlace("static", symbol="decoy"),
                ):  # fmt: skip
                    found = name_lock(kind, place, frames, book)
                    assert found.rule is None, (frames, place, found)
                    tried += 1
                if known and not (
                    asked.cache and compiled.cache and compiled.cache.fullmatch("kmalloc-64")
                ):
                    found = name_lock(kind, LockPlace("slab", "kmalloc-64", 48), frames, book)
                    assert found.rule is None or "lanefs" in found.object, (frames, found)
            assert compiled.fits(frames, owners({})), frames
    assert tried > 1000
