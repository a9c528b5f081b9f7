# SPDX-License-Identifier: GPL-2.0-only
"""fsck.lanefs against damaged images, all checksums mended.

Each field of each kind of block is set to wrong values.
"""

import random

import pytest

from tests.lanefs.blocks import HEADER
from tests.support.lanefs_fsck import DAMAGED, blocks_of, found_and_mended, fsck
from tests.support.lanefs_image import BODY, INODE, ROOT_OFFSET, SUPER, Image

# Fields with more than one right value, which nothing else on the device tells.
FREE_SUPER = {"epoch", "label"}
MOUNTED = 2
FREE_INODE = {"uid", "gid", "mtime", "generation"}


@pytest.mark.parametrize("name", sorted(SUPER.keys() - FREE_SUPER))
@pytest.mark.parametrize("change", ["zero", "ones", "one more"])
def test_super_field(copy, name, change):
    image, _ = copy
    offset, size = SUPER[name]
    old = image.peek(0, offset, size)
    value = {"zero": 0, "ones": (1 << 8 * size) - 1, "one more": old + 1}[change]
    if value == old or (name == "state" and value == MOUNTED):
        pytest.skip("is no damage")
    image.poke(0, offset, size, value)
    if name == "version" and value > old:
        image.save()
        code, text = fsck(image, "-n")
        assert (code, "another version" in text) == (DAMAGED, True)
        return
    found_and_mended(image, "superblock")
    _, text = fsck(image, "-n")
    assert "3 domains, 206 files, 7 directories, 4 others" in text, "the copies knew better"


def test_a_label_that_the_copies_have_not_yet(copy):
    """Block 0 is written before them, and a crash may come between."""
    image, _ = copy
    offset, size = SUPER["label"]
    image.poke(0, offset, size, image.peek(0, offset, size) ^ 1)
    image.save()
    assert fsck(image, "-n")[0] == 0


@pytest.mark.parametrize("value", [0, (1 << 64) - 1])
def test_epoch(copy, value):
    image, _ = copy
    image.poke(0, *SUPER["epoch"], value)
    found_and_mended(image, "superblock")
    assert Image(image.path).super("epoch") < 10


INODES = ["root", "big", "nested", "small", "sparse", "long-link", "short-link", "fifo"]


@pytest.mark.parametrize("inode", INODES)
def test_inode_fields(copy, template, inode):
    """Every field of an inode, in one image each."""
    _, named = copy
    values = {
        name: [0, (1 << 8 * size) - 1, template[0].peek_inode(named[inode], name) + 1]
        for name, (_, size) in INODE.items()
        if name not in FREE_INODE
    }
    values["mtime_ns"] = [10**9, (1 << 32) - 1]
    values["mode"] = [0, 0o777, 0o170000]
    values["xattr"] = [1]
    values["flags"] = [1 << 31]
    if inode in {"small", "sparse"}:
        values["size"] = [0, 1 << 62]  # a larger one may have a hole at its end
    rng = random.Random(inode)
    for name, choices in values.items():
        image = template[0].copy(copy[0].path)
        image.poke_inode(named[inode], name, rng.choice(choices))
        if image.data == template[0].data:
            continue
        found_and_mended(image)


@pytest.mark.parametrize("where", ["block", "inode"])
def test_a_target_with_a_zero_byte(copy, where):
    """A target that is longer than its block takes ends in the inode."""
    image, named = copy
    block, at = image.slot(named["long-link"])
    last = len(image.inodes[named["long-link"]].target) - 1
    places = {
        "block": (blocks_of(image, "symlink")[-1], HEADER),
        "inode": (block, at + ROOT_OFFSET + 16 + last - BODY),
    }
    image.poke(*places[where], 1, 0)
    found_and_mended(image, "zero byte")


@pytest.mark.parametrize("kind", ["node", "extents", "dirents", "symlink", "xattr", "itable"])
@pytest.mark.parametrize(
    ("field", "offset", "size", "value"),
    [
        ("magic", 0, 4, 7),
        ("block", 8, 8, 99),
        ("uuid", 16, 4, 99),
        ("owner", 32, 8, 99),
        ("level", 48, 2, 3),
        ("count", 50, 2, 0),
        ("count", 50, 2, 65535),
        ("used", 52, 2, 65535),
        ("used", 52, 2, 63),
        ("epoch", 56, 8, 1 << 60),
    ],
)
def test_tree_header(copy, kind, field, offset, size, value):
    image, _ = copy
    if (field in {"level", "count"} and kind in {"symlink", "itable"}) or (
        field == "used" and kind not in {"dirents", "xattr"}
    ):
        pytest.skip("has no meaning there")
    number = blocks_of(image, kind)[-1]
    image.poke(number, offset, size, value)
    found_and_mended(image)


@pytest.mark.parametrize(
    ("offset", "size", "value"),
    [
        *((64, 4, 2), (72, 8, 5), (80, 8, 0), (80, 8, 1 << 63), (88, 8, 1 << 40)),
        *((0, 4, 0), (32, 8, 2)),
    ],
)
def test_domain_superblock(copy, offset, size, value):
    image, _ = copy
    image.poke(image.layout(1)["base"] + 1, offset, size, value)
    found_and_mended(image, "domain 1: its superblock")
