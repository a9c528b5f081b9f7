# SPDX-License-Identifier: GPL-2.0-only
"""What every metadata block of lanefs begins with (lanefs/format.h), read and sealed in Python."""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

BLOCK = 4096
HEADER = 64
BITMAP_BITS = (BLOCK - HEADER) * 8
"""of a bitmap's block; a block of the block bitmap stands for an allocation group"""
_INODES, OWNERS = 15, 256
"""in a block of the inode table, of the owner table"""
LOG = 1
"""the feature bit, in bytes 88 to 95 of block 0"""
MAGIC = {
    "super": 0x454E414C,
    "domain": 0x4D4F444C,
    "ibitmap": 0x504D424C,
    "obitmap": 0x504D4F4C,
    "bbitmap": 0x504B424C,
    "itable": 0x4154494C,
    "owners": 0x4E574F4C,
    "node": 0x444F4E4C,
    "extents": 0x5458454C,
    "dirents": 0x5249444C,
    "symlink": 0x4D59534C,
    "xattr": 0x5441584C,
    "descriptor": 0x53444A4C,
    "revoke": 0x56524A4C,
    "commit": 0x4D434A4C,
}
_KINDS = {magic: kind for kind, magic in MAGIC.items()}


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE = _crc_table()


def crc32c(data: bytes | bytearray) -> int:
    """CRC32C as the kernel's crc32c(~0, data): the result is not inverted."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc


def renumbered(block: bytearray, numbers: Iterable[int]) -> Iterator[bytes]:
    """Copies of a metadata block with other block numbers, and the right checksums.

    A checksum is linear: what a bit of the number changes in it is the same in all copies.
    """
    block[4:16] = bytes(12)
    changes, none = [], crc32c(block)
    for bit in range(48):
        struct.pack_into("<Q", block, 8, 1 << bit)
        changes.append(crc32c(block) ^ none)
    for number in numbers:
        crc = none
        for bit in range(number.bit_length()):
            if number >> bit & 1:
                crc ^= changes[bit]
        struct.pack_into("<IQ", block, 4, crc, number)
        yield bytes(block)


def seal(block: bytearray) -> None:
    """Put the right checksum into a metadata block."""
    assert len(block) == BLOCK
    block[4:8] = bytes(4)
    block[4:8] = struct.pack("<I", crc32c(block))


def kind_of(block: bytes | bytearray) -> str | None:
    """The kind of a metadata block, by its magic; None: it is none."""
    (magic,) = struct.unpack_from("<I", block)
    return _KINDS.get(magic)


def own_number(block: bytes | bytearray) -> int:
    """The block number that the header says; in a copy in a journal that of its place."""
    (number,) = struct.unpack_from("<Q", block, 8)
    return int(number)


@dataclass(frozen=True)
class Layout:
    """Where the block bitmap and the data of a domain lie, in blocks."""

    base: int
    blocks: int
    """of the domain"""
    bbitmap: int
    groups: int
    """blocks of the block bitmap"""
    data: int


def layout(superblock: bytes | bytearray) -> Layout:
    """The layout of domain 0, by block 0 (lanefs_domain_layout())."""
    base, size, inodes, _, journal = struct.unpack_from("<QQQII", superblock, 104)
    (incompat,) = struct.unpack_from("<Q", superblock, 88)
    groups = -(-size // BITMAP_BITS)
    bbitmap = base + 2 + journal + 2 * -(-inodes // BITMAP_BITS)
    owners = -(-size // OWNERS) if incompat & LOG else 0
    return Layout(base, size, bbitmap, groups, bbitmap + groups + -(-inodes // _INODES) + owners)


def read_layout(image: Path) -> Layout:
    """The same of a file system."""
    with image.open("rb") as file:
        return layout(file.read(BLOCK))
