# SPDX-License-Identifier: GPL-2.0-only
"""What lies in a slab object, by the kernel's types."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fscale.model.catalogue import load_filesystem
from fscale.runner.profilers import btf
from fscale.runner.profilers.btf import StructMember
from fscale.sim import kerneltypes
from fscale.sim.kerneltypes import Types
from fscale.vm.kernel import Kernel

SIZES = {
    "super_block": 1500,
    "similar": 1100,
    "smaller": 1024,
    "inode": 600,
    "rw_semaphore": 40,
    "list_head": 16,
    "big": 65,
    "address_space": 192,
}
MEMBERS = {
    **{
        name: [
            StructMember(0x580, "s_inode_list_lock", "spinlock_t"),
            StructMember(0x588, "s_inodes", ""),
        ]
        for name in ("super_block", "similar", "smaller")
    },
    "my_inode": [
        StructMember(0, "flags", "long unsigned int"),
        StructMember(8, "vfs_inode", "inode"),
        StructMember(8, "vfs_inode.i_mode", "umode_t"),
        StructMember(16, "vfs_inode", ""),  # a union without a name
        StructMember(16, "vfs_inode.i_count", "atomic_t"),
        StructMember(16, "vfs_inode.i_count.counter", "int"),
        StructMember(24, "vfs_inode.i_rwsem", "rw_semaphore"),
        StructMember(24, "vfs_inode.i_rwsem.count", "atomic_long_t"),
        StructMember(48, "vfs_inode.i_rwsem.wait_list", "list_head"),
        StructMember(64, "vfs_inode.i_data", "address_space"),
        StructMember(64, "vfs_inode.i_data.host", ""),
        StructMember(72, "vfs_inode.i_data.nrpages", "long unsigned int"),
        StructMember(608, "list", "list_head"),
        StructMember(608, "list.next", ""),
    ],
}


class MadeUp(btf.Btf):
    def __init__(self) -> None:
        pass

    def members(self, struct_name: str, depth: int = 6) -> Iterator[StructMember]:
        yield from MEMBERS.get(struct_name, [])

    def size(self, struct_name: str) -> int | None:
        return SIZES.get(struct_name)


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (0, "my_inode.flags"),
        (8, "my_inode.vfs_inode.i_mode"),
        (17, "my_inode.vfs_inode.i_count"),
        (24, "my_inode.vfs_inode.i_rwsem"),
        (50, "my_inode.vfs_inode.i_rwsem"),  # a lock is one thing
        (64, "my_inode.vfs_inode.i_data.host"),
        (79, "my_inode.vfs_inode.i_data.nrpages"),
        (616, "my_inode.list"),
    ],
)
def test_the_member_at_an_offset(offset: int, expected: str) -> None:
    types = Types(MadeUp(), {"my_inode_cache": "my_inode"}, [])
    assert types.member("my_inode_cache", offset) == expected


def test_of_a_cache_without_a_struct_the_place_is_told() -> None:
    types = Types(MadeUp(), {}, ["super_block", "smaller"])
    assert types.member("kmalloc-2k", 0x400) == "kmalloc-2k+0x400"
    assert types.member("kmalloc-2k", 0) == "kmalloc-2k"


@pytest.mark.parametrize(
    ("cache", "offset", "structs", "guess"),
    [
        ("kmalloc-2k", 0x580, ["super_block", "smaller"], " (super_block.s_inode_list_lock?)"),
        ("kmalloc-cg-2k", 0x580, ["super_block"], " (super_block.s_inode_list_lock?)"),
        ("kmalloc-2k", 0x588, ["super_block"], ""),  # no lock
        ("kmalloc-4k", 0x580, ["super_block"], ""),  # too large for it
        ("kmalloc-1k", 0x580, ["super_block"], ""),
        ("kmalloc-2k", 0x580, ["super_block", "similar"], ""),  # it may be either
        ("other-2k", 0x580, ["super_block"], ""),
    ],
)
def test_a_lock_in_a_cache_for_anything_is_guessed_where_only_one_fits(
    cache: str, offset: int, structs: list[str], guess: str
) -> None:
    types = Types(MadeUp(), {}, structs)
    assert types.member(cache, offset) == f"{cache}+{offset:#x}{guess}"


class OfModule(MadeUp):
    """Types of a module that the kernel has not."""

    def members(self, struct_name: str, depth: int = 6) -> Iterator[StructMember]:
        if struct_name == "its_inode":
            yield StructMember(0, "flags", "long unsigned int")
            yield StructMember(0x580, "its_lock", "spinlock_t")

    def size(self, struct_name: str) -> int | None:
        return 1500 if struct_name == "its_inode" else None


def test_a_struct_that_a_module_alone_has_is_known_by_its_types() -> None:
    types = Types(MadeUp(), {"its_inode_cache": "its_inode"}, ["its_inode"], [OfModule()])
    assert types.member("its_inode_cache", 4) == "its_inode.flags"
    assert types.member("kmalloc-2k", 0x580) == "kmalloc-2k+0x580 (its_inode.its_lock?)"
    assert types.member("my_inode_cache", 8) == "my_inode_cache+0x8"


def test_a_kernel_without_types_has_none(tmp_path: Path) -> None:
    image = tmp_path / "vmlinux"
    image.write_bytes(b"\x7fELF" + bytes(1000))
    kernel = Kernel("made up", "6.1", image, image, None)
    assert kerneltypes.load(kernel, {"ext4": load_filesystem("ext4")}, [], []) == {}


def test_a_guess_is_of_the_file_system_that_is_mounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class OfTwo(MadeUp):
        def members(self, struct_name: str, depth: int = 6) -> Iterator[StructMember]:
            if self.size(struct_name):
                yield StructMember(0x50, f"of_{struct_name}", "spinlock_t")

        def size(self, struct_name: str) -> int | None:
            return 3000 if struct_name in ("f2fs_sb_info", "btrfs_fs_info") else None

    monkeypatch.setattr(kerneltypes, "btf_of", lambda *_: OfTwo())
    image = tmp_path / "vmlinux"
    image.touch()
    kernel = Kernel("made up", "6.1", image, image, None)
    loaded = {name: load_filesystem(name) for name in ("f2fs", "btrfs", "tmpfs")}
    types = kerneltypes.load(kernel, loaded, [], [])
    guesses = {name: types[name].member("kmalloc-4k", 0x50) for name in types}
    assert guesses == {
        "f2fs": "kmalloc-4k+0x50 (f2fs_sb_info.of_f2fs_sb_info?)",
        "btrfs": "kmalloc-4k+0x50 (btrfs_fs_info.of_btrfs_fs_info?)",
        "tmpfs": "kmalloc-4k+0x50",
    }
