# SPDX-License-Identifier: GPL-2.0-only
"""fsck.lanefs against damaged images, all checksums mended.

Bitmaps and superblocks, in part or whole.
"""

import pytest

from tests.support import lanefs_image as lanefs
from tests.support.lanefs_fsck import ALL, DAMAGED, SIZE, found_and_mended, fsck
from tests.support.lanefs_image import HEADER, Image


@pytest.mark.parametrize("bitmap", ["ibitmap", "obitmap", "bbitmap"])
def test_bitmap_block_is_lost(copy, bitmap):
    image, _ = copy
    number = image.layout(1)[bitmap]
    image.data[number * 4096 + 100] ^= 0xFF
    found_and_mended(image, "is damaged", left=ALL)


@pytest.mark.parametrize("bitmap", ["ibitmap", "obitmap", "bbitmap"])
@pytest.mark.parametrize("n", [0, 1, 31, 40, 1000, 2000, 32000])
def test_bitmap_bit(copy, bitmap, n):
    """One bit is wrong: no file is lost by that."""
    if (bitmap, n) == ("obitmap", 40):
        pytest.skip("a file that a crash left to be cut, which test_orphans has")
    image, _ = copy
    offset = HEADER + n // 8
    number = image.layout(1)[bitmap]
    image.poke(number, offset, 1, image.peek(number, offset, 1) ^ (1 << n % 8))
    found_and_mended(image, left=ALL)


def free(image, *inodes):
    for ino in inodes:
        image.bit(lanefs.domain_of(ino), "ibitmap", ino & 0xFFFF, False)


def test_bit_of_an_inode_with_several_names(copy):
    """The first name finds it; the others are kept, in whatever domain they are."""
    image, named = copy
    free(image, named["linked"])
    text, _ = found_and_mended(image, "it has a name, but is marked as free", left=ALL)
    assert text.count("marked as free") == 1
    assert Image(image.path).peek_inode(named["linked"], "nlink") == 3


@pytest.mark.parametrize("names", [["big"], ["dir1"], ["dir1", "nested", "deep", "linked"]])
def test_bit_of_a_directory(copy, names):
    """What is in it keeps its place."""
    image, named = copy
    free(image, *(named[name] for name in names))
    text, mended = found_and_mended(image, "it has a name, but is marked as free", left=ALL)
    assert "lost+found" not in text + mended


def test_bits_of_directories_within_each_other(directory):
    """Each is found when the one above it was; there is no end to that before the last."""
    image = lanefs.make(directory / "image", SIZE, "-d", 1)
    above = 1
    for n in range(40):
        above = image.create(above, f"{n}", 0, 0o040755).ino
    image.finish()
    free(image, *range(lanefs.FIRST_INDEX, lanefs.FIRST_INDEX + 40))
    found_and_mended(image, "it has a name, but is marked as free", left="0 files, 41 directories")


def test_copy_of_the_superblock(copy):
    image, _ = copy
    image.data[image.layout(2)["base"] * 4096 + 3000] ^= 1
    found_and_mended(image, "domain 2: its copy of the superblock is damaged")


def test_all_superblocks_but_one_are_lost(copy):
    image, _ = copy
    for number in (0, image.layout(0)["base"], image.layout(1)["base"]):
        image.data[number * 4096 : (number + 1) * 4096] = bytes(4096)
    found_and_mended(image, "superblock: it is damaged; the copy in block")


def test_no_superblock_is_left(copy):
    image, _ = copy
    for number in (0, *(image.layout(d)["base"] for d in range(3))):
        image.data[number * 4096] ^= 1
    image.save()
    for mode in ("-n", "-y"):
        code, text = fsck(image, mode)
        assert (code, "no intact copy" in text) == (DAMAGED, True)


def test_superblocks_of_an_older_file_system(copy):
    """Copies of another one that was here before, in better order, are not taken for this one's."""
    image, _ = copy
    old = lanefs.make(image.path, SIZE, "-f", "-d", 4)
    for d in range(1, 4):
        base = old.layout(d)["base"]
        for number in (base, base + 1, old.layout(d)["ibitmap"], old.layout(d)["bbitmap"]):
            image.put(number, old.block(number))
    for d in range(3):
        image.data[image.layout(d)["base"] * 4096] ^= 1
    found_and_mended(image, "its copy of the superblock is damaged", left="3 domains, 206 files")
