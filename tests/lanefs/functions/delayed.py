# SPDX-License-Identifier: GPL-2.0-only
"""Blocks that are only allocated when data is written back: space, maps, cuts and full disks."""

import ctypes
import errno
import fcntl
import mmap
import os
import random
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from tests.lanefs.functions.files import BLOCK, FS_IOC_FIEMAP, drop_caches
from tests.lanefs.functions.harness import (
    Place,
    Skipped,
    check,
    children,
    equal,
    fails,
    long_test,
    optional,
    run,
    test,
)
from tests.lanefs.functions.loop import mounted, slow_device
from tests.lanefs.functions.space import KEEP, PUNCH, fallocate

_SYNC, _DELALLOC = 1, 4
_SYNC_FILE_RANGE_WRITE = 2
_libc = ctypes.CDLL(None, use_errno=True)
_libc.pwrite.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64]
_libc.pwrite.restype = ctypes.c_ssize_t
_libc.sync_file_range.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


@dataclass(frozen=True)
class _Extent:
    start: int
    length: int
    flags: int


def _extents(fd: int, flags: int = 0) -> list[_Extent]:
    """The extents of a file, at most 500, by FIEMAP."""
    count = 500
    header = struct.Struct("=QQIIII")
    extent = struct.Struct("=QQQQQIIII")
    data = bytearray(header.size + count * extent.size)
    header.pack_into(data, 0, 0, (1 << 63) - 1, flags, 0, count, 0)
    with optional("FIEMAP"):
        fcntl.ioctl(fd, FS_IOC_FIEMAP, data)
    found = header.unpack_from(data)[3]
    result = []
    for number in range(found):
        start, _, length, _, _, kind, *_ = extent.unpack_from(
            data, header.size + number * extent.size
        )
        result.append(_Extent(start, length, kind))
    return result


def _free(place: Place) -> int:
    """What statfs says is free now, in bytes: nothing is written before."""
    found = os.statvfs(place.directory)
    return found.f_bfree * found.f_frsize


def _write_in_random_order(fd: int) -> None:
    """Blocks 100 to 355, each by a write of its own; _check_random_order() reads them."""
    order = list(range(100, 356))
    random.Random(3).shuffle(order)
    for block in order:
        os.pwrite(fd, b"%04d" % block * (BLOCK // 4), block * BLOCK)


def _check_allocated(fd: int) -> list[_Extent]:
    """The extents of such a file after a sync: all blocks once; past its end there may be more."""
    found = _extents(fd, _SYNC)
    check(not any(extent.flags & _DELALLOC for extent in found), f"not allocated: {found}")
    at = 100 * BLOCK
    for extent in found:
        if at < 356 * BLOCK:
            equal(extent.start, at, "where the next extent begins")
        check(extent.start >= at, f"a block is shown twice: {found}")
        at = extent.start + extent.length
    check(at >= 356 * BLOCK, f"not all blocks: {found}")
    return found


def _check_random_order(path: Path) -> None:
    drop_caches()
    data = path.read_bytes()
    for block in range(356):
        right = b"%04d" % block * (BLOCK // 4) if block >= 100 else bytes(BLOCK)
        check(data[block * BLOCK : (block + 1) * BLOCK] == right, f"other bytes in block {block}")


@test
def data_is_seen_before_it_is_allocated(place: Place) -> None:
    """SEEK_DATA, SEEK_HOLE, FIEMAP and st_blocks right after a write; few extents after a sync."""
    path = place.directory / "f"
    os.sync()
    with path.open("w+b") as file:
        fd = file.fileno()
        _write_in_random_order(fd)
        equal(os.lseek(fd, 0, os.SEEK_DATA), 100 * BLOCK, "SEEK_DATA from the hole")
        equal(os.lseek(fd, 0, os.SEEK_HOLE), 0, "SEEK_HOLE in the hole")
        equal(os.lseek(fd, 100 * BLOCK, os.SEEK_HOLE), 356 * BLOCK, "SEEK_HOLE in the data")
        check(os.fstat(fd).st_blocks >= 256 * BLOCK // 512, "st_blocks without what waits")
        before = _extents(fd)
        equal(sum(extent.length for extent in before), 256 * BLOCK, "bytes that FIEMAP shows")
        equal(before[0].start, 100 * BLOCK, "where FIEMAP begins")
        if place.filesystem.startswith("lanefs"):
            check(all(extent.flags & _DELALLOC for extent in before), f"allocated: {before}")
        after = _check_allocated(fd)
        check(len(after) <= 8, f"{len(after)} extents of blocks written in random order")
    _check_random_order(path)


@test
def space_is_taken_by_a_write_and_given_back_by_a_cut(place: Place) -> None:
    """statfs counts what waits to be written; truncate, punching and unlink give it back."""
    place.own()
    size = 8 << 20
    path = place.directory / "f"
    with path.open("w+b") as file:
        fd = file.fileno()
        os.sync()
        before = _free(place)
        os.pwrite(fd, b"x" * size, 0)
        check(before - _free(place) >= size, f"{before - _free(place)} bytes for {size}")
        os.ftruncate(fd, size // 2 + 5)
        taken = before - _free(place)
        check(taken <= size // 2 + (1 << 19), f"{taken} bytes after a cut to half")
        with optional("punching"):
            fallocate(fd, PUNCH | KEEP, BLOCK, size // 4)
        taken = before - _free(place)
        check(taken <= size // 4 + (1 << 19), f"{taken} bytes after a hole of a quarter")
        os.ftruncate(fd, 0)
        check(before - _free(place) < 1 << 17, f"{before - _free(place)} bytes after a cut to 0")
        equal(os.fstat(fd).st_blocks, 0, "st_blocks after a cut to 0")
        os.ftruncate(fd, size)
        with mmap.mmap(fd, size) as memory:
            for offset in range(0, size, BLOCK):
                memory[offset] = 1
            check(before - _free(place) >= size, "stores to holes take no space")
        os.ftruncate(fd, 0)
        os.pwrite(fd, b"x" * size, 0)
    path.unlink()
    check(before - _free(place) < 1 << 17, f"{before - _free(place)} bytes after unlink")


@test
def a_write_cut_short_keeps_no_space(place: Place) -> None:
    """Memory that ends in the middle: what was not written takes nothing."""
    place.own()
    pages, good = 64, 5
    memory = mmap.mmap(-1, pages * BLOCK)
    memory[: good * BLOCK] = b"m" * good * BLOCK
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    equal(_libc.mprotect(address + good * BLOCK, (pages - good) * BLOCK, 0), 0, "mprotect")
    path = place.directory / "f"
    with path.open("w+b") as file:
        fd = file.fileno()
        os.sync()
        before = _free(place)
        for number in range(20):
            start = number * pages * BLOCK
            written = _libc.pwrite(fd, address, pages * BLOCK, start)
            equal(written, good * BLOCK, "bytes written of those that can be read")
        check(os.fstat(fd).st_blocks * 512 <= 20 * good * BLOCK + (1 << 17), "st_blocks")
        taken = before - _free(place)
        check(taken < 20 * good * BLOCK + (1 << 19), f"{taken} bytes for {20 * good * BLOCK}")
        with fails(errno.EFAULT, "a write from nothing"):
            if _libc.pwrite(fd, address + good * BLOCK, BLOCK, 1 << 30) < 0:
                raise OSError(ctypes.get_errno(), "pwrite")
        os.fsync(fd)
        equal(os.fstat(fd).st_size, (19 * pages + good) * BLOCK, "the size")
        for number in range(20):
            data = os.pread(fd, (good + 1) * BLOCK, number * pages * BLOCK)
            equal(data.count(b"m"), good * BLOCK, "the bytes that were written")


@long_test
def what_was_accepted_finds_its_space(place: Place) -> None:
    """Scattered blocks until ENOSPC, nothing written back by us: every fsync succeeds then."""
    place.own()
    rng = random.Random(4)
    limit = 1 << 15
    files = [os.open(place.directory / f"f{n}", os.O_CREAT | os.O_RDWR) for n in range(6)]
    filler = os.open(place.directory / "filler", os.O_CREAT | os.O_RDWR)
    # Most of the disk in one piece, so that the rest is scattered soon.
    free = os.statvfs(place.directory)
    with optional("fallocate"):
        fallocate(filler, 0, 0, max(free.f_bavail - 12_000, 1) * free.f_frsize)
    written: dict[tuple[int, int], int] = {}
    try:
        while len(written) < limit:
            number, block = rng.randrange(len(files)), rng.randrange(limit) * 2
            value = rng.randrange(1, 256)
            os.pwrite(files[number], bytes([value]) * BLOCK, block * BLOCK)
            written[number, block] = value
    except OSError as error:
        equal(error.errno, errno.ENOSPC, "errno of a write on a full disk")
    check(len(written) > 3000, f"only {len(written)} blocks fitted")
    for fd in files:
        os.fsync(fd)
        os.close(fd)
    os.close(filler)
    drop_caches()
    files = [os.open(place.directory / f"f{n}", os.O_RDONLY) for n in range(6)]
    for (number, block), value in written.items():
        data = os.pread(files[number], BLOCK, block * BLOCK)
        check(data.count(value) == BLOCK, f"other bytes in block {block} of f{number}")
    for fd in files:
        os.close(fd)


@test
def a_direct_write_without_space_changes_nothing(place: Place) -> None:
    """ENOSPC for a write whose first blocks are there: their bytes stay, and the size."""
    place.own()
    if not place.filesystem.startswith("lanefs"):
        raise Skipped("others may write a part")
    path, rest = place.directory / "f", place.directory / "rest"
    path.write_bytes(b"a" * 16 * BLOCK)
    os.sync()
    free = os.statvfs(place.directory)
    with rest.open("wb") as file:
        fallocate(file.fileno(), 0, 0, (free.f_bavail - 200) * free.f_frsize)
    fd = os.open(path, os.O_RDWR | os.O_DIRECT)
    with mmap.mmap(-1, 500 * BLOCK) as memory:
        memory[:] = b"b" * 500 * BLOCK
        before = _free(place)
        with fails(errno.ENOSPC, "a direct write of more than there is"):
            os.pwritev(fd, [memory], 4 * BLOCK)
        equal(os.fstat(fd).st_size, 16 * BLOCK, "the size")
        equal(path.read_bytes().count(b"a"), 16 * BLOCK, "bytes that were there before")
        check(before - _free(place) < 20 * BLOCK, f"{before - _free(place)} bytes are gone")
        rest.unlink()
        equal(os.pwritev(fd, [memory], 4 * BLOCK), 500 * BLOCK, "bytes written with space")
    os.close(fd)
    equal(path.read_bytes(), b"a" * 4 * BLOCK + b"b" * 500 * BLOCK, "the bytes")


@long_test
def nothing_is_left_of_promises(place: Place) -> None:
    """Writes, stores, direct writes, cuts, holes and syncs of one file; then freeze and unmount."""
    place.own()
    path = place.directory / "f"
    blocks = 400
    path.write_bytes(b"")
    os.truncate(path, blocks * BLOCK)
    before = _free(place)

    def work(number: int) -> None:
        rng = random.Random(number)
        fd = os.open(path, os.O_RDWR | (os.O_DIRECT if number == 2 else 0))
        memory = mmap.mmap(-1, 16 * BLOCK)
        end = time.monotonic() + 5
        while time.monotonic() < end:
            # A direct write that meets a store makes the kernel report an error of the file.
            first = blocks // 2 if number == 2 else 0
            start = rng.randrange(first, blocks - 16) * BLOCK
            length = rng.randrange(1, 16) * BLOCK
            if number in (0, 2):
                os.pwritev(fd, [memoryview(memory)[:length]], start)
            elif number == 1:
                # Cuts are beyond what is mapped.
                with mmap.mmap(fd, blocks * BLOCK // 2) as mapped:
                    for _ in range(20):
                        mapped[rng.randrange(blocks // 2) * BLOCK] = 1
            elif rng.random() < 0.4:
                fallocate(fd, PUNCH | KEEP, start + rng.randrange(BLOCK), length)
            elif rng.random() < 0.7:
                os.ftruncate(fd, rng.randrange(blocks * BLOCK // 2, blocks * BLOCK))
            else:
                os.fdatasync(fd)
        os.close(fd)

    with optional("punching"), path.open("r+b") as file:
        fallocate(file.fileno(), PUNCH | KEEP, 0, BLOCK)
    children(4, work)
    run("fsfreeze", "-f", str(place.mount_point))
    run("fsfreeze", "-u", str(place.mount_point))
    path.unlink()
    os.sync()
    check(before - _free(place) < 1 << 20, f"{before - _free(place)} bytes are gone")
    place.cycle()
    equal(list(Path(place.directory).iterdir()), [], "the directory")


@long_test
def blocks_ahead_go_with_the_last_writer(place: Place) -> None:
    """A file that grows and is synced may hold more than it has; when it is closed, no more."""
    here = place.directory

    def grow(number: int) -> None:
        for n in range(8):
            with (here / f"f{number}.{n}").open("wb", buffering=0) as file:
                for block in range(100):
                    file.write(b"%d" % (block % 10) * BLOCK)
                    if block == 20 or (n % 2 and block % 7 == 0):
                        os.fsync(file.fileno())
            # The last blocks are written back when nobody has the file open any more.

    def sync(number: int) -> None:
        if number < 2:
            grow(number)
            return
        for _ in range(60):
            os.sync()
            time.sleep(0.02)

    children(3, sync)
    os.sync()
    for path in here.iterdir():
        blocks = path.stat().st_blocks * 512 // BLOCK
        check(blocks <= 103, f"{blocks} blocks of {path.name}, which has 100")
        data = path.read_bytes()
        equal(len(data), 100 * BLOCK, f"the size of {path.name}")
        for block in range(100):
            part = data[block * BLOCK : (block + 1) * BLOCK]
            check(part == b"%d" % (block % 10) * BLOCK, f"other bytes in block {block}")


@long_test
def fiemap_shows_data_that_is_being_written(place: Place) -> None:
    """Without FIEMAP_FLAG_SYNC, on a device that takes its time, in place and in a log."""
    for alloc in ("extent", "log"):
        with (
            slow_device(place, 256, 0.05, alloc=alloc) as device,
            mounted(place, device) as mount,
            (mount / "f").open("wb", buffering=0) as file,
        ):
            file.write(b"x" * 64 * BLOCK)
            started = _libc.sync_file_range(file.fileno(), 0, 0, _SYNC_FILE_RANGE_WRITE)
            equal(started, 0, "sync_file_range")
            shown = sum(extent.length for extent in _extents(file.fileno()))
            check(shown >= 64 * BLOCK, f"{alloc}: FIEMAP shows {shown} bytes of {64 * BLOCK}")


@test
def fiemap_shows_no_blocks_taken_ahead(place: Place) -> None:
    """Of a file that grows none past the end, but those that fallocate took there."""
    path = place.directory / "f"
    with path.open("w+b", buffering=0) as file:
        for size in range(30_000, 1_500_000, 70_000):
            file.write(b"x" * (size - os.fstat(file.fileno()).st_size))
            os.fsync(file.fileno())
            end = -(-size // BLOCK) * BLOCK
            found = _extents(file.fileno())
            equal(sum(extent.length for extent in found), end, "bytes that FIEMAP shows")
            equal(max(extent.start + extent.length for extent in found), end, "where they end")
        fallocate(file.fileno(), KEEP, end, 64 * BLOCK)
        found = _extents(file.fileno())
        equal(sum(extent.length for extent in found), end + 64 * BLOCK, "bytes with those kept")
        file.write(b"y" * 5000)
        os.fsync(file.fileno())
        equal(sum(extent.length for extent in _extents(file.fileno())), end + 64 * BLOCK, "later")
