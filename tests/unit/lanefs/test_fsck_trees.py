# SPDX-License-Identifier: GPL-2.0-only
"""fsck.lanefs against damaged images, all checksums mended.

Trees of extents and entries that contradict themselves or each other.
"""

import stat

import pytest

from tests.support import lanefs_image as lanefs
from tests.support.lanefs_fsck import (
    ALL_AND_FOUND,
    CLEAN,
    DAMAGED,
    REPAIRED,
    SIZE,
    block_of,
    blocks_of,
    entry_offset,
    extent_offset,
    found_and_mended,
    fsck,
)
from tests.support.lanefs_image import HEADER, UNWRITTEN, Image


@pytest.mark.parametrize(
    ("field", "offset", "size", "value", "says"),
    [
        ("overlap", 0, 4, 1, "overlaps"),
        ("empty", 4, 4, 0, "0 blocks"),
        ("long", 4, 4, UNWRITTEN - 1, "not for data"),
        ("metadata", 8, 8, 300, "not for data"),
        ("nowhere", 8, 8, (1 << 64) - 1, "not for data"),
        ("beyond the end", 0, 4, 30, "beyond the end"),
        ("far beyond", 0, 4, (1 << 32) - 2, ""),
    ],
)
def test_extent_field(copy, field, offset, size, value, says):
    image, named = copy
    number, at = extent_offset(image, named, "small", 2)
    image.poke(number, at + offset, size, value)
    found_and_mended(image, says)


def test_block_in_use_twice(copy):
    image, named = copy
    number, at = extent_offset(image, named, "small", 0)
    other, other_at = extent_offset(image, named, "abroad", 0)
    image.poke(number, at + 8, 8, image.peek(other, other_at + 8, 8))
    text, _ = found_and_mended(image, "in use twice")
    assert f"inode {named['small']}" in text or f"inode {named['abroad']}" in text


def test_tree_block_wanted_as_data(copy):
    """The tree keeps it, although its inode comes later."""
    image, named = copy
    tree = block_of(image, "extents", named["sparse"])
    number, at = extent_offset(image, named, "abroad", 0)
    image.poke(number, at + 8, 8, tree)
    found_and_mended(image, f"inode {named['abroad']}: the extent at 0 has blocks")


def test_node_points_to_itself(copy):
    image, named = copy
    number = block_of(image, "node", named["big"])
    for i in range(image.peek(number, 50, 2)):
        image.poke(number, HEADER + 16 * i + 8, 8, number)
    found_and_mended(image, f"inode {named['big']}")


def test_node_with_the_same_child_again_and_again(copy):
    image, named = copy
    number = block_of(image, "node", named["big"])
    child = image.peek(number, HEADER + 8, 8)
    for i in range(image.peek(number, 50, 2)):
        image.poke(number, HEADER + 16 * i + 8, 8, child)
    found_and_mended(image, f"inode {named['big']}: its tree has block {child} twice")


def test_index_out_of_order(copy):
    image, named = copy
    number = block_of(image, "node", named["sparse"])
    image.poke(number, HEADER + 16, 8, 0)
    found_and_mended(image, "out of order")


def test_lost_leaf_of_a_directory(copy):
    """Its files are found without a name, and get one in /lost+found; the others keep theirs."""
    image, named = copy
    number = block_of(image, "dirents", named["big"])
    lost = image.peek(number, 50, 2)
    image.data[number * 4096 + 2000] ^= 1
    _, mended = found_and_mended(
        image, f"block {number} of its tree is damaged", left=ALL_AND_FOUND
    )
    assert mended.count("/lost+found") == lost


def test_lost_root(copy):
    image, _ = copy
    image.poke_inode(1, "mode", 0)
    _, mended = found_and_mended(image, "inode 1: it has no type", left=ALL_AND_FOUND)
    assert "lost+found" in mended


def test_lost_block_of_the_inode_table(copy):
    image, named = copy
    number, _ = image.slot(named["small"])
    image.data[number * 4096 + 77] ^= 1
    found_and_mended(image, "inode table")


def fill(image, named):
    """Give all that is free in domain 0 to a file."""
    layout = image.layout(0)
    first = image.next_block[0]
    length = layout["end"] - first
    number, at = extent_offset(image, named, "abroad", 1)
    for offset, size, value in ((0, 4, 1), (4, 4, length), (8, 8, first)):
        image.poke(number, at + offset, size, value)
    for name, value in (("count", 2), ("size", (1 + length) * 4096), ("blocks", 1 + length)):
        image.poke_inode(named["abroad"], name, value)
    for n in range(first - layout["base"], layout["end"] - layout["base"]):
        at = layout["bbitmap"] * 4096 + HEADER + n // 8
        image.data[at] |= 1 << n % 8
    image.put(layout["bbitmap"], image.block(layout["bbitmap"]))


def test_a_tree_is_mended_in_a_full_domain(copy):
    """A new tree may take the place of the old one."""
    image, named = copy
    fill(image, named)
    image.save()
    assert fsck(image, "-n")[0] == CLEAN
    number = block_of(image, "dirents", named["big"])
    image.data[number * 4096 + 2000] ^= 1
    found_and_mended(image, f"block {number} of its tree is damaged")


def test_what_cannot_be_mended_is_said(copy):
    """An inode lost its name, and there is no block left for /lost+found."""
    image, named = copy
    fill(image, named)
    number, at = entry_offset(image, named["dir1"], b"empty")
    image.poke(number, at + 8, 8, named["small"])
    image.save()
    code, text = fsck(image, "-y")
    assert code == DAMAGED | REPAIRED
    assert "no blocks left" in text
    assert "CANNOT BE REPAIRED" in text
    assert "problems are left" in text
    assert Image(image.path).super("state") & 0x8000
    code, text = fsck(image, "-n")
    assert (code, "found damage" in text) == (DAMAGED, True)


def test_a_tree_that_has_no_room_to_grow_is_kept(directory):
    """/lost+found has names already, and its domain no block for more of them."""
    image = lanefs.make(directory / "image", SIZE, "-d", 2, "-i", 600)
    found = image.create(1, "lost+found", 0, stat.S_IFDIR | 0o700).ino
    for n in range(76):
        image.create(found, f"{n:03d}" + "x" * 180, 0, stat.S_IFREG | 0o644)
    for n in range(40):
        image.create(1, f"file{n}", 0, stat.S_IFREG | 0o644)
    abroad = image.create(1, "abroad", 0, stat.S_IFREG | 0o644, size=4096)
    abroad.extents = [(0, 1, image.alloc(1))]
    root = image.node(1)
    root.entries = [entry for entry in root.entries if not entry[0].startswith(b"file")]
    image.finish()
    fill(image, {"abroad": abroad.ino})
    image.save()
    code, text = fsck(image, "-y")
    assert (code, "no blocks left" in text) == (DAMAGED | REPAIRED, True), text
    after = Image(image.path)
    for n in blocks_of(image, "dirents"):
        assert after.block(n) == image.block(n)
    _, text = fsck(image, "-n")
    assert text.count("no directory names it") == 40
    assert "117 files, 2 directories" in text
