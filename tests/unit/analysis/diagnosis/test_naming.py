# SPDX-License-Identifier: GPL-2.0-only
"""The rules, and that an address can refuse what a stack suggests."""

import json
from typing import Any

import pytest

from fscale.analysis.diagnosis import lockprofile
from fscale.analysis.diagnosis.lockprofile import kind_of
from fscale.analysis.diagnosis.naming import AddressBook, By, LockPlace, name_lock
from fscale.analysis.diagnosis.rules import _compile, owners, rules, table3

DIRECT, PAGES = 0xFFFF888000000000, 0xFFFFEA0000000000
MEMORY = {"direct_map": DIRECT, "page_array": PAGES, "page_bits": 12, "page_size": 64}
LAYOUTS = {
    "ext4_inode_info": [
        [424, "vfs_inode.i_rwsem", "rw_semaphore"],
        [96, "i_data_sem", "rw_semaphore"],
    ],
    "super_block": [
        [1032, "s_vfs_rename_mutex", "mutex"],
        [1344, "s_inode_list_lock", "spinlock_t"],
    ],
    "journal_s": [[64, "j_state_lock", "rwlock_t"], [1216, "j_list_lock", "spinlock_t"]],
}
CACHES = {1: ("ext4_inode_cache", 1120), 2: ("kmalloc-2k", 2048), 3: ("dentry", 192)}


def signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def address_in(cache: int, offset: int, slab_frame: int = 1000) -> int:
    """The third object of a slab of that cache."""
    return DIRECT + (slab_frame << 12) + 2 * CACHES[cache][1] + offset


def book(cache: int, address: int, slab_frame: int = 1000) -> AddressBook:
    key = str(signed(address))
    maps: dict[str, Any] = {
        "@page": {key: signed(PAGES + slab_frame * 64)},
        "@cache": {key: cache},
        "@cache_name": {str(n): name for n, (name, _) in CACHES.items()},
        "@cache_size": {str(n): size for n, (_, size) in CACHES.items()},
    }
    profile = {
        "memory": MEMORY,
        "cache_structs": {"ext4_inode_cache": "ext4_inode_info"},
        "layouts": LAYOUTS,
    }
    return AddressBook(profile, maps)


def named(kind: str, stack: str, cache: int | None = None, offset: int = 0) -> tuple[str, By]:
    frames = tuple(stack.split())
    if cache is None:
        name = name_lock(kind, LockPlace("unknown"), frames, AddressBook({}, {}))
    else:
        address = address_in(cache, offset)
        found = book(cache, address)
        name = name_lock(kind, found.place(address), frames, found)
    return name.object, name.by


FILE, DIRECTORY = (f"inode->i_rwsem of the shared {what}" for what in ("file", "directory"))
CREATE = "rwsem_down_write_slowpath down_write path_openat do_filp_open"


def test_a_file_system_given_by_path_owns_its_functions() -> None:
    frames = ("down_write", "minefs_sync", "vfs_fsync_range")
    of_btrfs = {"object": "a lock", "scope": "File", "caller": [".*"], "fs": "btrfs"}
    of_mine = {**of_btrfs, "fs": "minefs"}
    known = AddressBook({"functions": {"minefs": ["minefs_"]}}, {}).owners
    assert _compile(of_btrfs).fits(frames, owners({}))
    assert not _compile(of_btrfs).fits(frames, known)
    assert _compile(of_mine).fits(frames, known)
    assert not _compile(of_mine).fits(("btrfs_sync_file", "vfs_fsync_range"), known)


def test_all_25_bottlenecks_are_there_in_the_papers_order() -> None:
    rows = table3()
    assert len(rows) == 25
    by_fs: dict[str, int] = {}
    for row in rows.values():
        by_fs[row.fs] = by_fs.get(row.fs, 0) + 1
    assert by_fs == {"VFS": 5, "btrfs": 5, "ext4": 5, "F2FS": 4, "tmpfs": 3, "XFS": 3}


def test_every_bottleneck_has_a_rule_and_every_rule_a_bottleneck_that_exists() -> None:
    every = (*rules().locks, *rules().waits, *rules().counters)
    used = {c.rule.table3 for c in every if c.rule.table3}
    assert used == set(table3())


def test_address_and_stack_agree() -> None:
    assert named("rwsem write", CREATE, 1, 424) == (DIRECTORY, By.ADDRESS_AND_STACK)


def test_the_address_refuses_the_stack() -> None:
    """The same callers, but the lock is another member of the inode."""
    assert named("rwsem write", CREATE, 1, 96) == ("ext4_inode_info->i_data_sem", By.ADDRESS)


def test_a_heap_object_is_confirmed_by_its_offset() -> None:
    stack = "__mutex_lock do_renameat2 __x64_sys_rename"
    assert named("mutex", stack, 2, 1032) == ("sb->s_vfs_rename_mutex", By.ADDRESS_AND_STACK)
    assert named("mutex", stack, 2, 1040) == ("do_renameat2", By.NOTHING)
    assert named("mutex", stack) == ("sb->s_vfs_rename_mutex", By.STACK)


def test_what_only_the_address_tells_apart_is_not_guessed() -> None:
    stack = "native_queued_spin_lock_slowpath _raw_spin_lock jbd2_journal_dirty_metadata"
    assert named("spinlock", stack) == ("jbd2_journal_dirty_metadata", By.NOTHING)
    assert named("spinlock", stack, 2, 1216) == ("journal->j_list_lock", By.ADDRESS_AND_STACK)


FULL_DOMAIN = (
    "lanefs: a full domain has all waiting data written (bdi->wb_switch_rwsem, sb->s_sync_lock)"
)
SLOW_PATHS = {
    "mutex": "__mutex_lock.constprop.0",
    "spinlock": "native_queued_spin_lock_slowpath _raw_spin_lock",
    "rwsem write": "rwsem_down_write_slowpath down_write",
}


@pytest.mark.parametrize(
    ("kind", "frames", "name"),
    [
        (
            "mutex",
            "lanefs_inode_alloc lanefs_inode_new lanefs_create_in",
            "lanefs: shard->sh_mutex (inode and orphan bits)",
        ),
        ("mutex", "lanefs_buf_join lanefs_inode_journal", "lanefs: buf->b_mutex (metadata block)"),
        (
            "spinlock",
            "lanefs_handle_start lanefs_create_in",
            "lanefs: journal->j_lock (running transaction)",
        ),
        (
            "spinlock",
            "lanefs_buf_join lanefs_inode_journal",
            "lanefs: txn->t_lock (blocks of the transaction)",
        ),
        ("rwsem write", "lanefs_write_iter vfs_write", FILE),
        (
            "rwsem write",
            "lanefs_delalloc_reserve lanefs_iomap_begin",
            "lanefs: lanefs_inode->li_tree_sem (extent map)",
        ),
        (
            "rwsem write",
            "sync_inodes_sb lanefs_flush_delayed lanefs_page_mkwrite",
            FULL_DOMAIN,
        ),
        ("mutex", "sync_inodes_sb lanefs_retry_alloc lanefs_delalloc_reserve", FULL_DOMAIN),
        ("rwsem write", "sync_inodes_sb sync_inodes_one_sb ksys_sync", "bdi->wb_switch_rwsem"),
        ("mutex", "sync_inodes_sb sync_inodes_one_sb ksys_sync", "sb->s_sync_lock"),
    ],
)
def test_locks_of_lanefs_are_named_by_their_callers(kind: str, frames: str, name: str) -> None:
    assert named(kind, f"{SLOW_PATHS[kind]} {frames}") == (name, By.STACK)


@pytest.mark.parametrize(
    ("kind", "frames", "member", "name"),
    [
        (
            "rwsem read",
            "down_read lanefs_write_iter vfs_write",
            "lanefs_inode.li_collect_sem",
            "lanefs: lanefs_inode->li_collect_sem (ablate=svp)",
        ),
        (
            "rwsem write",
            "down_write lanefs_write_iter vfs_write",
            "lanefs_inode.vfs_inode.i_rwsem",
            FILE,
        ),
        (
            "spinlock",
            "_raw_spin_lock lanefs_stream_take lanefs_gc_work",
            "lanefs_domain.d_stream.st_lock",
            "lanefs: domain->d_stream (ablate=dws)",
        ),
        (
            "spinlock",
            "_raw_spin_lock lanefs_segments_count lanefs_free_blocks",
            "lanefs_domain.d_segments_lock",
            "lanefs: domain->d_segments_lock (ablate=lsu)",
        ),
        (
            "mutex",
            "__mutex_lock lanefs_victim_take lanefs_gc_work",
            "lanefs_domain.d_victims_mutex",
            "lanefs: domain->d_victims_mutex (ablate=cvs)",
        ),
    ],
)
def test_a_lock_of_lanefs_is_told_from_others_of_its_callers_by_its_address(
    kind: str, frames: str, member: str, name: str
) -> None:
    struct = member.partition(".")[0]
    place = LockPlace("slab", cache=struct, offset=8, member=member)
    found = name_lock(kind, place, tuple(frames.split()), AddressBook({}, {}))
    assert (found.object, found.by) == (name, By.ADDRESS_AND_STACK)


def test_without_an_address_a_writer_of_lanefs_waits_for_the_inode() -> None:
    assert named("rwsem write", "down_write lanefs_write_iter vfs_write") == (FILE, By.STACK)


def test_a_static_lock_is_not_in_a_slab() -> None:
    frames = ("_raw_spin_lock", "d_move", "vfs_rename")
    empty = AddressBook({}, {})
    static = name_lock("spinlock", LockPlace("static"), frames, empty)
    assert (static.object, static.by) == ("rename_lock", By.ADDRESS_AND_STACK)
    other = name_lock("spinlock", LockPlace("static", symbol="mount_lock"), frames, empty)
    assert (other.object, other.by) == ("mount_lock", By.ADDRESS)
    assert named("spinlock", " ".join(frames), 3, 88)[0] != "rename_lock"


@pytest.mark.parametrize(
    ("kind", "stack", "expected"),
    [
        ("rwsem write", "down_write shmem_file_write_iter vfs_write", FILE),
        ("rwsem write", "down_write ext4_buffered_write_iter vfs_write", FILE),
        ("rwsem write", "down_write btrfs_inode_lock btrfs_buffered_write", FILE),
        ("rwsem write", "down_write xfs_ilock xfs_file_buffered_write vfs_write", FILE),
        (
            "rwsem read",
            "down_read xfs_ilock xfs_file_buffered_read",
            "inode->i_rwsem of the shared file (read)",
        ),
        (
            "rwsem write",
            "down_write btrfs_tree_lock_nested btrfs_lock_root_node",
            "tree locks (extent_buffer->lock)",
        ),
        ("rwsem write", "down_write lock_rename do_renameat2", DIRECTORY),
        ("mutex", "__mutex_lock lock_rename do_renameat2", "sb->s_vfs_rename_mutex"),
        (
            "rwlock read",
            "queued_read_lock_slowpath start_this_handle jbd2__journal_start",
            "journal->j_state_lock",
        ),
        ("mutex", "__mutex_lock ext4_orphan_del ext4_evict_inode", "sbi->s_orphan_lock"),
        (
            "semaphore",
            "__down_common __down down xfs_buf_lock xfs_buf_get_map xfs_read_agi",
            "buffer lock of the AGI (b_sema)",
        ),
        (
            "spinlock",
            "_raw_spin_lock loop_queue_rq blk_mq_dispatch",
            "lo->lo_work_lock (loop device)",
        ),
        ("rwsem read", "down_read f2fs_lock_op f2fs_create", "sbi->cp_rwsem (checkpoint)"),
    ],
)
def test_names_that_developers_use(kind: str, stack: str, expected: str) -> None:
    assert named(kind, stack) == (expected, By.STACK)


def test_a_caller_is_matched_as_a_whole_name() -> None:
    assert named("rwsem write", "down_write path_openat_other do_filp_open")[1] is By.NOTHING


def test_flags_become_kinds() -> None:
    kinds = [kind_of(f) for f in (0, 1, 2, 3, 4, 5, 8, 18, 20, 32, 33)]
    assert kinds == [
        "semaphore", "spinlock", "rwsem read", "rwlock read", "rwsem write", "rwlock write",
        "rt-mutex", "percpu-rwsem read", "percpu-rwsem write", "mutex", "mutex",
    ]  # fmt: skip


def profile_of(waits: dict[str, dict[str, int]], **maps: Any) -> dict[str, Any]:
    lines: list[dict[str, Any]] = [{"type": "stats", "data": {"@wait": waits}}]
    lines += [{"type": "map", "data": {f"@{k}": v}} for k, v in maps.items()]
    return {"output": "\n".join(map(json.dumps, lines))}


@pytest.mark.parametrize(
    ("in_slab", "nowhere", "by"),
    [
        (99, 1, By.ADDRESS_AND_STACK), (90, 10, By.ADDRESS_AND_STACK), (89, 11, By.STACK),
        (1, 99, By.STACK), (0, 100, By.STACK), (100, 0, By.ADDRESS_AND_STACK),
    ],
)  # fmt: skip
@pytest.mark.parametrize("first", [0, 1])
def test_one_lock_with_an_address_does_not_vouch_for_the_others(
    in_slab: int, nowhere: int, by: By, first: int
) -> None:
    known, unknown = (signed(address_in(1, 424, frame)) for frame in (1000, 2000))
    create = CREATE.replace(" ", "\n")
    waits = [
        (f"4,{known},{create}\n", {"count": 1, "total": in_slab}),
        (f"4,{unknown},{create}\n", {"count": 1, "total": nowhere}),
    ]
    content = profile_of(
        {key: value for key, value in waits[:: -1 if first else 1] if value["total"]},
        page={str(known): signed(PAGES + 1000 * 64)},
        cache={str(known): 1},
        cache_name={"1": CACHES[1][0]},
        cache_size={"1": CACHES[1][1]},
        active=1000,
    )
    content |= {"memory": MEMORY, "layouts": LAYOUTS}
    content["cache_structs"] = {"ext4_inode_cache": "ext4_inode_info"}
    (lock,) = lockprofile.read(content).locks
    assert lock.name.object == DIRECTORY
    assert lock.name.by is by
    assert lock.by_stack == pytest.approx(nowhere / 100)
