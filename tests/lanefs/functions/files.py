# SPDX-License-Identifier: GPL-2.0-only
"""The bytes of files: sparse, mapped, truncated, unlinked while open, direct."""

import errno
import faulthandler
import mmap
import os
import random
import signal
from pathlib import Path

from tests.lanefs.functions.harness import (
    Place,
    check,
    children,
    equal,
    fails,
    libc,
    long_test,
    open_direct,
    optional,
    run,
    test,
)

BLOCK = 4096
FS_IOC_FIEMAP = 0xC020660B
_AT_SYMLINK_FOLLOW = 0x400


def drop_caches() -> None:
    """What is read next comes from the device."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")


def _settle(place: Place) -> None:
    if os.geteuid() == 0 and place.device is not None:
        drop_caches()


@test
def sparse_files_read_as_zeros(place: Place) -> None:
    """Bytes far apart; SEEK_DATA and SEEK_HOLE find them; few blocks are used."""
    path = place.directory / "f"
    spots = {0: b"start", 5 * BLOCK + 7: b"middle", (1 << 30) + 1: b"far", (1 << 40) - 3: b"end"}
    with path.open("wb") as file:
        for offset, data in spots.items():
            os.pwrite(file.fileno(), data, offset)
    _settle(place)
    equal(path.stat().st_size, 1 << 40, "the size")
    check(path.stat().st_blocks * 512 < 1 << 20, f"{path.stat().st_blocks} sectors are used")
    with path.open("rb") as file:
        fd = file.fileno()
        for offset, data in spots.items():
            equal(os.pread(fd, len(data), offset), data, f"the bytes at {offset}")
            before = max(offset - 100, 0)
            equal(os.pread(fd, offset - before, before), bytes(offset - before), "zeros before")
            at = os.lseek(fd, offset, os.SEEK_DATA)
            equal(at, offset, f"SEEK_DATA within the data at {offset}")
        at = os.lseek(fd, 3 * BLOCK, os.SEEK_DATA)
        check(3 * BLOCK <= at <= 5 * BLOCK + 7, f"SEEK_DATA in a hole gives {at}")
        at = os.lseek(fd, 5 * BLOCK + 7, os.SEEK_HOLE)
        check(5 * BLOCK + 13 <= at <= 1 << 30, f"SEEK_HOLE after data gives {at}")
        equal(os.lseek(fd, (1 << 40) - 1, os.SEEK_HOLE), 1 << 40, "the hole at the end")
        with fails(errno.ENXIO, "SEEK_DATA at the end"):
            os.lseek(fd, 1 << 40, os.SEEK_DATA)


@long_test
def scattered_blocks_make_a_deep_map(place: Place) -> None:
    """Every other block of many, in random order, then the rest, then a cut in the middle."""
    path = place.directory / "f"
    blocks = list(range(0, 6000, 2))
    random.Random(1).shuffle(blocks)
    with path.open("w+b") as file:
        fd = file.fileno()
        for number, block in enumerate(blocks):
            os.pwrite(fd, block.to_bytes(4) * (BLOCK // 4), block * BLOCK)
            # What is on the disk is mapped; what waits in memory may not be.
            if number % 500 == 0:
                os.fsync(fd)
        os.fsync(fd)
        _settle(place)
        for block in blocks:
            equal(os.pread(fd, 4, block * BLOCK + BLOCK - 4), block.to_bytes(4), f"block {block}")
            equal(os.pread(fd, 8, (block + 1) * BLOCK), bytes(8 if block < 5998 else 0), "a hole")
        for block in range(1, 6000, 2):
            os.pwrite(fd, block.to_bytes(4) * (BLOCK // 4), block * BLOCK)
        os.fsync(fd)
        os.ftruncate(fd, 3001 * BLOCK + 5)
        _settle(place)
        for block in range(3001):
            equal(os.pread(fd, 4, block * BLOCK), block.to_bytes(4), f"block {block}")
        equal(len(os.pread(fd, BLOCK, 3001 * BLOCK)), 5, "bytes of the last block")


@test
def truncation_zeroes_what_it_cuts(place: Place) -> None:
    """Bytes beyond a cut must not come back when the file grows again."""
    path = place.directory / "f"
    for size in (0, 1, 100, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 17):
        for settled in (False, True):
            path.write_bytes(b"\xaa" * 5 * BLOCK)
            if settled:
                _settle(place)
            os.truncate(path, size)
            if settled:
                _settle(place)
            os.truncate(path, 6 * BLOCK)
            data = path.read_bytes()
            equal(len(data), 6 * BLOCK, "the size")
            equal(data.count(0xAA), size, f"bytes left after a cut to {size}")
            equal(data[size:].count(0), 6 * BLOCK - size, "zeros after the cut")
            if settled:
                _settle(place)
                equal(path.read_bytes(), data, "the bytes from the device")
    with path.open("r+b") as file:
        os.ftruncate(file.fileno(), 10)
        os.pwrite(file.fileno(), b"x", 3 * BLOCK)
    equal(path.read_bytes()[10 : 3 * BLOCK].count(0), 3 * BLOCK - 10, "zeros before a later write")


@test
def shared_mappings_and_reads_agree(place: Place) -> None:
    """Stores are seen by read, writes by the mapping; they survive the page cache."""
    path = place.directory / "f"
    path.write_bytes(bytes(64 * BLOCK))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        for n in range(64):
            memory[n * BLOCK + n : n * BLOCK + n + 5] = b"store"
            equal(os.pread(file.fileno(), 5, n * BLOCK + n), b"store", "read after a store")
        os.pwrite(file.fileno(), b"write", 7 * BLOCK + 100)
        equal(memory[7 * BLOCK + 100 : 7 * BLOCK + 105], b"write", "the mapping after a write")
        memory.flush()
    _settle(place)
    data = path.read_bytes()
    for n in range(64):
        equal(data[n * BLOCK + n : n * BLOCK + n + 5], b"store", f"page {n}")
    private = place.directory / "p"
    private.write_bytes(b"a" * BLOCK)
    with (
        private.open("r+b") as file,
        mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE) as memory,
    ):
        memory[:1] = b"b"
    equal(private.read_bytes()[:1], b"a", "the file after a store to a private mapping")


@test
def stores_to_holes_allocate(place: Place) -> None:
    """A mapping of a file that was only made long by truncate."""
    path = place.directory / "f"
    with path.open("w+b") as file:
        os.ftruncate(file.fileno(), 100 * BLOCK)
        with mmap.mmap(file.fileno(), 0) as memory:
            equal(memory[50 * BLOCK], 0, "a hole in a mapping")
            for n in range(0, 100, 3):
                memory[n * BLOCK] = 200
    _settle(place)
    data = path.read_bytes()
    equal([n for n in range(100) if data[n * BLOCK]], list(range(0, 100, 3)), "pages stored to")
    equal(sum(map(bool, data)), 34, "bytes that are not zero")


@test
def access_beyond_the_end_of_a_mapping_is_a_signal(place: Place) -> None:
    """SIGBUS, also when the file is cut while it is mapped."""
    path = place.directory / "f"
    path.write_bytes(b"x" * 4 * BLOCK)
    for cut, offset, dies in (
        (BLOCK, 2 * BLOCK, True),
        (BLOCK, 5, False),
        (BLOCK + 1, BLOCK, False),
    ):
        path.write_bytes(b"x" * 4 * BLOCK)
        pid = os.fork()
        if pid == 0:
            faulthandler.disable()  # the signal is what is asked for
            with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
                os.ftruncate(file.fileno(), cut)
                memory[offset] = 1
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        right = -signal.SIGBUS if dies else 0
        equal(os.waitstatus_to_exitcode(status), right, f"a store at {offset} after a cut to {cut}")


@test
def an_unlinked_open_file_lives_until_closed(place: Place) -> None:
    """Its space comes back after the last close, not before."""
    path = place.directory / "f"
    size = 4 << 20
    with path.open("w+b") as file:
        file.write(b"data" * (size // 4))
        file.flush()
        os.fsync(file.fileno())
        used = os.statvfs(place.directory).f_bfree
        path.unlink()
        _settle(place)
        equal(os.fstat(file.fileno()).st_nlink, 0, "links")
        equal(os.pread(file.fileno(), 4, size - 4), b"data", "the last bytes")
        os.pwrite(file.fileno(), b"more", size)
        equal(os.pread(file.fileno(), 8, size - 4), b"datamore", "what was written after unlink")
        # The new file must not get the blocks of one that is still open.
        path.write_bytes(b"other" * 1000)
        equal(os.pread(file.fileno(), 4, 0), b"data", "the first bytes")
    if place.device is None:
        return
    os.sync()
    freed = (os.statvfs(place.directory).f_bfree - used) * os.statvfs(place.directory).f_frsize
    check(freed > size - (1 << 20), f"only {freed} bytes came back after the last close")


@test
def appends_of_many_processes_do_not_mix(place: Place) -> None:
    """Every record is there once, whole."""
    path = place.directory / "f"
    path.touch()

    def append(number: int) -> None:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND)
        for n in range(200):
            os.write(fd, b"%02d:%04d:%s\n" % (number, n, b"x" * (n % 90)))
        os.close(fd)

    children(4, append)
    lines = path.read_bytes().splitlines()
    equal(len(lines), 800, "records")
    equal(
        sorted(lines),
        sorted(b"%02d:%04d:%s" % (p, n, b"x" * (n % 90)) for p in range(4) for n in range(200)),
        "the records",
    )
    for number in range(4):
        own = [line for line in lines if line.startswith(b"%02d:" % number)]
        equal(own, sorted(own, key=lambda line: line[:7]), "the order of one process's records")


@test
def writes_of_odd_sizes_and_vectors(place: Place) -> None:
    """Against an array in memory, across blocks, with overwrites."""
    path = place.directory / "f"
    rng = random.Random(2)
    model = bytearray(300_000)
    end = 0
    with path.open("w+b") as file:
        fd = file.fileno()
        for step in range(800):
            offset = rng.randrange(250_000)
            parts = [rng.randbytes(rng.randrange(1, 9000)) for _ in range(rng.randrange(1, 4))]
            data = b"".join(parts)
            equal(os.pwritev(fd, parts, offset), len(data), "bytes written")
            model[offset : offset + len(data)] = data
            end = max(end, offset + len(data))
            if step % 100 == 50:
                os.fdatasync(fd)
            if step % 200 == 150:
                _settle(place)
        equal(os.fstat(fd).st_size, end, "the size")
        equal(os.pread(fd, end + 10, 0), bytes(model[:end]), "the bytes")
    _settle(place)
    equal(path.read_bytes(), bytes(model[:end]), "the bytes from the device")


@test
def direct_io_and_the_page_cache_agree(place: Place) -> None:
    """O_DIRECT writes are seen by buffered reads and the other way round."""
    path = place.directory / "f"
    path.write_bytes(b"a" * 16 * BLOCK)
    fd = open_direct(path, os.O_RDWR)
    with mmap.mmap(-1, 8 * BLOCK) as memory:
        equal(os.preadv(fd, [memory], 4 * BLOCK), 8 * BLOCK, "bytes read directly")
        equal(memory[:], b"a" * 8 * BLOCK, "the bytes read directly")
        memory[:] = b"b" * 8 * BLOCK
        equal(os.pwritev(fd, [memory], 4 * BLOCK), 8 * BLOCK, "bytes written directly")
        equal(path.read_bytes()[4 * BLOCK : 12 * BLOCK], b"b" * 8 * BLOCK, "a buffered read")
        with path.open("r+b") as file:
            os.pwrite(file.fileno(), b"c", 5 * BLOCK)
        os.preadv(fd, [memory], 4 * BLOCK)
        equal(memory[BLOCK : BLOCK + 1], b"c", "a direct read after a buffered write")
        equal(os.pwritev(fd, [memory], 30 * BLOCK), 8 * BLOCK, "a direct write beyond the end")
    os.close(fd)
    equal(path.stat().st_size, 38 * BLOCK, "the size")
    equal(path.read_bytes()[16 * BLOCK : 30 * BLOCK].count(0), 14 * BLOCK, "the hole")


@test
def anonymous_files_can_be_named(place: Place) -> None:
    """O_TMPFILE, then linkat."""
    with optional("O_TMPFILE"):
        fd = os.open(place.directory, os.O_TMPFILE | os.O_RDWR, 0o600)
    os.write(fd, b"x")
    # os.link does not ask the kernel to follow the link.
    name = os.fsencode(place.directory / "named")
    result = libc.linkat(-100, b"/proc/self/fd/%d" % fd, -100, name, _AT_SYMLINK_FOLLOW)
    equal(result, 0, "linkat")
    os.close(fd)
    equal((place.directory / "named").read_bytes(), b"x", "the named file")


@test
def syncs_succeed(place: Place) -> None:
    """fsync, fdatasync and syncfs of files and directories, also of unlinked ones."""
    for n in range(20):
        path = place.directory / f"f{n}"
        fd = os.open(path, os.O_CREAT | os.O_RDWR)
        os.write(fd, b"x" * n * 1000)
        os.fsync(fd)
        os.ftruncate(fd, n * 500)
        os.fdatasync(fd)
        if n % 2:
            path.unlink()
            os.fsync(fd)
        os.close(fd)
    fd = os.open(place.directory, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    run("sync", "-f", str(place.directory))
