# SPDX-License-Identifier: GPL-2.0-only
"""Images made to do harm, of which a few words are wrong and all checksums right."""

import errno
import os
import struct
import subprocess
from pathlib import Path

from tests.lanefs import blocks
from tests.lanefs.blocks import BLOCK
from tests.lanefs.functions.files import drop_caches
from tests.lanefs.functions.harness import (
    Place,
    check,
    equal,
    fails,
    long_test,
    run,
)
from tests.lanefs.functions.loop import fsck, loop_device, mounted
from tests.lanefs.images import survey

# Inodes: the root, and domain 0's first span directory; bytes of an inode's fields.
ROOT, SPAN = 1, 8
LINKS_AT, FLAGS_AT = 16, 20
LINK_MAX = 0x7FFFFFFF


@long_test
def a_bitmap_that_frees_what_is_in_use_is_found_out(place: Place) -> None:
    """A directory's blocks, free in a crafted bitmap, are not given out as its new ones."""
    place.own_lanefs("the format is lanefs's")
    with loop_device(place, 100, domains=1) as (device, backing):
        with mounted(place, device) as mount:
            (mount / "d").mkdir()
            for n in range(300):
                (mount / "d" / f"{n}-{'x' * 100}").touch()
            owner = (mount / "d").stat().st_ino
        _free_directory_blocks(backing, owner)
        drop_caches()
        with mounted(place, device) as mount:
            equal(len(os.listdir(mount / "d")), 300, "names listed before")
            with fails(errno.EUCLEAN, "more names"):
                for n in range(300, 4000):
                    (mount / "d" / f"{n}-{'x' * 100}").touch()
            old = {f"{n}-{'x' * 100}" for n in range(300)}
            equal(len(old & set(os.listdir(mount / "d"))), 300, "of them listed after")


def _free_directory_blocks(image: Path, owner: int) -> None:
    """Clear the bits of the blocks of a directory in the block bitmaps; checksums are mended."""
    data = bytearray(image.read_bytes())
    found = survey("crafted", image, len(data) >> 20).blocks
    (domain,) = found["domain"]
    for number in found["dirents"]:
        if struct.unpack_from("<Q", data, number * BLOCK + 32)[0] == owner:
            group, bit = divmod(number - (domain - 1), (BLOCK - blocks.HEADER) * 8)
            data[found["bbitmap"][group] * BLOCK + blocks.HEADER + bit // 8] &= ~(1 << bit % 8)
    with image.open("r+b") as file:
        for number in found["bbitmap"]:
            block = data[number * BLOCK : (number + 1) * BLOCK]
            blocks.seal(block)
            os.pwrite(file.fileno(), block, number * BLOCK)


@long_test
def flags_that_are_none_are_found_out(place: Place) -> None:
    """EUCLEAN for an unknown flag, and for one of directories that a file has; fsck mends both."""
    place.own_lanefs("the format is lanefs's")
    for flags in (0x2, 0x10000):
        with loop_device(place, 100, domains=1) as (device, backing):
            with mounted(place, device) as mount:
                (mount / "f").write_text("x")
                number = (mount / "f").stat().st_ino
            _set_flags(backing, number, flags)
            drop_caches()
            check("the flag word" in _fsck("-n", device), "fsck finds other damage, or none")
            with mounted(place, device) as mount, fails(errno.EUCLEAN, "a lookup"):
                (mount / "f").stat()
            _fsck("-y", device)
            with mounted(place, device) as mount:
                equal((mount / "f").read_text(), "x", "the file that was mended")


def _fsck(*arguments: str) -> str:
    argv = ["fsck.lanefs", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout


def _set_flags(image: Path, number: int, flags: int) -> None:
    set_word(image, number, FLAGS_AT, flags)


def set_word(image: Path, number: int, offset: int, value: int) -> None:
    """Set 32 bits of an inode; the checksum is mended."""
    found = survey("crafted", image, image.stat().st_size >> 20).blocks
    with image.open("r+b") as file:
        for at in found["itable"]:
            block = bytearray(os.pread(file.fileno(), BLOCK, at * BLOCK))
            for slot in range(256, BLOCK, 256):
                if struct.unpack_from("<Q", block, slot + 96)[0] == number:
                    struct.pack_into("<I", block, slot + offset, value)
            blocks.seal(block)
            os.pwrite(file.fileno(), block, at * BLOCK)


@long_test
def a_reserved_inode_without_links_is_not_deleted(place: Place) -> None:
    """Of the root, and of a span directory: no mount, and fsck brings back what there was."""
    place.own_lanefs("the format is lanefs's")
    for number in (ROOT, SPAN):
        with loop_device(place, 100, domains=2) as (device, backing):
            with mounted(place, device) as mount:
                for n in range(20):
                    (mount / f"d{n}").mkdir()
            set_word(backing, number, LINKS_AT, 0)
            drop_caches()
            argv = ["mount", "-t", "lanefs", device, "/media"]
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                run("umount", "/media")
            check(done.returncode != 0, f"inode {number} without links is mounted")
            _fsck("-y", device)
            fsck(place, device)
            with mounted(place, device) as mount:
                equal(len(set(os.listdir(mount)) - {"lost+found"}), 20, f"names, inode {number}")


@long_test
def what_has_all_its_links_takes_no_more(place: Place) -> None:
    """EMLINK for a link and a subdirectory too many; what adds none is done."""
    place.own_lanefs("the format is lanefs's")
    with loop_device(place, 100, domains=1) as (device, backing):
        with mounted(place, device) as mount:
            (mount / "f").touch()
            for name in ("full/sub", "full/other", "elsewhere", "third"):
                (mount / name).mkdir(parents=True)
            numbers = [(mount / name).stat().st_ino for name in ("f", "full")]
        for number in numbers:
            set_word(backing, number, LINKS_AT, LINK_MAX)
        drop_caches()
        with mounted(place, device) as mount:
            full = mount / "full"
            with fails(errno.EMLINK, "a link"):
                os.link(mount / "f", mount / "g")
            with fails(errno.EMLINK, "a subdirectory"):
                (full / "new").mkdir()
            with fails(errno.EMLINK, "a directory that moves in"):
                (mount / "elsewhere").rename(full / "new")
            (full / "file").touch()
            (mount / "elsewhere").rename(full / "sub")
            equal(full.stat().st_nlink, LINK_MAX, "links after a directory took another's name")
            (full / "sub").rmdir()
            (mount / "third").rename(full / "third")
            equal(full.stat().st_nlink, LINK_MAX, "links after one has left and one has come")
        check("link" in _fsck("-n", device), "fsck finds the counts right")
        _fsck("-y", device)
        fsck(place, device)
        with mounted(place, device) as mount:
            counts = [(mount / name).stat().st_nlink for name in ("f", "full")]
            equal(counts, [1, 4], "links after fsck")
