# SPDX-License-Identifier: GPL-2.0-only
"""From what fscale-locks saw to a lock profile: names of addresses, and sums."""

from pathlib import Path
from typing import Any

import pytest

from fscale.analysis.diagnosis import lockprofile
from fscale.runner.profilers import lockmaps
from fscale.runner.profilers.kallsyms import Kallsyms

IMAGE = 0xFFFFFFFF81000000
TABLE = """\
ffffffff81000000 T bpf_trace_run2
ffffffff81000100 T native_queued_spin_lock_slowpath
ffffffff81000200 t _raw_spin_lock
ffffffff81000300 t new_inode
ffffffff81900000 d inode_sb_lock
ffffffffc0000000 t module_function\t[module]
0000000000000000 D hidden
"""
LOCK, STATIC = -131387344270208, IMAGE + 0x900008 - (1 << 64)
STACK = [0xFFFFFFFFC0400000, IMAGE + 4, IMAGE + 0x101, IMAGE + 0x202, IMAGE + 0x303]


@pytest.fixture
def symbols(tmp_path: Path) -> Kallsyms:
    path = tmp_path / "kallsyms"
    path.write_text(TABLE)
    return Kallsyms(path)


def seen(**parts: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"waits": [], "others": [], "locks": [], "stacks": []}
    return {**empty, "active": 1000, "looked": 1000, "lost": 0, **parts}


def read(content: dict[str, Any], symbols: Kallsyms) -> lockprofile.LockProfile:
    return lockprofile.read({"samples": {}, "output": lockmaps.maps(content, symbols)})


def test_an_address_is_named_by_what_it_lies_in(symbols: Kallsyms) -> None:
    assert symbols.function(IMAGE + 0x101) == "native_queued_spin_lock_slowpath+1"
    assert symbols.function(IMAGE + 0x300) == "new_inode+0"
    assert symbols.function(IMAGE - 1) == f"{IMAGE - 1:#x}"
    # A program that is gone has no name, least of all that of a module far below.
    assert symbols.function(0xFFFFFFFFC0400000) == "0xffffffffc0400000"
    assert symbols.data(IMAGE + 0x900000) == "inode_sb_lock"
    assert symbols.data(IMAGE + 0x900008) == "inode_sb_lock+0x8"
    assert symbols.data(IMAGE + 0x901000) is None


@pytest.mark.parametrize(
    ("lines", "image"),
    [
        ("ffff800080000000 T _text\nffff800080010000 T _stext\nffff800083a00000 B _end\n",
         (0xFFFF800080000000, 0xFFFF800083A00000)),
        ("0000000000100000 T _stext\n0000000003a00000 B _end\n", (0x100000, 0x3A00000)),
        # A module may have such names too.
        ("c000000000000000 T _text\nc000000003a00000 B _end\nc008000000010000 d _end [m]\n",
         (0xC000000000000000, 0xC000000003A00000)),
        ("ffff800080000000 T _text\n", None),
        ("0000000000000000 T _text\n0000000000000000 B _end\n", None),
        ("ffff800080000000 B _end\nffff800080010000 T _text\n", None),
    ],
)  # fmt: skip
def test_where_the_image_is(tmp_path: Path, lines: str, image: tuple[int, int] | None) -> None:
    (tmp_path / "kallsyms").write_text(lines)
    assert Kallsyms(tmp_path / "kallsyms", tmp_path / "none").image == image


@pytest.mark.parametrize(
    ("iomem", "end"),
    [
        ("00001000-0009fbff : System RAM\n  01000000-02276f47 : Kernel code\n"
         "  02400000-02e0cfff : Kernel rodata\n  03b32000-03c55fff : Kernel bss\n", 0x83C56000),
        ("00000000-00000000 : System RAM\n  00000000-00000000 : Kernel code\n", None),
        ("00001000-0009fbff : System RAM\n", None),
    ],
)  # fmt: skip
def test_where_kallsyms_lists_no_data_physical_memory_says_where_the_image_ends(
    tmp_path: Path, iomem: str, end: int | None
) -> None:
    (tmp_path / "kallsyms").write_text("ffff800081000000 T _text\nffff800082276f48 T _etext\n")
    (tmp_path / "iomem").write_text(iomem)
    start = 0xFFFF800081000000
    image = end and (start, start - 0x81000000 + end)
    assert Kallsyms(tmp_path / "kallsyms", tmp_path / "iomem").image == image


def test_what_lies_behind_the_image_has_none_of_its_symbols(tmp_path: Path) -> None:
    (tmp_path / "kallsyms").write_text(
        "c000000000000000 T _text\nc000000002000f00 d rename_lock\nc000000002001000 B _end\n"
        "c008000000010000 d lanefs_lock [lanefs]\n"
    )
    symbols = Kallsyms(tmp_path / "kallsyms")
    assert symbols.data(0xC000000002000F04) == "rename_lock+0x4"
    assert symbols.data(0xC000000002001000) is None
    assert symbols.data(0xC000000002001040) is None
    assert symbols.data(0xC008000000010008) == "lanefs_lock+0x8"


def test_a_stack_begins_with_the_lock_primitive(symbols: Kallsyms) -> None:
    waits = [[LOCK, 1, 0, 10, 5, 2, 3000, 1800], [LOCK, 1, 3, 11, 5, 1, 2500, 2500]]
    found = read(seen(waits=waits, stacks=[[5, [f - (1 << 64) for f in STACK]]]), symbols)
    (lock,) = found.locks
    assert dict(lock.callers) == {
        ("native_queued_spin_lock_slowpath", "_raw_spin_lock", "new_inode"): 3000 + 8 * 2500
    }
    assert (lock.count, lock.wait_ns, lock.max_ns) == (2 + 8, 3000 + 8 * 2500, 2500)
    assert lock.histogram == {1 << 10: 2, 1 << 11: 8}
    assert (lock.one_in, found.active_ns, found.full) == (8, 1000, False)


def test_waits_of_the_same_kind_add_up(symbols: Kallsyms) -> None:
    # One row for each bucket; two stacks may be told as one.
    waits = [[LOCK, 1, 0, 10, 5, 2, 3000, 1800], [LOCK, 1, 0, 12, 5, 1, 5000, 5000]]
    (lock,) = read(seen(waits=waits, stacks=[[5, []]]), symbols).locks
    assert (lock.count, lock.wait_ns, lock.max_ns) == (3, 8000, 5000)


def test_a_wait_without_a_stack_is_counted(symbols: Kallsyms) -> None:
    (lock,) = read(seen(waits=[[LOCK, 1, 0, 10, -17, 2, 3000, 1800]]), symbols).locks
    assert (lock.count, dict(lock.callers)) == (2, {(): 3000})


def test_what_was_seen_in_turns_is_scaled_to_the_whole_window(symbols: Kallsyms) -> None:
    waits = [[LOCK, 1, 0, 10, 5, 2, 3000, 1800], [LOCK, 1, 3, 11, 5, 1, 2500, 2500]]
    content = seen(waits=waits, stacks=[[5, STACK]], others=[["kworker/0:1", 70]])
    (all_the_time,) = read(content, symbols).locks
    found = read({**content, "looked": 250}, symbols)
    (lock,) = found.locks
    assert (found.active_ns, found.recorded_share) == (1000, 0.25)
    assert (lock.count, lock.wait_ns) == (4 * (2 + 8), 4 * (3000 + 8 * 2500))
    assert (lock.max_ns, lock.one_in) == (2500, 8)
    assert lock.histogram == {1 << 10: 8, 1 << 11: 32}
    assert list(lock.callers.values()) == [lock.wait_ns]
    assert found.others == {"kworker/0:1": 280}
    assert lock.error == pytest.approx(all_the_time.error, rel=1e-3)


@pytest.mark.parametrize("looked", [0, 1000, 2000])
def test_nothing_is_scaled_where_no_turn_was_seen(looked: int, symbols: Kallsyms) -> None:
    waits = [[LOCK, 1, 0, 10, -1, 2, 3000, 1800]]
    (lock,) = read(seen(waits=waits, looked=looked), symbols).locks
    assert lock.wait_ns == 3000


def test_a_wait_that_was_lost_is_said(symbols: Kallsyms) -> None:
    assert read(seen(lost=1), symbols).full


def test_kernel_threads_are_kept_apart(symbols: Kallsyms) -> None:
    found = read(seen(others=[["kworker/0:1", 70], ["jbd2/vda1-8", 7]]), symbols)
    assert found.others == {"kworker/0:1": 70, "jbd2/vda1-8": 7}
    assert found.locks == []


def test_the_slab_cache_of_a_lock_is_told(symbols: Kallsyms) -> None:
    content = seen(
        waits=[[LOCK, 1, 0, 10, -1, 2, 3000, 1800], [STATIC, 1, 0, 10, -1, 1, 1000, 1000]],
        locks=[[LOCK, -512, -4096, 256, "kmalloc-256"], [STATIC, -64, 0, 0, ""]],
    )
    memory = {
        "direct_map": (1 << 64) - (1 << 50),
        "page_array": 0,
        "page_bits": 12,
        "page_size": 64,
    }
    profile = {"samples": {}, "memory": memory, "output": lockmaps.maps(content, symbols)}
    places = {p for lock in lockprofile.read(profile).locks for p in lock.places}
    assert {place.kind for place in places} == {"slab", "static"}
    assert lockmaps.addresses(content) == {LOCK % (1 << 64), STATIC % (1 << 64)}
