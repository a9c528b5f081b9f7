# SPDX-License-Identifier: GPL-2.0-only
"""What all tests of fsck.lanefs ask, and where in an image things are."""

import struct

from tests.support import lanefs_image as lanefs
from tests.support.lanefs_image import HEADER

SIZE = 30 << 20
LOG_SIZE = 44 << 20  # the least of three domains that are log-structured
CLEAN, REPAIRED, DAMAGED = 0, 1, 4
# What the populated image has; and with /lost+found.
ALL = "206 files, 7 directories, 4 others"
ALL_AND_FOUND = "206 files, 8 directories, 4 others"


def fsck(image, mode, sanitized=True):
    done = lanefs.tool("fsck.lanefs", mode, image.path, sanitized=sanitized)
    return done.returncode, done.stdout + done.stderr


def repair_changes_nothing(image):
    """The image is sound: fsck -y says so, and leaves each byte as it is."""
    before = image.save().read_bytes()
    code, text = fsck(image, "-y")
    assert code == CLEAN, text
    assert image.path.read_bytes() == before


def found_and_mended(image, expected="", left="clean"):
    """Save the damage; fsck -n says `expected`, and `left` after fsck -y; what the two said."""
    image.save()
    before = image.path.stat().st_mtime_ns
    code, text = fsck(image, "-n", sanitized=False)
    assert code == DAMAGED, text
    assert expected in text
    assert image.path.stat().st_mtime_ns == before, "fsck -n has written"
    code, mended = fsck(image, "-y")
    assert code == REPAIRED, mended
    code, again = fsck(image, "-n", sanitized=False)
    assert (code, left in again) == (CLEAN, True), f"{mended}\nthen\n{again}"
    return text, mended


def ends_clean_or_damaged(image):
    """Random damage: fsck -y either says that it could not, or ends in a clean image."""
    image.save()
    code, found = fsck(image, "-n")
    assert code in {CLEAN, DAMAGED}, found
    code, mended = fsck(image, "-y")
    assert code in {CLEAN, REPAIRED, DAMAGED, DAMAGED | REPAIRED}, mended
    again, text = fsck(image, "-n")
    assert again == (DAMAGED if code & DAMAGED else CLEAN), f"{mended}\nthen\n{text}"


def blocks_of(image, kind):
    return [number for number, k in image.metadata.items() if k == kind]


def block_of(image, kind, ino):
    """The first block of a kind that an inode has."""
    return next(number for number in blocks_of(image, kind) if image.peek(number, 32, 8) == ino)


def extent_offset(image, named, name, n):
    block, at = image.slot(named[name])
    return block, at + 128 + 16 * n


def entry_offset(image, directory, name):
    """Block and offset of a directory entry."""
    for number in blocks_of(image, "dirents"):
        block = image.block(number)
        if struct.unpack_from("<Q", block, 32)[0] != directory:
            continue
        at = block.find(name, HEADER)
        if at >= 0:
            return number, at - 24
    raise AssertionError(name)


def orphans_are_completed(image, count):
    """fsck -n sees so many orphans and no damage; after fsck -y there is none."""
    for option in ("-n", "-y"):
        code, text = fsck(image, option)
        assert (code, f"{count} orphan inodes" in text) == (CLEAN, True), text
    code, text = fsck(image, "-n")
    assert (code, "orphan" in text) == (CLEAN, False), text
