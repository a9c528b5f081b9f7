# SPDX-License-Identifier: GPL-2.0-only
"""A device that fails: writers are told, nobody hangs, what was durable is there afterwards."""

import contextlib
import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from fscale.vm.crashload import sync
from tests.lanefs.blocks import read_layout
from tests.lanefs.functions.faulty import Disk, failing
from tests.lanefs.functions.files import BLOCK
from tests.lanefs.functions.harness import (
    Place,
    Skipped,
    check,
    children,
    equal,
    fails,
    long_test,
    test,
)
from tests.lanefs.functions.log import blocks_of
from tests.lanefs.functions.loop import fsck, mounted, removable_device
from tests.lanefs.functions.writers import STOPPED, look_at_all, noted, write_on

WRITERS = 8
# Three of four kinds of writers note what is durable; the fault comes when each of these has.
NOTING = WRITERS * 3 // 4


def _check_is_shut_down(place: Place, mount: Path) -> None:
    """A transaction that cannot be written shuts it down; data that cannot be does not."""
    if place.filesystem != "lanefs":
        return
    with contextlib.suppress(OSError):
        (mount / "new").touch()
    with contextlib.suppress(OSError):
        sync(mount)
    with fails(errno.EIO, "a read of a cached file"):
        (mount / "kept").read_bytes()


@long_test
def a_device_that_fails_under_writers_hangs_nobody(place: Place) -> None:
    """All requests, or writes: all see the error, also an fsync of what was written before."""
    place.own()
    for fault in (Disk.fail, Disk.fail_writes):
        with (
            failing(place, 320, domains=2) as disk,
            tempfile.TemporaryDirectory(dir="/run") as directory,
        ):
            notes = Path(directory)
            with mounted(place, disk.path) as mount:
                (mount / "kept").write_bytes(b"k" * 20_000)
                os.sync()
                before = os.open(mount / "before", os.O_CREAT | os.O_RDWR)
                os.write(before, b"b" * 20_000)
                _fail_under_writers(disk, fault, mount, notes, before)
                os.close(before)
                _check_is_shut_down(place, mount)
            disk.mend()
            with mounted(place, disk.path) as mount:
                equal((mount / "kept").read_bytes(), b"k" * 20_000, "what was synced")
                durable = look_at_all(mount, notes)
                check(durable >= NOTING, f"only {durable} things were durable")
            if place.filesystem == "lanefs":
                fsck(place, disk.path)


def _fail_under_writers(
    disk: Disk, fault: Callable[[Disk], None], mount: Path, notes: Path, before: int
) -> None:
    def work(number: int) -> None:
        if number:
            write_on(mount, notes, number)
            return
        while noted(notes) < NOTING:
            os.sched_yield()
        fault(disk)
        with fails(errno.EIO, "fsync of what cannot be written"):
            os.fsync(before)

    children(WRITERS + 1, work)


def _one_block_fails(disk: Disk, block: int, first: int, second: int, alloc: str) -> None:
    """A write to it is an error of each descriptor, once, and so is a read of it."""
    disk.fail([block])
    os.pwrite(first, b"g" * BLOCK, 0)
    for fd, which in ((first, "the writer"), (second, "another")):
        with fails(errno.EIO, f"fsync of what cannot be written, by {which} ({alloc})"):
            os.fsync(fd)
        os.fsync(fd)
    os.posix_fadvise(second, 0, 0, os.POSIX_FADV_DONTNEED)
    with fails(errno.EIO, f"a read of what cannot be read ({alloc})"):
        os.pread(second, BLOCK, 0)
    equal(os.pread(second, BLOCK, BLOCK), b"f" * BLOCK, "the block behind")


@long_test
def a_block_that_fails_is_told_once_to_each_and_the_rest_goes_on(place: Place) -> None:
    """Of one file, which is written over in place and read; others are written as before."""
    place.own()
    for alloc in ("extent", "log") if place.filesystem == "lanefs" else ("",):
        with failing(place, 320, alloc=alloc) as disk:
            with mounted(place, disk.path) as mount:
                path = mount / "f"
                path.write_bytes(b"f" * 16 * BLOCK)
                os.sync()
                blocks = blocks_of(path)
                with (
                    path.open("r+b", buffering=0) as first,
                    path.open("r+b", buffering=0) as second,
                ):
                    _one_block_fails(disk, blocks[0], first.fileno(), second.fileno(), alloc)
                    with (mount / "other").open("wb", buffering=0) as file:
                        file.write(b"o" * 20_000)
                        os.fsync(file.fileno())
                    disk.mend()
                    equal(os.pread(second.fileno(), BLOCK, 0), b"f" * BLOCK, "what had failed")
            fsck(place, disk.path)


def _fails_as_aborted(fd: int) -> None:
    """fsync, by the error that aborts the file system or by what follows from it."""
    try:
        os.fsync(fd)
    except OSError as error:
        check(error.errno in {errno.EIO, errno.EROFS}, f"fsync gives {error}")
    else:
        check(False, "fsync of what finds no blocks succeeds")


@test
def a_bitmap_that_cannot_be_read_is_no_damage(place: Place) -> None:
    """What needs it fails; once it can be read a mount and fsck find nothing wrong."""
    place.own_lanefs("the bitmaps are lanefs's")
    for alloc in ("extent", "log"):
        with failing(place, 320, alloc=alloc) as disk:
            with mounted(place, disk.path) as mount:
                (mount / "f").touch()
            found = read_layout(Path(disk.path))
            with mounted(place, disk.path) as mount:
                os.statvfs(mount)  # Waits until the bitmaps have been counted.
                disk.fail(range(found.bbitmap, found.bbitmap + found.groups))
                with (mount / "f").open("wb", buffering=0) as file:
                    file.write(b"f" * 20_000)
                    _fails_as_aborted(file.fileno())
                disk.mend()
            with mounted(place, disk.path) as mount:
                equal((mount / "f").stat().st_blocks, 0, "blocks of the file")
            fsck(place, disk.path)


@long_test
def a_removed_device_fails_reads_of_what_is_cached(place: Place) -> None:
    """They would else go on for ever, as if the file were still there."""
    place.own()
    if place.filesystem == "ext4":
        raise Skipped("older kernels' go on")
    with removable_device(place, 320) as (device, remove), mounted(place, device) as mount:
        path = mount / "f"
        path.write_bytes(b"f" * BLOCK)
        os.sync()
        with path.open("r+b", buffering=0) as file, Path("/dev/null").open("wb") as null:
            fd = file.fileno()
            equal(os.pread(fd, BLOCK, 0), b"f" * BLOCK, "the bytes")
            remove()
            # Before 6.5 a file system learns of it when its journal is written. What changes here
            # is in memory: a new directory may need a bitmap, whose read fails before that.
            try:
                os.fchmod(fd, 0o600)
                os.fsync(fd)
            except OSError as error:
                check(error.errno in STOPPED, f"a change without the device fails with {error}")
            else:
                check(False, "a change without the device is durable")
            with fails(errno.EIO, "a read of what is cached"):
                os.pread(fd, BLOCK, 0)
            with fails(errno.EIO, "a splice of what is cached"):
                os.sendfile(null.fileno(), fd, 0, BLOCK)
            with fails(errno.EIO, "a list of the names"):
                os.listdir(mount)
