# SPDX-License-Identifier: GPL-2.0-only
"""fallocate that takes a range out of a file (collapse) or puts a hole into it (insert)."""

import errno
import mmap
import os
import random
import resource
import signal
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.lanefs import blocks
from tests.lanefs.functions.crafted import set_word
from tests.lanefs.functions.files import BLOCK, drop_caches
from tests.lanefs.functions.flags import APPEND, IMMUTABLE, flagged
from tests.lanefs.functions.harness import (
    Place,
    Skipped,
    check,
    children,
    equal,
    fails,
    long_test,
    optional_elsewhere,
    run,
    test,
)
from tests.lanefs.functions.loop import fsck, loop_device, mounted
from tests.lanefs.functions.space import KEEP, PUNCH, ZERO, fallocate
from tests.lanefs.images import survey

COLLAPSE, INSERT = 0x08, 0x20
_COARSE = 5
"""CLOCK_REALTIME_COARSE"""
# Bytes of an inode's fields.
_SHIFT_AT, _SHIFT_BY = 120, 124


def _needed(place: Place, path: Path) -> None:
    """Skipped where another file system has no such modes."""
    path.write_bytes(bytes(3 * BLOCK))
    with path.open("r+b") as file, optional_elsewhere(place, "FALLOC_FL_COLLAPSE_RANGE"):
        fallocate(file.fileno(), COLLAPSE, 0, BLOCK)
    path.unlink()


def _settle(place: Place) -> None:
    if os.geteuid() == 0 and place.device is not None:
        drop_caches()


class _Shadow:
    """A file and what it must hold."""

    def __init__(self, path: Path) -> None:
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        self.right = bytearray()

    def write(self, start: int, data: bytes) -> None:
        os.pwrite(self.fd, data, start)
        self._put(start, data)

    def store(self, start: int, data: bytes) -> None:
        """By a mapping that was read before, within the file."""
        data = data[: len(self.right) - start]
        if start >= len(self.right):
            return
        with mmap.mmap(self.fd, len(self.right)) as memory:
            check(memory[:] == self.right, "other bytes in a mapping")
            memory[start : start + len(data)] = data
            self._put(start, data)
            check(memory[:] == self.right, "other bytes in a mapping after a store")

    def cut(self, size: int) -> None:
        os.ftruncate(self.fd, size)
        self.right[:] = self.right[:size].ljust(size, b"\0")

    def punch(self, start: int, length: int) -> None:
        fallocate(self.fd, PUNCH | KEEP, start, length)
        end = min(start + length, len(self.right))
        self.right[start:end] = bytes(max(end - start, 0))

    def allocate(self, start: int, length: int) -> None:
        fallocate(self.fd, KEEP, start, length)

    def collapse(self, first: int, count: int) -> None:
        """Blocks; EINVAL where the range reaches the end."""
        if (first + count) * BLOCK >= len(self.right):
            with fails(errno.EINVAL, "a collapse to the end"):
                fallocate(self.fd, COLLAPSE, first * BLOCK, count * BLOCK)
            return
        fallocate(self.fd, COLLAPSE, first * BLOCK, count * BLOCK)
        del self.right[first * BLOCK : (first + count) * BLOCK]

    def insert(self, first: int, count: int) -> None:
        """Blocks; EINVAL where it begins at the end or behind it."""
        if first * BLOCK >= len(self.right):
            with fails(errno.EINVAL, "an insertion at the end"):
                fallocate(self.fd, INSERT, first * BLOCK, count * BLOCK)
            return
        fallocate(self.fd, INSERT, first * BLOCK, count * BLOCK)
        self.right[first * BLOCK : first * BLOCK] = bytes(count * BLOCK)

    def compare(self, when: str) -> None:
        equal(os.fstat(self.fd).st_size, len(self.right), f"the size {when}")
        found = os.pread(self.fd, len(self.right) + 1, 0)
        if found != self.right:
            at = next(i for i, (a, b) in enumerate(zip(found, self.right, strict=False)) if a != b)
            check(False, f"byte {at} is {found[at]}, right is {self.right[at]}, {when}")

    def _put(self, start: int, data: bytes) -> None:
        self.right.extend(bytes(max(0, start + len(data) - len(self.right))))
        self.right[start : start + len(data)] = data


def _change_at_random(place: Place, path: Path, seed: int, changes: int) -> None:
    """Shifts among writes, stores, cuts, holes and preallocation, in a file of some MiB at most."""
    rng = random.Random(seed)
    file = _Shadow(path)
    for number in range(changes):
        start, length = rng.randrange(200 * BLOCK), rng.randrange(1, 12 * BLOCK)
        data = bytes([rng.randrange(1, 256)]) * length
        first, count = rng.randrange(220), rng.choice([1, 2, rng.randrange(1, 40)])
        work: list[Callable[[], None]] = [
            lambda: file.write(start, data),
            lambda: file.store(start, data),
            lambda: file.cut(rng.randrange(250 * BLOCK)),
            lambda: file.punch(start, length),
            lambda: file.allocate(start, length),
            lambda: file.collapse(first, count),
            lambda: file.insert(first, count),
        ]
        chosen = rng.choices(range(7), (8, 4, 1, 3, 2, 4, 3))[0]
        if len(file.right) > 600 * BLOCK:
            chosen = 2
        work[chosen]()
        if rng.random() < 0.05:
            os.fsync(file.fd)
        if number % 60 == 59:
            _settle(place)
        file.compare(f"after change {number}, of kind {chosen}")
    _settle(place)
    file.compare("from the device")
    os.close(file.fd)


@long_test
def shifted_ranges_hold_the_right_bytes(place: Place) -> None:
    """Also through mappings, in holes, preallocated blocks and what was not written back."""
    _needed(place, place.directory / "f")
    for seed in range(3):
        _change_at_random(place, place.directory / f"f{seed}", seed, 250)


@long_test
def files_that_are_shifted_at_once_do_not_mix(place: Place) -> None:
    """Four processes, each with a file of its own."""
    _needed(place, place.directory / "f")
    children(4, lambda n: _change_at_random(place, place.directory / f"f{n}", 10 + n, 150))


def _scattered(path: Path, count: int) -> _Shadow:
    """Every other block, written so that each is an extent of its own."""
    file = _Shadow(path)
    numbers = list(range(0, 2 * count, 2))
    random.Random(1).shuffle(numbers)
    for at, number in enumerate(numbers):
        file.write(number * BLOCK, struct.pack("=I", number + 1) * (BLOCK // 4))
        if at % 500 == 0:
            os.fsync(file.fd)
    os.fsync(file.fd)
    return file


@long_test
def deep_maps_are_shifted(place: Place) -> None:
    """Of thousands of extents, from their beginning, middle and end, by less and more than they."""
    _needed(place, place.directory / "f")
    file = _scattered(place.directory / "f", 3000)
    for first, count in ((0, 1), (2999, 2), (17, 600), (5000, 300), (1, 1), (700, 3500)):
        file.insert(first, count)
        file.compare(f"after {count} blocks were put in at {first}")
        file.collapse(first, count)
        _settle(place)
        file.compare(f"after they were taken out at {first}")
        file.collapse(first // 2, count // 2 or 1)
        file.compare(f"after {count // 2} were taken out at {first // 2}")
    file.write(5, b"x" * 100_000)
    fallocate(file.fd, INSERT, 3 * BLOCK, 1 << 40)
    fallocate(file.fd, COLLAPSE, 3 * BLOCK, 1 << 40)
    _settle(place)
    file.compare("in the end")
    os.close(file.fd)


@test
def blocks_beyond_the_end_move_as_well(place: Place) -> None:
    """Preallocated ones stay as far behind the end; those taken out become free."""
    path = place.directory / "f"
    _needed(place, path)
    with path.open("w+b", buffering=0) as file:
        fd = file.fileno()
        file.write(b"a" * 20 * BLOCK)
        fallocate(fd, KEEP, 30 * BLOCK, 10 * BLOCK)
        os.fsync(fd)
        before = os.fstat(fd).st_blocks
        fallocate(fd, INSERT, 5 * BLOCK, 100 * BLOCK)
        equal(os.fstat(fd).st_blocks, before, "sectors after an insertion")
        equal(os.lseek(fd, 0, os.SEEK_HOLE), 5 * BLOCK, "SEEK_HOLE")
        equal(os.lseek(fd, 5 * BLOCK, os.SEEK_DATA), 105 * BLOCK, "SEEK_DATA")
        fallocate(fd, COLLAPSE, 2 * BLOCK, 113 * BLOCK)
        equal(os.fstat(fd).st_size, 7 * BLOCK, "the size")
        equal(os.fstat(fd).st_blocks, before - 13 * BLOCK // 512, "sectors after a collapse")
        os.ftruncate(fd, 27 * BLOCK)
        equal(os.fstat(fd).st_blocks, before - 13 * BLOCK // 512, "those behind the end")
        equal(os.pread(fd, 30 * BLOCK, 0), b"a" * 7 * BLOCK + bytes(20 * BLOCK), "the bytes")


@test
def files_are_shifted_on_a_full_disk(place: Place) -> None:
    """A collapse gives its blocks back, and a hole takes none."""
    _needed(place, place.directory / "f")
    with loop_device(place, 100) as (device, _), mounted(place, device) as mount:
        file = _Shadow(mount / "f")
        file.write(0, random.Random(4).randbytes(1000 * BLOCK))
        os.fsync(file.fd)
        with (mount / "all").open("wb", buffering=0) as other, fails(errno.ENOSPC, "a full disk"):
            while other.write(bytes(1 << 20)):
                pass
        file.insert(500, 100)
        file.collapse(500, 100)
        file.collapse(100, 800)
        file.compare("on a full disk")
        os.sync()
        with (mount / "more").open("wb", buffering=0) as other:
            equal(other.write(bytes(500 * BLOCK)), 500 * BLOCK, "bytes in the place that it had")
            os.fsync(other.fileno())
        os.close(file.fd)


@test
def shifts_say_what_is_wrong(place: Place) -> None:
    """By errno, and then nothing has changed."""
    path = place.directory / "f"
    _needed(place, path)
    data = random.Random(3).randbytes(10 * BLOCK)
    path.write_bytes(data)
    with path.open("r+b") as file:
        fd = file.fileno()
        before = os.fstat(fd).st_blocks
        for mode, start, length, code in (
            *((mode, 1, BLOCK, errno.EINVAL) for mode in (COLLAPSE, INSERT)),
            *((mode, BLOCK, BLOCK + 512, errno.EINVAL) for mode in (COLLAPSE, INSERT)),
            *((mode, 0, 0, errno.EINVAL) for mode in (COLLAPSE, INSERT)),
            *((mode, -BLOCK, BLOCK, errno.EINVAL) for mode in (COLLAPSE, INSERT)),
            (COLLAPSE, 0, 10 * BLOCK, errno.EINVAL),
            (COLLAPSE, 5 * BLOCK, 5 * BLOCK, errno.EINVAL),
            (COLLAPSE, 20 * BLOCK, BLOCK, errno.EINVAL),
            (INSERT, 10 * BLOCK, BLOCK, errno.EINVAL),
            (INSERT, 11 * BLOCK, BLOCK, errno.EINVAL),
            (INSERT, 0, 0x7FFFFFFFFFFFF000, errno.EFBIG),
        ):
            with fails(code, f"mode {mode} at {start} of {length} bytes"):
                fallocate(fd, mode, start, length)
        for mode in (COLLAPSE | KEEP, INSERT | KEEP, COLLAPSE | INSERT, COLLAPSE | ZERO):
            try:
                fallocate(fd, mode, 0, BLOCK)
                check(False, f"mode {mode} succeeds")
            except OSError as error:
                right = (errno.EINVAL, errno.EOPNOTSUPP)  # the kernel's choice, by its version
                check(error.errno in right, f"mode {mode} gives {error}")
        equal((os.fstat(fd).st_blocks, path.read_bytes()), (before, data), "the file")
    with path.open("rb") as file, fails(errno.EBADF, "a descriptor for reading"):
        fallocate(file.fileno(), COLLAPSE, 0, BLOCK)


@test
def shifts_change_times_and_keep_to_limits(place: Place) -> None:
    """mtime and ctime; set-user-ID goes; a size beyond RLIMIT_FSIZE is refused."""
    path = place.directory / "f"
    _needed(place, path)
    for mode in (INSERT, COLLAPSE):
        path.write_bytes(b"x" * 4 * BLOCK)
        os.utime(path, (1, 1))
        before = path.stat()
        # Times are those of the last tick.
        while time.clock_gettime_ns(_COARSE) <= before.st_ctime_ns:
            pass
        with path.open("r+b") as file:
            fallocate(file.fileno(), mode, BLOCK, BLOCK)
        after = path.stat()
        check(after.st_mtime_ns > before.st_mtime_ns, f"mode {mode} leaves the mtime")
        check(after.st_ctime_ns > before.st_ctime_ns, f"mode {mode} leaves the ctime")

    def grow() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8 * BLOCK, 8 * BLOCK))
        with path.open("r+b") as file, fails(errno.EFBIG, "an insertion beyond the limit"):
            fallocate(file.fileno(), INSERT, 0, 20 * BLOCK)

    if place.filesystem == "lanefs":
        children(1, lambda _: grow())


@test
def files_that_must_not_change_are_not_shifted(place: Place) -> None:
    """EPERM for immutable and append-only ones, ETXTBSY for a swap file."""
    place.own()
    path = place.directory / "f"
    _needed(place, path)
    path.write_bytes(b"x" * 4 * BLOCK)
    with path.open("r+b") as file:
        for flag in (IMMUTABLE, APPEND):
            with flagged(path, flag):
                for mode in (COLLAPSE, INSERT):
                    with fails(errno.EPERM, f"mode {mode} with flag {flag}"):
                        fallocate(file.fileno(), mode, 0, BLOCK)
        equal(path.read_bytes(), b"x" * 4 * BLOCK, "the bytes")
    place.in_place()
    if not Path("/proc/swaps").exists():
        return
    swap = place.directory / "swap"
    with swap.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 1 << 20)
    swap.chmod(0o600)
    run("mkswap", str(swap))
    done = subprocess.run(["swapon", str(swap)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skipped(f"no swap files: {done.stderr.strip()}")
    try:
        for mode in (COLLAPSE, INSERT):
            with swap.open("r+b") as file, fails(errno.ETXTBSY, f"mode {mode} of a swap file"):
                fallocate(file.fileno(), mode, 0, BLOCK)
    finally:
        run("swapoff", str(swap))


@test
def a_shift_is_durable_when_it_returns(place: Place) -> None:
    """What is written after it in place must not be found in the file as it was before it."""
    place.own_lanefs("others need an fsync")
    with loop_device(place, 100, domains=1) as (device, _):
        with mounted(place, device) as mount:
            (mount / "f").write_bytes(bytes(n for n in range(1, 9) for _ in range(BLOCK)))
            os.sync()
            with (mount / "f").open("r+b") as file:
                fallocate(file.fileno(), COLLAPSE, BLOCK, 2 * BLOCK)
                run("python3", "-c", _SHUT_DOWN, str(mount))
        with mounted(place, device) as mount:
            data = (mount / "f").read_bytes()
        equal([data[n * BLOCK] for n in range(len(data) // BLOCK)], [1, 4, 5, 6, 7, 8], "blocks")


# FS_IOC_SHUTDOWN that writes nothing more.
_SHUT_DOWN = """
import fcntl, os, struct, sys
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, struct.pack("=I", 2))
"""


def _mark(image: Path, number: int, at: int, by: int) -> None:
    """A shift of an inode of domain 0 that a crash has interrupted: the hole, and the orphan."""
    set_word(image, number, _SHIFT_AT, at)
    set_word(image, number, _SHIFT_BY, by)
    (found,) = survey("crafted", image, image.stat().st_size >> 20).blocks["obitmap"][:1]
    with image.open("r+b") as file:
        block = bytearray(os.pread(file.fileno(), BLOCK, found * BLOCK))
        block[blocks.HEADER + number // 8] |= 1 << number % 8
        blocks.seal(block)
        os.pwrite(file.fileno(), block, found * BLOCK)


def _interrupted(place: Place, alloc: str, count: int, finish: str) -> None:
    """A file of a hole in the middle, which whoever comes first takes out: a mount or fsck."""
    with loop_device(place, 100, domains=1, alloc=alloc) as (device, backing):
        with mounted(place, device) as mount:
            file = _scattered(mount / "f", count)
            file.punch(100 * BLOCK, 250 * BLOCK)
            # A collapse may not have freed all yet.
            if finish == "filled":
                os.pwrite(file.fd, b"y" * BLOCK, 120 * BLOCK)
            number = (mount / "f").stat().st_ino
            os.close(file.fd)
        del file.right[100 * BLOCK : 350 * BLOCK]
        _mark(backing, number, 100, 250)
        drop_caches()
        fsck(place, device)
        if finish == "fsck":
            subprocess.run(["fsck.lanefs", "-y", device], capture_output=True, check=False)
        elif finish == "read-only":
            with mounted(place, device, "ro") as mount:
                check((mount / "f").read_bytes() == file.right, "other bytes when read-only")
                run("mount", "-o", "remount,rw", str(mount))
                check((mount / "f").read_bytes() == file.right, "other bytes after a remount")
            fsck(place, device)
        with mounted(place, device) as mount:
            found = (mount / "f").read_bytes()
            equal(len(found), len(file.right), f"the size ({alloc}, {finish})")
            check(found == file.right, f"other bytes ({alloc}, {finish})")
        fsck(place, device)


@long_test
def a_shift_that_a_crash_has_interrupted_is_ended(place: Place) -> None:
    """By a mount, by fsck; a read-only mount shows the file as it will be."""
    place.own_lanefs("the format is lanefs's")
    for alloc in ("extent", "log"):
        for finish in ("mount", "filled", "read-only", "fsck"):
            _interrupted(place, alloc, 250, finish)
    _interrupted(place, "log", 3000, "mount")


@long_test
def collectors_and_shifts_agree(place: Place) -> None:
    """Blocks are moved on the device and in the file at the same time."""
    place.own_lanefs("the option is lanefs's")
    with loop_device(place, 80, domains=1, alloc="log") as (device, _):
        with mounted(place, device) as mount:
            Path(f"/sys/fs/lanefs/{Path(device).name}/gc_low").write_text("100")
            children(3, lambda n: _shift_while_collected(mount / f"f{n}", n))
            moved = int(Path(f"/sys/fs/lanefs/{Path(device).name}/blocks_moved").read_text())
            check(moved > 0, "no block was moved")
        fsck(place, device)


def _shift_while_collected(path: Path, seed: int) -> None:
    rng = random.Random(seed)
    file = _Shadow(path)
    file.write(0, rng.randbytes(2000 * BLOCK))
    for number in range(120):
        for _ in range(20):
            file.write(rng.randrange(1900) * BLOCK, bytes([rng.randrange(1, 256)]) * BLOCK)
        os.fsync(file.fd)
        first, count = rng.randrange(1500), rng.randrange(1, 200)
        file.insert(first, count)
        file.collapse(first if rng.random() < 0.5 else rng.randrange(1500), count)
        if number % 10 == 0:
            file.compare(f"after {number} shifts under collection")
    file.compare("in the end")
    os.close(file.fd)
