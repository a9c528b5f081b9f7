# SPDX-License-Identifier: GPL-2.0-only
"""Extracts the uncompressed kernel from a bzImage, and type information from kernels and modules.

An emulated guest would take seconds to decompress the kernel. Layout of a bzImage:
Documentation/arch/x86/boot.rst. QEMU starts an ELF file at its PVH entry, which is in an ELF note
(xen/include/public/elfnote.h, XEN_ELFNOTE_PHYS32_ENTRY). Format of type information:
Documentation/bpf/btf.rst.
"""

import struct
from collections.abc import Iterator

from fscale.vm.decompress import decompress

_ELF_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_NOTE = struct.Struct("<III")
_PT_NOTE = 4
_BTF_HEADERS = (24, 32)  # lengths: since Linux 7.1 there is a layout section
_PHYS32_ENTRY = 18
_BUILD_ID = (b"GNU\0", 3)


def extract(bzimage: bytes) -> bytes | None:
    """The ELF file in a bzImage; None if its compression is not supported."""
    start = (bzimage[0x1F1] + 1) * 512
    offset, length = struct.unpack_from("<II", bzimage, 0x248)
    # The last four bytes are the uncompressed size.
    return decompress(bzimage[start + offset : start + offset + length - 4])


def has_pvh_entry(elf: bytes) -> bool:
    """Whether QEMU can start this 64-bit ELF file."""
    return any(owner == b"Xen\0" and kind == _PHYS32_ENTRY for owner, kind, _ in _notes(elf))


def build_id(elf: bytes) -> str | None:
    """The GNU build id of an ELF file, hexadecimal; None without one."""
    found = (body.hex() for owner, kind, body in _notes(elf) if (owner, kind) == _BUILD_ID)
    return next(found, None)


def types_in(elf: bytes) -> bytes | None:
    """The type information (BTF) in an ELF file, which may have lost its section names."""
    for length in _BTF_HEADERS:
        begin = struct.pack("<HBBI", 0xEB9F, 1, 0, length)  # magic, version, flags
        start = elf.find(begin)
        if start >= 0:
            sections = struct.iter_unpack("<2I", elf[start + len(begin) : start + length])
            return elf[start : start + length + max(map(sum, sections))]
    return None


def _notes(elf: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    """(owner, type, content) of each note."""
    head = _ELF_HEADER.unpack_from(elf)
    table, entry_size, entries = head[5], head[9], head[10]
    for number in range(entries):
        kind, _, start, _, _, size, *_ = _PROGRAM_HEADER.unpack_from(
            elf, table + number * entry_size
        )
        if kind != _PT_NOTE:
            continue
        position = start
        while position + _NOTE.size <= start + size:
            name_size, body_size, note = _NOTE.unpack_from(elf, position)
            name = position + _NOTE.size
            body = name + (name_size + 3) // 4 * 4
            yield elf[name : name + name_size], note, elf[body : body + body_size]
            position = body + (body_size + 3) // 4 * 4
