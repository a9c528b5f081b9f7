# SPDX-License-Identifier: GPL-2.0-only
"""fsck.lanefs against whole images, crashed ones, and any damage with checksums mended.

fsck -n must find what is wrong and change nothing; fsck -y, built with sanitizers, must end in an
image that fsck -n calls clean. LANEFS_FUZZ=2000 in the environment tries more random damage.
"""

import json
import os
import random

import pytest

from tests.support import lanefs_image as lanefs
from tests.support.lanefs_fsck import (
    CLEAN,
    DAMAGED,
    LOG_SIZE,
    SIZE,
    ends_clean_or_damaged,
    fsck,
    orphans_are_completed,
    repair_changes_nothing,
)
from tests.support.lanefs_image import BLOCK, Image

FUZZ = int(os.environ.get("LANEFS_FUZZ", "25"))


def test_clean(template):
    code, text = fsck(template[0], "-n")
    assert code == CLEAN, text
    assert "3 domains, 206 files, 7 directories, 4 others: clean" in text


def test_repair_of_a_clean_image_changes_nothing(copy):
    image, _ = copy
    repair_changes_nothing(image)


def test_orphans(copy):
    """What a crash leaves is no damage."""
    image, named = copy
    lost = image.create(named["dir1"], "gone", 1, 0o100644)
    block, slot = image.slot(lost.ino)
    lost.nlink = 0
    lost.xattrs = [(lanefs.USER, b"name", b"value")]
    data = image.block(block)
    data[slot : slot + 256] = image.dinode(lost)
    image.put(block, data)
    attributes = image.peek_inode(lost.ino, "xattr") - image.layout(1)["base"]
    image.bit(1, "bbitmap", attributes, True)
    image.bit(1, "ibitmap", lost.ino & 0xFFFF, True)
    image.bit(1, "obitmap", lost.ino & 0xFFFF, True)
    image.poke_inode(named["small"], "size", 100)  # blocks beyond it are still there
    image.bit(1, "obitmap", named["small"] & 0xFFFF, True)
    image.save()
    orphans_are_completed(image, 2)
    again = Image(image.path)
    assert again.peek_inode(named["small"], "blocks") == 2, "data, and the attributes"
    assert again.peek_inode(lost.ino, "mode") == 0


# A hole of `by` blocks at `at` of "small" (0-1, 2 unwritten, 9-11, 20 unwritten), and what is left.
SHIFTS = [
    (3, 4, [(0, 2), (2, 1), (5, 3), (16, 1)]),
    (2, 4, [(0, 2), (5, 3), (16, 1)]),
    (1, 9, [(0, 1), (1, 2), (11, 1)]),
]


@pytest.mark.parametrize(("at", "by", "right"), SHIFTS)
@pytest.mark.parametrize("alloc", ["extent", "log"])
def test_a_shift_that_a_crash_has_interrupted(directory, alloc, at, by, right):
    """It is no damage, and is ended: the hole goes, with what is in it."""
    size = LOG_SIZE if alloc == "log" else SIZE
    image = lanefs.make(directory / "shift", size, "-d", 3, "-i", 600, "--alloc", alloc)
    small = lanefs.populate(image)["small"]
    image.poke_inode(small, "shift_at", at)
    image.poke_inode(small, "shift_by", by)
    image.save()
    code, text = fsck(image, "-n")
    assert (code, "place of a shift" in text) == (DAMAGED, True), "it is not an orphan"
    image.bit(1, "obitmap", small & 0xFFFF, True)
    image.save()
    orphans_are_completed(image, 1)
    again = Image(image.path)
    assert again.peek_inode(small, "size") == (12 - by) * BLOCK - 5
    assert again.peek_inode(small, "shift_by") == 0
    done = lanefs.tool("lanefs-dump", "--json", image.path, "inode", small)
    extents = json.loads(done.stdout)["extents"]
    assert [(extent["logical"], extent["length"]) for extent in extents] == right
    if alloc == "log":
        owners = [again.owner(extent["block"]) for extent in extents]
        assert owners == [(small, first) for first, _ in right]


@pytest.mark.parametrize("seed", range(FUZZ))
def test_random_damage(copy, seed):
    image, _ = copy
    rng = random.Random(seed)
    kinds = [*image.metadata, 0]
    for d in range(3):
        layout = image.layout(d)
        kinds += [layout["base"], layout["base"] + 1, *range(layout["ibitmap"], layout["itable"])]
    for _ in range(rng.choice([1, 2, 5, 30])):
        number = rng.choice(kinds)
        size = rng.choice([1, 2, 4, 8])
        offset = rng.choice([rng.randrange(64), rng.randrange(64, 400), rng.randrange(64, 4088)])
        if 0 < offset < 8:
            offset = 8
        value = rng.choice([0, 1, (1 << 8 * size) - 1, rng.getrandbits(8 * size)])
        image.poke(number, offset, size, value)
    ends_clean_or_damaged(image)
