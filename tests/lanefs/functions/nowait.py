# SPDX-License-Identifier: GPL-2.0-only
"""Reads and writes that do not wait (RWF_NOWAIT), and whom writeback is charged to."""

import mmap
import os
import subprocess
import time
from pathlib import Path

from tests.lanefs.functions.harness import (
    Place,
    Skipped,
    check,
    children,
    equal,
    load_ends,
    long_test,
    open_direct,
    optional_elsewhere,
    run,
    test,
)

BLOCK = 4096
SECONDS = 4.0


def _read(place: Place, fd: int, at: int) -> bytes | None:
    """A block, or None where that would wait."""
    buffer = mmap.mmap(-1, BLOCK)
    with optional_elsewhere(place, "reads that do not wait"):
        try:
            count = os.preadv(fd, [buffer], at, os.RWF_NOWAIT)
        except BlockingIOError:
            return None
    return buffer[:count]


def _write(place: Place, fd: int, data: bytes, at: int) -> int:
    """Bytes written; 0 where that would wait."""
    buffer = mmap.mmap(-1, len(data))
    buffer[:] = data
    with optional_elsewhere(place, "writes that do not wait"):
        try:
            return os.pwritev(fd, [buffer], at, os.RWF_NOWAIT)
        except BlockingIOError:
            return 0


@test
def a_read_that_does_not_wait_is_of_the_cache(place: Place) -> None:
    """What is cached is read at once, what is not is EAGAIN and nothing else."""
    path = place.directory / "f"
    path.write_bytes(b"a" * 4 * BLOCK)
    fd = os.open(path, os.O_RDONLY)
    equal(_read(place, fd, BLOCK), b"a" * BLOCK, "a cached block")
    equal(_read(place, fd, 4 * BLOCK), b"", "behind the end")
    os.sync()
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    check(_read(place, fd, 0) in (None, b"a" * BLOCK), "another answer than the block or EAGAIN")
    direct = open_direct(path, os.O_RDONLY)
    if place.data_moves():
        # A direct read is one of the cache, too, and before 6.12 RWF_NOWAIT reads nothing into it.
        os.pread(fd, BLOCK, 0)
    found = None
    for _ in range(100):
        found = _read(place, direct, 0)
        check(found in (None, b"a" * BLOCK), "a direct read: another answer")
        if found:
            break
        time.sleep(0.01)
    check(found is not None, "a direct read of a file that nobody uses always waits")
    os.close(direct)
    os.close(fd)


@test
def a_write_that_does_not_wait_overwrites(place: Place) -> None:
    """Blocks that are there are written at once, and what would take new ones is EAGAIN or done."""
    path = place.directory / "f"
    path.write_bytes(b"a" * 8 * BLOCK)
    fd = os.open(path, os.O_RDWR)
    # The times may have to be changed, for which it would wait.
    done = 0
    for _ in range(50):
        os.pwrite(fd, b"t", 0)
        done = _write(place, fd, b"b" * BLOCK, BLOCK)
        if done:
            break
    equal(done, BLOCK, "bytes of a block in the cache")
    size = 8 * BLOCK
    for _ in range(20):
        size += _write(place, fd, b"c" * BLOCK, size)
        equal(os.fstat(fd).st_size, size, "the size after an append")
    os.fsync(fd)
    os.close(fd)
    whole = path.read_bytes()
    equal(whole[BLOCK : 2 * BLOCK], b"b" * BLOCK, "what was overwritten")
    equal(whole[8 * BLOCK :], b"c" * (size - 8 * BLOCK), "what was appended")


@test
def a_direct_write_that_would_wait_writes_nothing(place: Place) -> None:
    """Into a written block and a hole behind it: EAGAIN, and the block is as it was."""
    path = place.directory / "f"
    path.write_bytes(b"a" * BLOCK)
    os.truncate(path, 2 * BLOCK)
    os.sync()
    fd = open_direct(path, os.O_RDWR)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    block = mmap.mmap(-1, BLOCK)
    block[:] = b"a" * BLOCK
    found = mmap.mmap(-1, BLOCK)
    for _ in range(300):
        # The times have been changed just now, and need not be again.
        os.pwritev(fd, [block], 0)
        if _write(place, fd, b"b" * 2 * BLOCK, 0):
            break
        os.preadv(fd, [found], 0)
        equal(found[:], b"a" * BLOCK, "the block after EAGAIN")
    os.close(fd)


@test
def a_direct_write_that_does_not_wait_overwrites(place: Place) -> None:
    """Written blocks within the file only; holes and the end are EAGAIN, and stay as they are."""
    place.in_place()
    path = place.directory / "f"
    path.write_bytes(b"a" * 4 * BLOCK)
    os.truncate(path, 8 * BLOCK)
    os.sync()
    fd = open_direct(path, os.O_RDWR)
    # A page in the cache would have to be removed, for which it would wait.
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    first = mmap.mmap(-1, BLOCK)
    first[:] = b"a" * BLOCK
    # The times may have to be changed, for which it would wait.
    done = 0
    for _ in range(50):
        os.pwritev(fd, [first], 0)
        done = _write(place, fd, b"b" * BLOCK, BLOCK)
        if done:
            break
    equal(done, BLOCK, "bytes of a written block")
    if place.filesystem == "lanefs":
        equal(_write(place, fd, b"c" * BLOCK, 6 * BLOCK), 0, "bytes of a hole")
        equal(_write(place, fd, b"c" * BLOCK, 8 * BLOCK), 0, "bytes behind the end")
        equal(path.stat().st_size, 8 * BLOCK, "size")
    os.close(fd)
    equal(path.read_bytes()[: 3 * BLOCK], b"a" * BLOCK + b"b" * BLOCK + b"a" * BLOCK, "the file")


@long_test
def writes_that_do_not_wait_beside_others_lose_nothing(place: Place) -> None:
    """Each has blocks of its own; what it was told is written is there."""
    path = place.directory / "f"
    blocks = 64
    path.write_bytes(bytes(blocks * BLOCK))
    fd = os.open(path, os.O_RDWR)
    # Here, so that what cannot do it is told by the test, and not by its children.
    _write(place, fd, bytes(BLOCK), 0)
    os.close(fd)
    end = load_ends(SECONDS)

    def work(number: int) -> None:
        fd = os.open(path, os.O_RDWR)
        if number == 3:
            while time.monotonic() < end:
                os.fsync(fd)
        count = 0
        while time.monotonic() < end:
            count += 1
            at = (count % 16 * 4 + number) * BLOCK
            data = bytes([count % 255 + 1]) * BLOCK
            if _write(place, fd, data, at) == BLOCK:
                equal(os.pread(fd, BLOCK, at), data, f"block {at // BLOCK}")
            else:
                os.pwrite(fd, data, at)
        os.close(fd)

    children(4, work)


def cgroups(place: Place, *controllers: str) -> Path:
    """The root of cgroup v2 with these controllers, mounted where it is not.

    Skipped where the mount, and so the machine, is not ours.
    """
    place.own()
    root = Path("/sys/fs/cgroup")
    if not (root / "cgroup.controllers").exists():
        run("mount", "-t", "cgroup2", "none", str(root))
    if not set(controllers) <= set((root / "cgroup.controllers").read_text().split()):
        raise Skipped(f"no cgroup v2 with {', '.join(controllers)}")
    for controller in controllers:
        (root / "cgroup.subtree_control").write_text(f"+{controller}")
    return root


def _in_cgroup(group: Path, directory: Path, command: str) -> None:
    """Run a shell command as a member of a cgroup."""
    script = f"echo 0 > {group}/cgroup.procs; {command}"
    subprocess.run(["sh", "-ec", script], cwd=directory, check=True)


def _written(group: Path, device: str) -> int:
    """Bytes that were written to a device (MAJOR:MINOR) for a cgroup."""
    for line in (group / "io.stat").read_text().splitlines():
        name, *fields = line.split()
        if name == device:
            return int(dict(field.split("=") for field in fields)["wbytes"])
    return 0


@test
def writeback_is_charged_to_who_wrote(place: Place) -> None:
    """Two cgroups write, a third party syncs: each has its own bytes; and they can be removed."""
    root = cgroups(place, "io", "memory")
    number = place.directory.stat().st_dev
    device = f"{os.major(number)}:{os.minor(number)}"
    sizes = {"fscale-a": 4 << 20, "fscale-b": 1 << 20}
    for name, size in sizes.items():
        (root / name).mkdir()
        _in_cgroup(root / name, place.directory, f"head -c {size} /dev/zero > {name}")
    os.sync()
    try:
        for name, size in sizes.items():
            found = _written(root / name, device)
            check(size <= found <= size + (size >> 1), f"{name}: {found} bytes, of {size} written")
    finally:
        # With inodes that it dirtied still in memory.
        for name in sizes:
            _in_cgroup(root / name, place.directory, f"printf again > {name}")
            (root / name).rmdir()
    place.cycle()
    for name in sizes:
        equal((place.directory / name).read_bytes(), b"again", name)
