# SPDX-License-Identifier: GPL-2.0-only
"""Large devices, sparse ones: what a mount takes, and bitmaps that come and go."""

import os
from pathlib import Path

from tests.lanefs.device import available, drop_caches, reads
from tests.lanefs.functions.harness import Place, Skipped, check, equal, long_test
from tests.lanefs.functions.loop import fsck, loop_device, mounted
from tests.lanefs.functions.segments import can_trace, craft_log, locks_of_search, write_blocks

GROUP = 126 << 20
"""bytes of an allocation group"""


def _of_lanefs(place: Place) -> None:
    place.own_lanefs("the bitmaps are lanefs's")


@long_test
def a_mount_of_a_large_device_keeps_little(place: Place) -> None:
    """2 TiB, empty: some 25,000 bitmap blocks take a few hundred reads, and no memory after."""
    _of_lanefs(place)
    with loop_device(place, 2 << 20, domains=2) as (device, _):
        drop_caches()
        memory, before = available(), reads(device)
        with mounted(place, device) as mount:
            # Waits until all is counted.
            os.statvfs(mount)
            counted = reads(device) - before
            drop_caches()
            taken = (memory - available()) >> 20
        check(counted < 1000, f"a mount of 2 TiB takes {counted} reads")
        check(taken < 20, f"a mount of 2 TiB takes {taken} MiB")


@long_test
def a_free_segment_is_found_in_few_steps(place: Place) -> None:
    """In a log of 1 TiB whose first 490,000 segments are used, few groups are looked at."""
    _of_lanefs(place)
    if not can_trace():
        raise Skipped("the kernel draws no graphs of functions")
    with loop_device(place, 1 << 20, domains=1, inodes=1 << 20, alloc="extent") as (
        device,
        backing,
    ):
        craft_log(backing)
        drop_caches()
        with mounted(place, device) as mount:
            os.statvfs(mount)
            (Path("/sys/fs/lanefs") / Path(device).name / "gc_low").write_text("0")
            locks = locks_of_search(lambda: write_blocks(mount / "f", 1))
        check(0 < locks < 50, f"a free segment is found with {locks} locks")


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
