# SPDX-License-Identifier: GPL-2.0-only
"""What every metadata block of lanefs begins with (lanefs/format.h), read and sealed in Python."""

import struct

BLOCK = 4096
HEADER = 64
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
