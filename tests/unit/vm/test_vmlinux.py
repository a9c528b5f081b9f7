# SPDX-License-Identifier: GPL-2.0-only
"""The uncompressed kernel in a bzImage, and whether QEMU can start it."""

import gzip
import lzma
import shutil
import struct
import subprocess

import pytest

from fscale.model.paths import TOOL_PATH
from fscale.vm import vmlinux


def elf(*notes: tuple[bytes, int, bytes]) -> bytes:
    """A 64-bit ELF file with one PT_LOAD segment and one PT_NOTE segment of (owner, type, body)."""

    def padded(data: bytes) -> bytes:
        return data + bytes(-len(data) % 4)

    body = b"".join(
        struct.pack("<III", len(owner), len(text), kind) + padded(owner) + padded(text)
        for owner, kind, text in notes
    )
    start = 64 + 2 * 56
    head = struct.pack(
        *("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, 0),
        *(64, 0, 0, 64, 56, 2, 0, 0, 0),
    )
    load = struct.pack("<IIQQQQQQ", 1, 5, start, 0, 0, len(body), len(body), 4096)
    note = struct.pack("<IIQQQQQQ", 4, 4, start, 0, 0, len(body), len(body), 4)
    return head + load + note + body


def bzimage(payload: bytes, size: int) -> bytes:
    """A bzImage with three setup sectors, whose protected-mode part has the payload at 0x40."""
    data = bytearray(4 * 512)
    data[0x1F1] = 3
    struct.pack_into("<II", data, 0x248, 0x40, len(payload) + 4)
    return bytes(data) + bytes(0x40) + payload + struct.pack("<I", size) + b"what follows"


def zstd(data: bytes) -> bytes:
    tool = shutil.which("zstd", path=TOOL_PATH)
    if tool is None:
        pytest.skip("zstd is not installed")
    return subprocess.run([tool, "-q"], input=data, capture_output=True, check=True).stdout


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, zstd])
def test_the_kernel_is_unpacked(compress):
    kernel = elf((b"Xen\0", 18, bytes(8)))
    assert vmlinux.extract(bzimage(compress(kernel), len(kernel))) == kernel


def test_a_compression_that_is_not_known_is_no_error():
    assert vmlinux.extract(bzimage(b"\x02\x21\x4c\x18 lz4", 100)) is None


@pytest.mark.parametrize(
    ("notes", "starts"),
    [
        ([(b"Linux\0", 1, b"OPEN\0"), (b"Xen\0", 6, b"linux\0"), (b"Xen\0", 18, bytes(8))], True),
        ([(b"Xen\0", 6, b"linux\0"), (b"GNU\0", 18, bytes(8))], False),
        ([], False),
    ],
)
def test_the_pvh_entry_is_found(notes, starts):
    assert vmlinux.has_pvh_entry(elf(*notes)) == starts


@pytest.mark.parametrize("layout", [(), (30, 8)])
def test_types_are_found_under_either_header(layout: tuple[int, ...]) -> None:
    sections = (0, 20, 20, 10, *layout)
    length = 8 + 4 * len(sections)
    header = struct.pack(f"<HBBI{len(sections)}I", 0xEB9F, 1, 0, length, *sections)
    types = header + bytes(range(1, 39 if layout else 31))
    assert vmlinux.types_in(b"before" + types + b"behind") == types
    assert vmlinux.types_in(b"none") is None
