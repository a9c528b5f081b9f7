# SPDX-License-Identifier: GPL-2.0-only
"""Many processes on the same names: no deadlock, no error that the order of events cannot give."""

import errno
import mmap
import os
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.lanefs.functions.harness import (
    Failed,
    Place,
    check,
    children,
    equal,
    load_ends,
    long_test,
    open_direct,
    run,
    test,
)
from tests.lanefs.functions.loop import mounted, slow_device
from tests.lanefs.functions.space import KEEP, PUNCH, fallocate

SECONDS = 6.0


def allowed(call: Callable[[], object], *codes: int) -> bool:
    """Do a call that others may make fail with one of `codes`; whether it succeeded."""
    try:
        call()
    except OSError as error:
        if error.errno not in codes:
            raise
        return False
    return True


@test
def exclusive_creation_has_one_winner(place: Place) -> None:
    """Of all processes, for each name."""
    pipe_out, pipe_in = os.pipe()

    def create(number: int) -> None:
        won = 0
        for n in range(300):
            path = place.directory / f"f{n}"

            def make(path: Path = path) -> None:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))

            won += allowed(make, errno.EEXIST)
        os.write(pipe_in, b"%d " % won)

    children(4, create)
    os.close(pipe_in)
    with os.fdopen(pipe_out) as file:
        equal(sum(map(int, file.read().split())), 300, "winners")
    equal(len(os.listdir(place.directory)), 300, "files")


@long_test
def renames_against_each_other_do_not_deadlock(place: Place) -> None:
    """Directories and files moved in all directions at once; none is lost, none is there twice."""
    parents = [place.directory / f"p{n}" for n in range(4)]
    for number, parent in enumerate(parents):
        parent.mkdir()
        for n in range(6):
            (parent / f"d{number}{n}").mkdir()
            (parent / f"f{number}{n}").write_text(f"f{number}{n}")
    names = [f"{kind}{p}{n}" for kind in "df" for p in range(4) for n in range(6)]
    end = load_ends(SECONDS)

    def move(number: int) -> None:
        rng = random.Random(number)
        while time.monotonic() < end:
            name = rng.choice(names)
            old, new = rng.sample(parents, 2)
            if rng.random() < 0.2:
                below = f"d{rng.randrange(4)}{rng.randrange(6)}"
                new = rng.choice(parents) / below
            if rng.random() < 0.3:
                old = rng.choice(parents) / f"d{rng.randrange(4)}{rng.randrange(6)}"

            def rename(a: Path = old / name, b: Path = new / name) -> None:
                a.rename(b)

            allowed(rename, errno.ENOENT, errno.EINVAL, errno.ENOTEMPTY, errno.ENOTDIR)

    children(4, move)
    found: list[str] = []
    for base, directories, files in os.walk(place.directory):
        found += [name for name in [*directories, *files] if name not in ("p0", "p1", "p2", "p3")]
        for name in files:
            equal(Path(base, name).read_text(), name, "a moved file")
    equal(sorted(found), sorted(names), "the names")


@long_test
def creation_and_removal_in_one_directory(place: Place) -> None:
    """All kinds of objects under a few names; in the end the directory can be emptied."""
    end = load_ends(SECONDS)
    names = [place.directory / f"n{n}" for n in range(12)]
    expected = (
        *(errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY, errno.EISDIR, errno.ENOTDIR),
        *(errno.EINVAL, errno.EPERM, errno.ELOOP, errno.ENXIO),
    )

    def work(number: int) -> None:
        rng = random.Random(number)
        while time.monotonic() < end:
            a, b = rng.choice(names), rng.choice(names)
            call = rng.choice(
                (
                    lambda: a.mkdir(),
                    lambda: (a / "below").touch(),
                    lambda: a.touch(),
                    lambda: os.truncate(a, 5000),
                    lambda: a.unlink(),
                    lambda: a.rmdir(),
                    lambda: os.unlink(a / "below"),
                    lambda: os.rename(a, b),
                    lambda: os.rename(a / "below", b),
                    lambda: os.link(a, b, follow_symlinks=False),
                    lambda: a.symlink_to(b.name),
                    lambda: os.listdir(a),
                    lambda: a.read_bytes(),
                )
            )
            allowed(call, *expected)

    children(4, work)
    for path in place.directory.iterdir():
        run("rm", "-rf", str(path))
    equal(os.listdir(place.directory), [], "the directory")
    if place.directory.stat().st_nlink != 1:
        equal(place.directory.stat().st_nlink, 2, "its links")


@long_test
def links_and_unlinks_of_one_file_count_right(place: Place) -> None:
    """Its link count is the number of its names when all is quiet."""
    target = place.directory / "target"
    target.write_text("x")
    end = load_ends(SECONDS)

    def work(number: int) -> None:
        own = place.directory / f"d{number}"
        own.mkdir()
        rng = random.Random(number)
        while time.monotonic() < end:
            path = own / f"l{rng.randrange(20)}"
            if rng.random() < 0.5:
                allowed(partial(os.link, target, path), errno.EEXIST)
            else:
                allowed(path.unlink, errno.ENOENT)

    children(4, work)
    names = 1 + sum(len(os.listdir(place.directory / f"d{n}")) for n in range(4))
    equal(target.stat().st_nlink, names, "links")


@long_test
def writers_and_a_truncater_of_one_file(place: Place) -> None:
    """In the end every block is whole: all of one writer, or zeros.

    A read meanwhile may see a part of a write, as Linux's page cache allows, but no other bytes.
    """
    path = place.directory / "f"
    path.touch()
    end = load_ends(SECONDS)
    size = 64

    def work(number: int) -> None:
        rng = random.Random(number)
        fd = os.open(path, os.O_RDWR)
        block = bytes([number + 1]) * 4096
        while time.monotonic() < end:
            at = rng.randrange(size) * 4096
            if number == 3:
                os.ftruncate(fd, at)
            elif number == 2:
                data = os.pread(fd, 4096, at)
                check(set(data) <= {0, 1, 2}, f"bytes that nobody wrote: {set(data)}")
            else:
                os.pwrite(fd, block, at)
            if rng.random() < 0.02:
                os.fsync(fd)
        os.close(fd)

    children(4, work)
    data = path.read_bytes()
    for at in range(0, len(data), 4096):
        if len(set(data[at : at + 4096])) > 1:
            raise Failed(f"block {at // 4096} is mixed: {set(data[at : at + 4096])}")


@long_test
def each_overwrites_its_own_part_of_a_shared_file(place: Place) -> None:
    """What a process wrote it reads again, at any place in its blocks, and after an umount."""
    place.own()
    path = place.directory / "f"
    blocks = 8
    path.write_bytes(bytes(4 * blocks * 4096))
    end = load_ends(SECONDS)

    def work(number: int) -> None:
        rng = random.Random(number)
        fd = os.open(path, os.O_RDWR)
        first = number * blocks * 4096
        mine = bytearray(blocks * 4096)
        while time.monotonic() < end:
            at = rng.randrange(len(mine))
            data = rng.randbytes(min(rng.choice((1, 100, 4096, 5000)), len(mine) - at))
            equal(os.pwrite(fd, data, first + at), len(data), "bytes written")
            mine[at : at + len(data)] = data
            check(os.pread(fd, len(mine), first) == mine, f"process {number} reads other bytes")
            if rng.random() < 0.05:
                os.fsync(fd)
        (place.directory / f"of{number}").write_bytes(mine)
        os.close(fd)

    children(4, work)
    place.cycle()
    parts = b"".join((place.directory / f"of{number}").read_bytes() for number in range(4))
    check(path.read_bytes() == parts, "the file holds other bytes after it was mounted again")


@long_test
def overwrites_against_holes_and_truncations(place: Place) -> None:
    """In a block that goes away and comes back there are only zeros and what its writer wrote."""
    path = place.directory / "f"
    blocks = 6
    path.write_bytes(bytes(blocks * 4096))
    end = load_ends(SECONDS)

    def work(number: int) -> None:
        rng = random.Random(number)
        fd = os.open(path, os.O_RDWR)
        while time.monotonic() < end:
            block = rng.randrange(blocks)
            if number < 3:
                if block % 3 != number:
                    continue
                at, tag = rng.randrange(4000), number + 1
                os.pwrite(fd, bytes([tag]) * rng.randrange(1, 4097 - at), block * 4096 + at)
                data = set(os.pread(fd, 4096, block * 4096))
                check(data <= {0, tag}, f"block {block} of process {number} holds {data}")
            elif rng.random() < 0.5:
                fallocate(fd, PUNCH | KEEP, block * 4096, 4096)
            else:
                os.ftruncate(fd, block * 4096 + rng.randrange(4096))
                os.ftruncate(fd, blocks * 4096)
        os.close(fd)

    children(4, work)
    data = path.read_bytes()
    for block in range(blocks):
        found = set(data[block * 4096 : (block + 1) * 4096])
        check(found <= {0, block % 3 + 1}, f"block {block} holds {found}")


@long_test
def many_read_a_page_that_comes_and_goes(place: Place) -> None:
    """They see bytes of the file and zeros, never what others have in memory.

    The page is rewritten, punched out, cut off, dropped and moved; what is freed others fill.
    """
    place.own()
    path = place.directory / "f"
    path.write_bytes(b"\1" * 4096)
    end = load_ends(SECONDS)
    # A kernel may be built without the second one.
    ways = (Path("/proc/sys/vm/drop_caches"), Path("/proc/sys/vm/compact_memory"))
    there = [way for way in ways if way.exists()]

    def change(fd: int, rng: random.Random) -> None:
        what = rng.randrange(4)
        if what == 0:
            fallocate(fd, PUNCH | KEEP, 0, 4096)
        elif what == 1:
            os.ftruncate(fd, rng.randrange(4096))
            os.ftruncate(fd, 4096)
        elif what == 2:
            os.fsync(fd)
            rng.choice(there).write_text("1")
            os.posix_fadvise(fd, 0, 4096, os.POSIX_FADV_DONTNEED)
        else:
            # Pages of another file's bytes take the place of those that were freed.
            other = place.directory / "other"
            other.write_bytes(b"\xee" * (1 << 20))
            other.unlink()
        os.pwrite(fd, bytes([rng.randrange(1, 3)]) * 4096, 0)

    def work(number: int) -> None:
        rng = random.Random(number)
        fd = os.open(path, os.O_RDWR)
        while time.monotonic() < end:
            if number == 0:
                change(fd, rng)
                continue
            at = rng.choice((0, 0, rng.randrange(4096)))
            for _ in range(50):
                seen = set(os.pread(fd, 4096 - at, at))
                check(seen <= {0, 1, 2}, f"bytes that are not the file's: {seen}")
        os.close(fd)

    children(5, work)


@long_test
def a_direct_read_sees_what_was_written_while_others_sync(place: Place) -> None:
    """Whoever writes a page out, it is on the device when a direct read asks for it."""
    path = place.directory / "f"
    path.write_bytes(bytes(8 * 4096))
    os.sync()
    end = load_ends(SECONDS)

    def work(number: int) -> None:
        fd = os.open(path, os.O_RDWR)
        direct = open_direct(path, os.O_RDONLY)
        buffer = mmap.mmap(-1, 4096)
        rounds = 0
        while time.monotonic() < end:
            if number == 3:
                os.sync()
            elif number == 2:
                os.fsync(fd)
            else:
                rounds += 1
                data = (b"%d.%07d " % (number, rounds)) * 410
                os.pwrite(fd, data[:4096], number * 4096)
                if rounds % 3 == 0:
                    os.fdatasync(fd)
                os.preadv(direct, [buffer], number * 4096)
                equal(buffer[:4096], data[:4096], "what a direct read sees")
        os.close(direct)
        os.close(fd)

    children(4, work)


def _synchronous_writes(path: Path, flags: int, tasks: int, blocks: int) -> float:
    """Overwrites per second of one file by so many tasks, each of blocks of its own."""
    end = load_ends(SECONDS)
    done = mmap.mmap(-1, 8 * tasks)

    def work(number: int) -> None:
        fd = os.open(path, os.O_RDWR | os.O_DSYNC | flags)
        data = mmap.mmap(-1, 4096)
        count = 0
        while time.monotonic() < end or not count:
            os.pwritev(fd, [data], (count * tasks + number) % blocks * 4096)
            count += 1
        done[8 * number : 8 * number + 8] = count.to_bytes(8, "little")

    began = time.monotonic()
    children(tasks, work)
    counts = [int.from_bytes(done[8 * n : 8 * n + 8], "little") for n in range(tasks)]
    return sum(counts) / (time.monotonic() - began)


@long_test
def synchronous_writers_of_a_file_do_not_wait_for_each_other(place: Place) -> None:
    """On a device that takes its time, eight write far more blocks than one, directly or not."""
    blocks = 512
    with slow_device(place, 256, 0.02) as device, mounted(place, device) as mount:
        path = mount / "f"
        path.write_bytes(b"x" * blocks * 4096)
        os.sync()
        for flags in (0, os.O_DIRECT):
            one, eight = (_synchronous_writes(path, flags, tasks, blocks) for tasks in (1, 8))
            check(eight > 2.5 * one, f"{eight:.0f} per second by eight, {one:.0f} by one, {flags}")


@long_test
def syncs_while_others_write(place: Place) -> None:
    """fsync, syncfs and unlink in the middle of writes of others."""
    end = load_ends(SECONDS)

    def work(number: int) -> None:
        rng = random.Random(number)
        count = 0
        while time.monotonic() < end:
            path = place.directory / f"f{number}-{count % 30}"
            count += 1
            fd = os.open(path, os.O_CREAT | os.O_WRONLY)
            os.write(fd, b"x" * rng.randrange(30_000))
            if rng.random() < 0.3:
                os.fsync(fd)
            if number == 0 and rng.random() < 0.1:
                os.sync()
            os.close(fd)
            if rng.random() < 0.5:
                path.unlink()

    children(4, work)
