# SPDX-License-Identifier: GPL-2.0-only
"""What mkfs leaves for later: inode tables that a kernel thread would write under a load.

Whatever mkfs.ext4 was told, its defaults and a file system of the user's may have put it off, so
the group descriptors are asked. Of XFS, Btrfs and F2FS nothing is left to do when mkfs ends.
"""

import struct
from pathlib import Path

_SUPERBLOCK = 1024
_MAGIC = 0xEF53
_META_BG = 0x10
_64BIT = 0x80
_CHECKSUMS = 0x10 | 0x400  # uninit_bg, metadata_csum: without them mkfs writes all tables
_ZEROED = 0x4


def unwritten(node: Path) -> int:
    """How many inode tables of an ext4 on a device are not zeroed yet; 0 where it is none.

    1 where the descriptors are spread (meta_bg), and so are not looked at. Raises OSError.
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
