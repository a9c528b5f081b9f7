# SPDX-License-Identifier: GPL-2.0-only
"""Counts uninitialised inode tables of ext4, which a kernel thread would write during a load.

The defaults of mkfs.ext4, or the user, may have deferred their initialisation, so the group
descriptors are read. The mkfs of XFS, Btrfs and F2FS defers nothing.
"""

import struct
from pathlib import Path

_SUPERBLOCK = 1024
_MAGIC = 0xEF53
_META_BG = 0x10
_64BIT = 0x80
_CHECKSUMS = 0x10 | 0x400  # uninit_bg, metadata_csum; without either, mkfs writes all tables
_ZEROED = 0x4


def unwritten(node: Path) -> int:
    """Count the inode tables of an ext4 that are not zeroed yet; 0 if it is not an ext4.

    With meta_bg the descriptors are spread over the device and not read; the result is then 1.

    Raises:
        OSError: the device cannot be read.
    """
    with node.open("rb") as file:
        file.seek(_SUPERBLOCK)
        block = file.read(1024)
        if len(block) < 1024 or _u16(block, 0x38) != _MAGIC:
            return 0
        incompatible, read_only = _u32(block, 0x60), _u32(block, 0x64)
        if not read_only & _CHECKSUMS:
            return 0
        if incompatible & _META_BG:
            return 1
        wide = bool(incompatible & _64BIT)
        blocks = _u32(block, 0x04) + (_u32(block, 0x150) << 32 if wide else 0)
        first, per_group = _u32(block, 0x14), _u32(block, 0x20)
        size = (_u16(block, 0xFE) if wide else 0) or 32
        groups = -(-(blocks - first) // per_group)
        file.seek((first + 1) * (1024 << _u32(block, 0x18)))
        table = file.read(groups * size)
    flags = (_u16(table, place + 0x12) for place in range(0, len(table) - size + 1, size))
    return sum(not flag & _ZEROED for flag in flags)


def _u16(data: bytes, place: int) -> int:
    return int(struct.unpack_from("<H", data, place)[0])


def _u32(data: bytes, place: int) -> int:
    return int(struct.unpack_from("<I", data, place)[0])
