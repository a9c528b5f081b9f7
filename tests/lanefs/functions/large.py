# SPDX-License-Identifier: GPL-2.0-only
"""Large devices, sparse ones: what a mount takes, bitmaps that come and go, free segments."""

import os
import struct
from pathlib import Path

from tests.lanefs import blocks
from tests.lanefs.blocks import BLOCK
from tests.lanefs.device import available, drop_caches, reads
from tests.lanefs.functions.harness import Place, Skipped, check, equal, long_test
from tests.lanefs.functions.loop import fsck, loop_device, mounted
from tests.lanefs.functions.traced import durations

GROUP, SEGMENT = 126 << 20, 2 << 20
"""bytes of an allocation group, and of a segment of a log"""


def _of_lanefs(place: Place) -> None:
    place.own()
    if place.filesystem != "lanefs":
        raise Skipped("the bitmaps are lanefs's")


@long_test
def a_mount_of_a_large_device_keeps_little(place: Place) -> None:
    """2 TiB, empty: some 25,000 bitmap blocks take a few hundred reads, and no memory after."""
    _of_lanefs(place)
    with loop_device(place, 2 << 20, domains=2) as (device, _):
        drop_caches()
        memory, before = available(), reads(device)
        with mounted(place, device):
            counted = reads(device) - before
            drop_caches()
            taken = (memory - available()) >> 20
        check(counted < 1000, f"a mount of 2 TiB takes {counted} reads")
        check(taken < 20, f"a mount of 2 TiB takes {taken} MiB")


@long_test
def bitmaps_leave_memory_and_come_back(place: Place) -> None:
    """Blocks and inodes are taken and freed in all groups, while the bitmaps leave memory."""
    _of_lanefs(place)
    groups = 12
    with loop_device(place, (groups + 1) * GROUP >> 20, domains=1) as (device, _):
        with mounted(place, device) as mount:
            empty = os.statvfs(mount)
            for turn in range(4):
                _turn(mount, turn, groups)
                # The first time they are only marked as not wanted.
                drop_caches()
                drop_caches()
            used = os.statvfs(mount)
        with mounted(place, device) as mount:
            counted = os.statvfs(mount)
            equal(counted.f_bfree, used.f_bfree, "free blocks after a mount")
            equal(counted.f_ffree, used.f_ffree, "free inodes after a mount")
            for entry in list(mount.iterdir()):
                (entry.rmdir if entry.is_dir() else entry.unlink)()
            os.sync()
            left = os.statvfs(mount)
            equal(left.f_ffree, empty.f_ffree, "free inodes of the empty file system")
            held = empty.f_bfree - left.f_bfree
            check(held <= 16, f"{held} blocks of the empty file system are in use")
        fsck(place, device)


def _turn(mount: Path, turn: int, groups: int) -> None:
    """A file of the size of a group, nearly, comes, grows or goes for each group."""
    for number in range(groups):
        path = mount / f"f{number}"
        if (number + turn) % 3 == 0:
            path.unlink(missing_ok=True)
            continue
        fd = os.open(path, os.O_CREAT | os.O_WRONLY)
        os.posix_fallocate(fd, 0, GROUP * 3 // 4 + turn * 4096)
        os.close(fd)
        (mount / f"d{turn}.{number}").mkdir()
    os.sync()


@long_test
def a_free_segment_far_away_is_found_at_once(place: Place) -> None:
    """The free ones of a log of 16 GiB are its last: little is lost against one of free ones."""
    _of_lanefs(place)
    near, far = (_openings(place, used) for used in (False, True))
    check(far < 4 * near, f"a segment is opened in {far} us where few are free, else in {near}")


def _openings(place: Place, used: bool) -> float:
    """The median of what it takes a stream to open a segment, in us; `used`: of a log that is."""
    segments = 16
    with loop_device(place, 16 << 10, domains=1, alloc="log") as (device, backing):
        if used:
            _use_groups(backing)
        with mounted(place, device) as mount:

            def write() -> None:
                with (mount / "f").open("wb", buffering=0) as file:
                    for _ in range(segments):
                        file.write(bytes(SEGMENT))
                    os.fsync(file.fileno())

            taken = durations("lanefs_stream_take_data", write)
    check(len(taken) >= segments * SEGMENT // BLOCK, f"{len(taken)} blocks were taken")
    return sorted(taken)[-segments // 2]


def _use_groups(image: Path) -> None:
    """Set the bits of all groups but the last eight, of one domain; checksums are right."""
    with image.open("r+b") as file:
        head = os.pread(file.fileno(), BLOCK, 0)
        start, domain_blocks, inodes = struct.unpack_from("<QQQ", head, 104)
        (journal,) = struct.unpack_from("<I", head, 132)
        bits = (BLOCK - blocks.HEADER) * 8
        first = start + 2 + journal + 2 * -(-inodes // bits)
        for group in range(-(-domain_blocks // bits) - 8):
            block = bytearray(os.pread(file.fileno(), BLOCK, (first + group) * BLOCK))
            block[blocks.HEADER :] = bytes([0xFF]) * (BLOCK - blocks.HEADER)
            blocks.seal(block)
            os.pwrite(file.fileno(), block, (first + group) * BLOCK)
