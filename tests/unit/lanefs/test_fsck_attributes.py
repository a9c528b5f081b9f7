# SPDX-License-Identifier: GPL-2.0-only
"""fsck.lanefs against damaged images, all checksums mended: blocks of extended attributes."""

import struct

import pytest

from tests.support import lanefs_image as lanefs
from tests.support.lanefs_fsck import ALL, block_of, found_and_mended, fsck
from tests.support.lanefs_image import HEADER, Image


@pytest.mark.parametrize(
    ("offset", "size", "value", "says"),
    [
        (64, 2, 1, "between its entries"),  # of the first entry: the value's length
        (64, 2, 65535, "beyond its end"),
        (66, 1, 0, "a name of a wrong length"),
        (66, 1, 251, "a name of a wrong length"),
        (67, 1, 0, "an unknown namespace"),
        (67, 1, 4, "a name of a wrong length"),
        (67, 1, 6, "an unknown namespace"),
        (67, 1, 2, "out of order"),
        (68, 1, 0, "a zero byte"),
        (68, 1, ord("b"), "out of order"),
        (69, 1, 1, "between its entries"),
        (50, 2, 4, "count of entries"),
        (52, 2, 64, "a wrong size"),
        (4095, 1, 1, "behind its entries"),
    ],
)
def test_attributes(copy, offset, size, value, says):
    """The block goes, and nothing else."""
    image, named = copy
    number = image.peek_inode(named["small"], "xattr")
    blocks = image.peek_inode(named["small"], "blocks")
    assert image.block(number)[64:72] == b"\0\0\x01\x01a\0\0\0"
    if (offset, value) == (64, 1):
        image.poke(number, 70, 1, 1)
    image.poke(number, offset, size, value)
    _, mended = found_and_mended(image, f"block {number} of its extended attributes", left=ALL)
    assert says in mended
    again = Image(image.path)
    assert again.peek_inode(named["small"], "xattr") == 0
    assert again.peek_inode(named["small"], "blocks") == blocks - 1


def test_attributes_of_another_inode(copy):
    image, named = copy
    image.poke_inode(named["empty"], "xattr", image.peek_inode(named["small"], "xattr"))
    found_and_mended(image, f"inode {named['empty']}: block")
    again = Image(image.path)
    assert again.peek_inode(named["empty"], "xattr") == 0
    assert again.peek_inode(named["small"], "xattr") != 0, "its owner keeps it"


def test_attributes_in_another_domain(copy):
    image, named = copy
    number = image.alloc(2)
    old = image.block(image.peek_inode(named["small"], "xattr"))
    old[8:16] = struct.pack("<Q", number)
    image.put(number, old)
    image.poke_inode(named["small"], "xattr", number)
    found_and_mended(image, "not for metadata of its domain")


def test_attributes_of_a_span_directory(copy):
    image, _ = copy
    span = lanefs.ino_of(1, lanefs.SPAN_INDEX + 3)
    number = image.write_tree_block("xattr", span, b"\0\0\x01\x01a\0\0\0", count=1, used=HEADER + 8)
    image.poke_inode(span, "xattr", number)
    image.poke_inode(span, "blocks", image.peek_inode(span, "blocks") + 1)
    found_and_mended(image, "span directory")


def test_attributes_stay_when_a_tree_is_mended(copy):
    image, named = copy
    number = block_of(image, "node", named["sparse"])
    image.poke(number, HEADER + 16, 8, 0)
    found_and_mended(image, "out of order")
    number = Image(image.path).peek_inode(named["sparse"], "xattr")
    assert number == image.peek_inode(named["sparse"], "xattr") != 0


def acl_of(space, *tags, perm=4, name=b""):
    """An entry of an ACL with these tags, and the zeros behind it."""
    value = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", t, perm, 2**32 - 1) for t in tags)
    entry = struct.pack("<HBB", len(value), len(name), space) + name + value
    return entry + bytes(-len(entry) % 4)


def put_acl(image, ino, entry):
    """The entry becomes the only attribute of an inode that has none."""
    number = image.write_tree_block("xattr", ino, entry, count=1, used=HEADER + len(entry))
    domain = lanefs.domain_of(ino)
    image.bit(domain, "bbitmap", number - image.layout(domain)["base"], True)
    image.poke_inode(ino, "blocks", image.peek_inode(ino, "blocks") + 1)
    image.poke_inode(ino, "xattr", number)


def test_acls_are_kept(copy):
    image, named = copy
    put_acl(image, named["empty"], acl_of(4, 1, 4, 32))
    image.save()
    code, text = fsck(image, "-n")
    assert code == 0, text


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (acl_of(5, 1, 4, 32), "its type cannot have"),
        (acl_of(4, 1, 4), "invalid ACL"),
        (acl_of(4, 1, 4, 32, perm=8), "invalid ACL"),
        (acl_of(4, 1, 4, 32, name=b"x"), "a name of a wrong length"),
    ],
)
def test_acls_that_are_none(copy, entry, says):
    image, named = copy
    put_acl(image, named["empty"], entry)
    _, mended = found_and_mended(image, f"inode {named['empty']}: block")
    assert says in mended
