# SPDX-License-Identifier: GPL-2.0-only
"""fsck.lanefs against damaged images, all checksums mended.

Entries of directories, directories in wrong places, and what lies in the way of /lost+found.
"""

import stat
import struct

import pytest

from tests.support import lanefs_image as lanefs
from tests.support.lanefs_fsck import ALL, ALL_AND_FOUND, SIZE, entry_offset, found_and_mended


@pytest.mark.parametrize(
    ("field", "offset", "size", "value"),
    [
        ("key", 0, 8, 1 << 40),
        ("inode", 8, 8, 0),
        ("inode", 8, 8, 5),
        ("inode", 8, 8, lanefs.ino_of(2, 599)),
        ("inode", 8, 8, lanefs.ino_of(200, 40)),
        ("inode", 8, 8, (1 << 64) - 1),
        ("inode", 8, 8, 1),
        ("length", 16, 2, 0),
        ("length", 16, 2, 4096),
        ("name's length", 18, 2, 0),
        ("name's length", 18, 2, 300),
        ("name's length", 18, 2, 7),
        ("type", 20, 1, 2),
        ("type", 20, 1, 200),
        ("reserved", 21, 1, 1),
        ("slash", 25, 1, ord("/")),
        ("zero", 25, 1, 0),
        ("another name", 25, 1, ord("z")),
    ],
)
@pytest.mark.parametrize("where", ["own", "remote"])
def test_entry_field(copy, where, field, offset, size, value):
    image, named = copy
    if where == "own":
        number, at = entry_offset(image, named["dir1"], b"small")
    else:
        remote = struct.pack("<Q", named["dir1"]) + b"linked-too"
        span = lanefs.ino_of(0, lanefs.SPAN_INDEX + image.hash(remote) % image.span_dirs)
        number, at = entry_offset(image, span, remote)
        offset += 8 if offset > 24 else 0
    image.poke(number, at + offset, size, value)
    # What the names say is whole where only the index is made anew.
    found_and_mended(image, left=ALL if where == "remote" else "clean")


def test_directory_within_itself(copy):
    """nested and deep are each other's only parent."""
    image, named = copy
    number, at = entry_offset(image, named["dir1"], b"nested")
    image.poke(number, at + 8, 8, named["empty"])
    image.poke(number, at + 20, 1, 1)
    number, at = entry_offset(image, named["deep"], b"linked-three")
    image.poke(number, at + 8, 8, named["nested"])
    image.poke(number, at + 20, 1, 2)
    found_and_mended(image, "its own ancestor", left=ALL_AND_FOUND)


def test_second_name_of_a_directory(copy):
    image, named = copy
    number, at = entry_offset(image, named["dir1"], b"small")
    image.poke(number, at + 8, 8, named["dir0"])
    image.poke(number, at + 20, 1, 2)
    found_and_mended(image, "a second name")


def test_the_same_name_twice(copy):
    image, named = copy
    number, at = entry_offset(image, named["dir1"], b"small")
    key = image.peek(number, at, 8)
    block = image.block(number)
    end = struct.unpack_from("<H", block, 52)[0]
    entry = bytearray(block[at : at + 32])
    struct.pack_into("<Q", entry, 0, key + 1)
    block[at + 32 : end + 32] = block[at:end]
    block[at + 32 : at + 64] = entry
    struct.pack_into("<HH", block, 50, struct.unpack_from("<H", block, 50)[0] + 1, end + 32)
    image.put(number, block)
    found_and_mended(image, "has the same name")


def test_entries_out_of_order(copy):
    image, named = copy
    # Which entry is the last one of its leaf depends on the image's hash seed.
    for name in range(200):
        number, at = entry_offset(image, named["big"], f"{name:03d}x".encode())
        length = image.peek(number, at + 16, 2)
        block = image.block(number)
        entry, following = block[at : at + length], block[at + length : at + 2 * length]
        if len(following.rstrip(b"\0")) > 100:
            break
    else:
        raise AssertionError("each leaf has one entry")
    block[at : at + 2 * length] = following + entry
    image.put(number, block)
    found_and_mended(image, "is out of order")


def test_missing_remote_entries(copy):
    """All span directories of a domain are empty: they are made anew from the names."""
    image, _ = copy
    for n in range(16):
        span = lanefs.ino_of(2, lanefs.SPAN_INDEX + n)
        for name in ("level", "count", "size", "blocks"):
            image.poke_inode(span, name, 0)
        block, at = image.slot(span)
        image.poke(block, at + 128, 8, 0)
    found_and_mended(image, "has no remote entry", left=ALL)


def forget_name(image, ino):
    """Before finish(): an inode of the root's domain has no name."""
    root = image.node(1)
    root.entries = [entry for entry in root.entries if entry[1] != ino]


@pytest.mark.parametrize("mode", [stat.S_IFREG, stat.S_IFLNK, stat.S_IFIFO])
@pytest.mark.parametrize("domain", [0, 1])
def test_lost_and_found_is_no_directory(directory, mode, domain):
    """It makes room, and is then found without a name itself."""
    image = lanefs.make(directory / "image", SIZE, "-d", 2, "-i", 600)
    target = b"somewhere" if mode == stat.S_IFLNK else b""
    other = image.create(1, "lost+found", domain, mode | 0o644, target=target)
    lost = image.create(1, "file", 0, stat.S_IFREG | 0o644)
    forget_name(image, lost.ino)
    image.finish()
    _, mended = found_and_mended(
        image, "no directory names it", left=f"{1 + (mode == stat.S_IFREG)} files, 2 directories"
    )
    assert f"inode {other.ino}: it is named /lost+found, but" in mended
    written = image.path.read_bytes()
    assert all(f"#{inode.ino}".encode() in written for inode in (other, lost))


def test_lost_and_found_names_no_inode(copy):
    """While another inode is to go there."""
    image, named = copy
    number, at = entry_offset(image, named["dir1"], b"empty")
    image.poke(number, at + 8, 8, named["small"])
    number, at = entry_offset(image, named["root"], b"short-link")
    block = image.block(number)
    block[at + 24 : at + 34] = b"lost+found"
    struct.pack_into("<QQ", block, at, image.hash(b"lost+found") << 7, lanefs.ino_of(200, 40))
    block[at + 20] = 2
    image.put(number, block)
    found_and_mended(image, left=ALL_AND_FOUND)


def test_names_in_lost_and_found_are_taken(directory):
    """By other inodes: those that are lost get names beside them."""
    image = lanefs.make(directory / "image", SIZE, "-d", 2, "-i", 600)
    found = image.create(1, "lost+found", 1, stat.S_IFDIR | 0o700)
    lost = [image.create(1, f"{n}", 0, stat.S_IFREG | 0o644).ino for n in range(3)]
    for name in (f"#{lost[0]}", f"#{lost[1]}", f"#{lost[1]}.1"):
        image.create(found.ino, name, 0, stat.S_IFREG | 0o644)
    for ino in lost:
        forget_name(image, ino)
    image.finish()
    found_and_mended(image, "no directory names it", left="6 files, 2 directories")
    written = image.path.read_bytes()
    for name in (f"#{lost[0]}.1", f"#{lost[1]}.2", f"#{lost[2]}"):
        assert name.encode() in written
    assert f"#{lost[2]}.1".encode() not in written
