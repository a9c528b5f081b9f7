# SPDX-License-Identifier: GPL-2.0-only
"""fsck.lanefs against log-structured images: the owners of data blocks, and what else they change.

LANEFS_FUZZ=2000 in the environment tries more random damage.
"""

import os
import random

import pytest

from tests.support import lanefs_image as lanefs
from tests.support.lanefs_fsck import (
    CLEAN,
    LOG_SIZE,
    block_of,
    blocks_of,
    ends_clean_or_damaged,
    extent_offset,
    found_and_mended,
    fsck,
    orphans_are_completed,
    repair_changes_nothing,
)
from tests.support.lanefs_image import BLOCK, HEADER, SUPER, Image

FUZZ = int(os.environ.get("LANEFS_FUZZ", "25"))
ANOTHER = "have another owner"


@pytest.fixture(scope="module")
def template(directory):
    """A populated image that is log-structured, and the inode numbers by name."""
    image = lanefs.make(directory / "template", LOG_SIZE, "-d", 3, "-i", 600, "--alloc", "log")
    named = lanefs.populate(image)
    image.save()
    return image, named


def owners_blocks(image, domain):
    layout = image.layout(domain)
    return range(layout["owners"], layout["data"])


def owners_are_right(image, *inodes):
    """All blocks that these files had have them as owners, as the image is on disk now."""
    after = Image(image.path)
    for ino in inodes:
        for first, length, block in image.inodes[ino].extents:
            count = length & ~lanefs.UNWRITTEN
            found = [after.owner(block + n) for n in range(count)]
            assert found == [(ino, first + n) for n in range(count)]


def test_clean(template):
    code, text = fsck(template[0], "-n")
    assert code == CLEAN, text
    assert "3 domains, 206 files, 7 directories, 4 others: clean" in text


def test_repair_of_a_clean_image_changes_nothing(copy):
    image, _ = copy
    repair_changes_nothing(image)


@pytest.mark.parametrize(
    ("name", "extent", "n"),
    [
        ("small", 0, 1),
        ("small", 1, 0),  # unwritten
        ("small", 3, 0),  # unwritten, beyond the end
        ("mapped", 39, 0),
        ("sparse", 0, 0),
        ("abroad", 0, 0),  # in another domain than its inode
    ],
)
@pytest.mark.parametrize("change", ["inode", "half of the inode", "logical", "none"])
def test_a_wrong_owner(copy, name, extent, n, change):
    image, named = copy
    ino = named[name]
    first, _, block = image.inodes[ino].extents[extent]
    wrong = {
        "inode": (named["linked"], first + n),
        "half of the inode": (ino ^ 1 << 40, first + n),
        "logical": (ino, first + n + 1),
        "none": (0, 0),
    }[change]
    image.set_owner(block + n, *wrong)
    text, _ = found_and_mended(image, f"inode {ino}: 1 of its blocks {ANOTHER}")
    assert f"(the first is {block + n}: inode {wrong[0]} at {wrong[1]})" in text
    assert text.count(ANOTHER) == 1
    assert Image(image.path).owner(block + n) == (ino, first + n)


def test_wrong_owners_are_told_once_an_inode(copy):
    image, named = copy
    for name in ("sparse", "small"):
        for _, length, block in image.inodes[named[name]].extents:
            for n in range(length & ~lanefs.UNWRITTEN):
                image.set_owner(block + n, named["linked"], 7)
    text, _ = found_and_mended(image, f"inode {named['sparse']}: 150 of its blocks {ANOTHER}")
    assert f"inode {named['small']}: 7 of its blocks {ANOTHER}" in text
    assert text.count(ANOTHER) == 2
    owners_are_right(image, named["sparse"], named["small"])


def test_blocks_that_no_file_has_may_have_any_owner(copy):
    """Free ones, of directories, and the domain's own."""
    image, named = copy
    layout = image.layout(1)
    others = [layout["base"], layout["itable"], blocks_of(image, "dirents")[0], layout["end"] - 1]
    for block in others:
        image.set_owner(block, named["small"], 3)
    repair_changes_nothing(image)


@pytest.mark.parametrize(
    ("offset", "size", "value"),
    [(0, 4, 7), (8, 8, 99), (16, 4, 99), (32, 8, 0), (56, 8, 1 << 60), (4, 4, 0)],
)
def test_a_damaged_block_of_owners(copy, offset, size, value):
    """What it had is in the maps."""
    image, _ = copy
    number = block_of(image, "owners", 2)
    before = image.block(number)
    image.poke(number, offset, size, value)
    if offset == 4:  # which poke() has mended
        image.data[number * BLOCK + 4] ^= 1
    future = offset == 56
    says = (
        "in the future"
        if future
        else f"domain 2: 1 blocks of the owner table are damaged (the first is {number})"
    )
    text, mended = found_and_mended(image, says)
    assert ANOTHER not in text + mended
    assert Image(image.path).block(number) == before


def test_damaged_blocks_of_owners_are_told_in_runs(copy):
    image, named = copy
    numbers = [*owners_blocks(image, 1)]
    for number in (numbers[0], *numbers[4:9], numbers[-1]):
        image.put(number, bytes(BLOCK))
        image.data[number * BLOCK + 4] ^= 1
    text, _ = found_and_mended(
        image, f"domain 1: 1 blocks of the owner table are damaged (the first is {numbers[0]})"
    )
    assert f"domain 1: 5 blocks of the owner table are damaged (the first is {numbers[4]})" in text
    assert f"domain 1: 1 blocks of the owner table are damaged (the first is {numbers[-1]})" in text
    assert (text.count("are damaged"), ANOTHER in text) == (3, False)
    owners_are_right(image, named["small"], named["abroad"])


def test_a_lost_owner_beside_a_wrong_one(copy):
    """Only what is not explained by the damaged block is reported."""
    image, named = copy
    extents = image.inodes[named["sparse"]].extents
    lost = image.owner_slot(extents[-1][2])[0]
    assert lost != image.owner_slot(extents[0][2])[0]
    image.data[lost * BLOCK + 99] ^= 1
    image.set_owner(extents[0][2], 0, 0)
    found_and_mended(image, f"inode {named['sparse']}: 1 of its blocks {ANOTHER}")
    owners_are_right(image, named["sparse"])


def test_a_map_that_is_built_anew(copy):
    """Its blocks get their owners in the round after."""
    image, named = copy
    leaf = block_of(image, "extents", named["sparse"])
    image.data[leaf * BLOCK + 99] ^= 1
    for number in blocks_of(image, "owners"):
        image.data[number * BLOCK + 99] ^= 1
    text, mended = found_and_mended(image, f"block {leaf} of its tree is damaged")
    assert ANOTHER not in text + mended
    first, _, block = image.inodes[named["sparse"]].extents[-1]
    assert Image(image.path).owner(block) == (named["sparse"], first)


def test_a_block_in_use_twice(copy):
    """Who keeps it is its owner then."""
    image, named = copy
    _, _, block = image.inodes[named["abroad"]].extents[0]
    number, at = extent_offset(image, named, "small", 0)
    image.poke(number, at + 8, 8, block)
    found_and_mended(image, "in use twice")
    assert Image(image.path).owner(block) == (named["abroad"], 0)


def test_a_file_that_is_to_be_cut(copy):
    image, named = copy
    image.poke_inode(named["small"], "size", 100)
    image.bit(1, "obitmap", named["small"] & 0xFFFF, True)
    image.save()
    orphans_are_completed(image, 1)


@pytest.mark.parametrize("alloc", ["extent", "log"])
def test_a_feature_bit_that_the_device_contradicts(directory, alloc):
    """With one domain there is one copy, so the owners decide."""
    image = lanefs.make(directory / "image", 20 << 20, "-d", 1, "-i", 100, "--alloc", alloc)
    offset, size = SUPER["incompat"]
    right = image.peek(0, offset, size)
    image.poke(0, offset, size, right ^ lanefs.LOG)
    found_and_mended(image, "superblock: it differs from its copies")
    assert Image(image.path).super("incompat") == right
    copy = image.layout(0)["base"]
    image = Image(image.path)
    image.poke(copy, offset, size, right ^ lanefs.LOG)
    found_and_mended(image, "domain 0: its copy of the superblock differs")
    assert Image(image.path).super("incompat") == right


@pytest.mark.parametrize("seed", range(FUZZ))
def test_random_damage(copy, seed):
    image, _ = copy
    rng = random.Random(seed)
    owners = blocks_of(image, "owners")
    others = [*image.metadata, 0, *(image.layout(d)["bbitmap"] for d in range(3))]
    for _ in range(rng.choice([1, 2, 5, 30])):
        number = rng.choice([rng.choice(owners), rng.choice(others)])
        size = rng.choice([1, 2, 4, 8])
        offset = rng.choice(
            [rng.randrange(64), rng.randrange(HEADER, 400), rng.randrange(HEADER, 3136)]
        )
        value = rng.choice([0, 1, (1 << 8 * size) - 1, rng.getrandbits(8 * size)])
        image.poke(number, offset, size, value)
        if rng.random() < 0.2:
            image.data[number * BLOCK + 4] ^= 1
    ends_clean_or_damaged(image)
