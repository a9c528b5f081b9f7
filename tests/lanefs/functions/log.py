# SPDX-License-Identifier: GPL-2.0-only
"""A log: data that is written over lies elsewhere then, and collectors move what is alive."""

import errno
import fcntl
import mmap
import os
import random
import re
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from tests.lanefs.functions.harness import (
    Failed,
    Place,
    Skipped,
    check,
    children,
    equal,
    fails,
    load_ends,
    long_test,
    run,
    test,
)
from tests.lanefs.functions.loop import fsck, loop_device, mounted
from tests.lanefs.functions.segments import write_blocks
from tests.lanefs.functions.space import fallocate
from tests.lanefs.functions.traced import traced

BLOCK = 4096
SEGMENT_BLOCKS = 512
FIBMAP = 1
PUNCH = 3
"""a hole, which keeps the size"""
CHUNK = 1 << 18
MIB = 80
SHARE = 0.8
"""of the space for data, which one large file takes"""
WRITERS = 4
TECHNIQUES = ("svp", "dws", "lsu", "cvs", "dpb")


@contextmanager
def _volume(place: Place, mib: int = 100, domains: int = 1, alloc: str = "log") -> Iterator[str]:
    """A device with a new log, or another lanefs, which is sound at the end."""
    place.own_lanefs("the option is lanefs's")
    with loop_device(place, mib, domains=domains, alloc=alloc) as (device, _):
        yield device
        fsck(place, device)


def blocks_of(path: Path) -> list[int]:
    """Where each block of a file lies."""
    lines = run("filefrag", "-v", "-b4096", str(path)).splitlines()
    pattern = r" *\d+: +(\d+)\.\. +(\d+): +(\d+)\.\."
    extents = [
        tuple(map(int, match.groups())) for line in lines if (match := re.match(pattern, line))
    ]
    return [block + n for first, last, block in extents for n in range(last - first + 1)]


@test
def what_is_written_over_lies_elsewhere(place: Place) -> None:
    """A part of a block, and a block by a store to a mapping; what was around stays."""
    with _volume(place) as device:
        with mounted(place, device) as mount:
            path = mount / "f"
            path.write_bytes(b"a" * 3 * BLOCK)
            os.sync()
            before = blocks_of(path)
            with path.open("r+b") as file:
                file.seek(BLOCK + 10)
                file.write(b"b" * 20)
                file.flush()
                with mmap.mmap(file.fileno(), 3 * BLOCK) as memory:
                    memory[2 * BLOCK : 3 * BLOCK] = b"c" * BLOCK
            os.sync()
            after = blocks_of(path)
            check(before[0] == after[0], "the first block has moved")
            check(before[1] != after[1], "the second block was written over")
            check(before[2] != after[2], "the third block was written over")
            wanted = bytearray(b"a" * 3 * BLOCK)
            wanted[BLOCK + 10 : BLOCK + 30] = b"b" * 20
            wanted[2 * BLOCK :] = b"c" * BLOCK
        with mounted(place, device) as mount:
            equal((mount / "f").read_bytes(), bytes(wanted), "the bytes")


@test
def cpus_that_share_a_log_fill_parts_of_their_own(place: Place) -> None:
    """As many runs of segments as CPUs, in their order."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise Skipped("one CPU shares nothing")
    with _volume(place) as device, mounted(place, device) as mount:
        first = []
        try:
            for cpu in cpus:
                os.sched_setaffinity(0, {cpu})
                path = mount / str(cpu)
                with path.open("wb") as file:
                    file.write(b"a" * 16 * BLOCK)
                    file.flush()
                    os.fsync(file.fileno())
                first.append(blocks_of(path)[0])
        finally:
            os.sched_setaffinity(0, cpus)
        part = _attribute(device, "segments") // len(cpus) * SEGMENT_BLOCKS
        for cpu, (block, following) in enumerate(pairwise(first)):
            apart = following - block
            check(
                apart >= part,
                f"CPUs {cpu} and {cpu + 1} write {apart} blocks apart, not {part} or more",
            )


@long_test
def direct_io_to_a_log_is_done_by_the_page_cache(place: Place) -> None:
    """Written over and beyond the end, read again; what does not wait says so."""
    with _volume(place) as device, mounted(place, device) as mount:
        fd = os.open(mount / "f", os.O_CREAT | os.O_RDWR | os.O_DIRECT)
        for number in range(3):
            equal(os.pwrite(fd, bytes([number]) * 4 * BLOCK, number * BLOCK), 4 * BLOCK, "written")
        wanted = b"".join(bytes([n]) * BLOCK for n in (0, 1, 2, 2, 2, 2))
        equal(os.pread(fd, 10 * BLOCK, 0), wanted, "the bytes")
        with fails(errno.EAGAIN, "a direct write that does not wait"):
            os.pwritev(fd, [b"x" * BLOCK], 0, os.RWF_NOWAIT)
        os.close(fd)


def _stamp(block: int, version: int) -> bytes:
    return struct.pack("=QQ", block, version) * (BLOCK // 16)


def _write_over(path: Path, number: int, blocks: int, end: float, moved: Path) -> dict[int, int]:
    """Blocks of this writer at random, until then and until some were moved; their versions."""
    choose = random.Random(number)
    versions: dict[int, int] = {}
    fd = os.open(path, os.O_RDWR)
    for n in range(1, 10_000_000):
        if time.monotonic() >= end and n % 100 == 0 and int(moved.read_text()):
            break
        block = choose.randrange(blocks // WRITERS) * WRITERS + number
        # Some in place, unless a collector is there.
        flags = os.RWF_DSYNC if n % 500 < 100 else 0
        equal(os.pwritev(fd, [_stamp(block, n)], block * BLOCK, flags), BLOCK, "written")
        versions[block] = n
        if n % 200 == 0:
            other = choose.randrange(blocks)
            found, version = struct.unpack_from("=QQ", os.pread(fd, 16, other * BLOCK))
            equal(found, other, "the block that is read")
            if other % WRITERS == number:
                equal(version, versions.get(other, 0), f"version of block {other}")
        if n % 500 == 0:
            os.fsync(fd)
        if n % 2000 == 0:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    return versions


@long_test
def an_fsync_of_one_page_writes_it_in_place(place: Place) -> None:
    """As with extents, but not with strict=on, nor where more than one page is dirty."""
    with _volume(place) as device:
        for options, pages, moves in (((), 1, False), ((), 2, True), (("strict=on",), 1, True)):
            with mounted(place, device, *options) as mount:
                path = mount / "f"
                path.write_bytes(b"a" * 4 * BLOCK)
                os.sync()
                before = blocks_of(path)
                with path.open("r+b", buffering=0) as file:
                    file.seek(BLOCK)
                    file.write(b"b" * pages * BLOCK)
                    os.fsync(file.fileno())
                after = blocks_of(path)
                what = f"{pages} pages are written elsewhere ({options})"
                equal(before[1] != after[1], moves, what)
            with mounted(place, device) as mount:
                wanted = b"a" * BLOCK + b"b" * pages * BLOCK + b"a" * (3 - pages) * BLOCK
                equal((mount / "f").read_bytes(), wanted, "the bytes")
                path.unlink()


def _sysfs(device: str, name: str) -> Path:
    return Path("/sys/fs/lanefs") / Path(device).name / name


def collect_always(device: str) -> None:
    """Have the collectors of a log, where the device has one mounted, work all the time."""
    number = os.stat(device).st_rdev
    name = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve().name
    if (low := _sysfs(name, "gc_low")).exists():
        low.write_text("100")


def _attribute(device: str, name: str) -> int:
    return int(_sysfs(device, name).read_text())


def _overwritten(path: Path, count: int) -> None:
    """So many blocks at random, which are on the device at the end."""
    choose = random.Random(count)
    blocks = path.stat().st_size // BLOCK
    with path.open("r+b", buffering=0) as file:
        for n in range(count):
            block = choose.randrange(blocks)
            file.seek(block * BLOCK)
            file.write(_stamp(block, 0))
            if n % 250 == 249:
                os.fsync(file.fileno())


def _collected(place: Place, device: str, *options: str, seconds: float = 3) -> None:
    with mounted(place, device, *options) as mount:
        path = mount / "f"
        blocks = int(os.statvfs(mount).f_bavail * SHARE) // WRITERS * WRITERS
        with path.open("wb") as file:
            for block in range(blocks):
                file.write(_stamp(block, 0))
        os.sync()
        moved = _sysfs(device, "blocks_moved")
        end = time.monotonic() + seconds

        def work(number: int) -> None:
            versions = _write_over(path, number, blocks, end, moved)
            lines = (f"{block} {version}\n" for block, version in versions.items())
            (mount / f"versions{number}").write_text("".join(lines))

        events = [
            line for line in traced(device, lambda: children(WRITERS, work)) if "_collect:" in line
        ]
        check(int(moved.read_text()) > 0, "no block was moved")
        check(bool(events), "no event tells of a victim")
    with mounted(place, device, *options) as mount:
        wanted = dict.fromkeys(range(blocks), 0)
        for number in range(WRITERS):
            for line in (mount / f"versions{number}").read_text().splitlines():
                block, version = map(int, line.split())
                wanted[block] = version
        with (mount / "f").open("rb") as file:
            for block in range(blocks):
                equal(file.read(BLOCK), _stamp(block, wanted[block]), f"block {block}")


@long_test
def collectors_keep_what_is_alive(place: Place) -> None:
    """A file that takes most of the space, written over at random and read by some at once."""
    with _volume(place, MIB) as device:
        _collected(place, device)


@long_test
def a_single_collector_keeps_what_is_alive(place: Place) -> None:
    """The same in two domains, with victims chosen by age as well."""
    with _volume(place, MIB, domains=2) as device:
        _collected(place, device, "ablate=gc,victims=costbenefit")


@long_test
def collectors_without_the_paper_s_techniques_keep_what_is_alive(place: Place) -> None:
    """With the locks in their place, and by the page cache."""
    for options in ("ablate=" + "+".join(TECHNIQUES[:-1]), f"ablate={TECHNIQUES[-1]}"):
        with _volume(place, MIB) as device:
            _collected(place, device, options, seconds=1)


@long_test
def strict_writers_wait_for_segments(place: Place) -> None:
    """They wait for collectors rather than fill holes, and find the end of the space."""
    with _volume(place, MIB) as device, mounted(place, device, "strict=on") as mount:
        # Collectors that always work take the segments that writers have waited for.
        _sysfs(device, "gc_low").write_text("2")
        path = mount / "f"
        path.write_bytes(bytes(int(os.statvfs(mount).f_bavail * 0.7) * BLOCK))
        _overwritten(path, 8_000)
        check(_attribute(device, "stalls") > 0, "nobody waited")
        check(_attribute(device, "stall_ns") > 0, "nobody waited for long")
        check(_attribute(device, "blocks_moved") > 0, "no block was moved")
        equal(_attribute(device, "holes_filled"), 0, "holes filled")
        with (
            (mount / "more").open("wb") as file,
            fails(errno.ENOSPC, "more than there is room for"),
        ):
            while True:
                file.write(bytes(CHUNK))


@long_test
def valid_blocks_of_segments_are_told(place: Place) -> None:
    """Each segment is in one of 33 counts: 0, up to 1/32, ..., up to 32/32 of it in use."""
    with _volume(place) as device, mounted(place, device) as mount:
        # Nothing is to move meanwhile.
        _sysfs(device, "gc_low").write_text("0")

        def valid() -> list[int]:
            counts = list(map(int, _sysfs(device, "segments_valid").read_text().split()))
            equal(len(counts), 33, "counts")
            equal(sum(counts), _attribute(device, "segments"), "the segments in all counts")
            return counts

        equal(valid()[0], _attribute(device, "segments"), "the empty segments of a new log")
        path = mount / "f"
        # One stream takes them, in order: each segment holds blocks that follow each other.
        write_blocks(path, 8 * SEGMENT_BLOCKS)
        equal(valid()[32], 8, "segments that are full")
        with path.open("r+b") as file:
            for block in range(8 * SEGMENT_BLOCKS):
                if block % 4:
                    fallocate(file.fileno(), PUNCH, block * BLOCK, BLOCK)
        os.sync()
        after = valid()
        equal(after[32], 0, "segments that are full still")
        equal(after[8], 8, "segments that are a quarter full")


@long_test
def collectors_find_what_was_freed(place: Place) -> None:
    """Segments that were full at the last look lose blocks, and nothing is written."""
    freed = 16
    with _volume(place, 300) as device, mounted(place, device) as mount:
        _sysfs(device, "gc_low").write_text("100")
        path = mount / "f"
        path.write_bytes(bytes(int(os.statvfs(mount).f_bavail * SHARE) * BLOCK))
        os.sync()
        # Collectors look each second.
        time.sleep(3)
        before = _attribute(device, "victims")
        with path.open("r+b") as file:
            for block in range(0, freed * SEGMENT_BLOCKS, 2):
                fallocate(file.fileno(), PUNCH, block * BLOCK, BLOCK)
        os.sync()
        end = time.monotonic() + 20
        while time.monotonic() < end and _attribute(device, "victims") < before + freed:
            time.sleep(0.1)
        check(
            _attribute(device, "victims") >= before + freed,
            f"of {freed} segments that are half empty {_attribute(device, 'victims') - before}"
            " were collected",
        )


@test
def blocks_of_a_log_are_not_to_be_relied_on(place: Place) -> None:
    """No swap file is taken, and FIBMAP says nothing."""
    with _volume(place) as device, mounted(place, device) as mount:
        path = mount / "swap"
        with path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 16 * CHUNK)
        path.chmod(0o600)
        run("mkswap", str(path))
        done = subprocess.run(["swapon", str(path)], capture_output=True, check=False)
        check(done.returncode != 0, "the swap file is taken")
        with path.open("rb") as file:
            found = fcntl.ioctl(file, FIBMAP, struct.pack("=i", 0))
        equal(found, struct.pack("=i", 0), "FIBMAP")


@test
def the_threshold_of_collectors_can_be_set(place: Place) -> None:
    """From 0 to 100 percent; what else is written is refused, and changes nothing."""
    with _volume(place) as device, mounted(place, device):
        low = _sysfs(device, "gc_low")
        for text in ("0", "100", "7"):
            low.write_text(text)
            equal(low.read_text(), f"{text}\n", "gc_low")
        for text, code in (("101", errno.ERANGE), ("many", errno.EINVAL), ("-1", errno.EINVAL)):
            with fails(code, f"gc_low = {text}"):
                low.write_text(text)
        equal(low.read_text(), "7\n", "gc_low")


@long_test
def options_of_collectors_are_for_logs_only(place: Place) -> None:
    """They are refused where they would do nothing."""
    ablated = [f"ablate={name}" for name in ("gc", *TECHNIQUES)]
    options = ["victims=costbenefit", "strict=on", *ablated]
    with _volume(place, alloc="extent") as device:
        with mounted(place, device) as mount:
            for option in options:
                argv = ["mount", "-o", f"remount,{option}", str(mount)]
                done = subprocess.run(argv, capture_output=True, check=False)
                check(done.returncode != 0, f"a remount takes {option} for extents")
        for option in options:
            try:
                with mounted(place, device, option):
                    taken = True
            except Failed:
                taken = False
            check(not taken, f"{option} is taken for extents")


@long_test
def collectors_do_not_hold_up_the_mount(place: Place) -> None:
    """Frozen, thawed, read-only and back, removed and unmounted while they work all the time."""
    with _volume(place, domains=2) as device, mounted(place, device) as mount:
        _sysfs(device, "gc_low").write_text("100")
        end = time.monotonic() + 5

        def work(number: int) -> None:
            choose = random.Random(number)
            n = 0
            while time.monotonic() < end:
                if not number:
                    run("fsfreeze", "--freeze", str(mount))
                    run("fsfreeze", "--unfreeze", str(mount))
                    time.sleep(0.1)
                    continue
                path = mount / f"w{number}-{n % 8}"
                n += 1
                with path.open("wb") as file:
                    file.write(b"x" * choose.randrange(4 << 20))
                with path.open("r+b") as file:
                    for _ in range(200):
                        file.seek(choose.randrange(1024) * BLOCK)
                        file.write(b"y" * BLOCK)
                    os.fsync(file.fileno())
                    path.unlink()

        children(WRITERS, work)
        for _ in range(10):
            run("mount", "-o", "remount,ro", str(mount))
            run("mount", "-o", "remount,rw", str(mount))
            with (mount / "more").open("wb") as file:
                file.write(b"z" * (8 << 20))


@long_test
def a_full_log_can_be_written_over(place: Place) -> None:
    """Twice, with more than is left for what waits to be written; and then it is still full."""
    with _volume(place) as device:
        with mounted(place, device) as mount:
            size = _fill(mount / "f")
            for letter in (b"b", b"c"):
                with (mount / "f").open("r+b") as file:
                    for _ in range(size // CHUNK):
                        file.write(letter * CHUNK)
            with fails(errno.ENOSPC, "one file more"), (mount / "g").open("wb") as file:
                file.write(b"g" * 4 * CHUNK)
                file.flush()
                os.fsync(file.fileno())
        with mounted(place, device) as mount, (mount / "f").open("rb") as file:
            for _ in range(size // CHUNK):
                equal(file.read(CHUNK), b"c" * CHUNK, "the bytes")


def _fill(path: Path) -> int:
    """As much as there is space for, in whole chunks; the size."""
    with path.open("wb", buffering=0) as file:
        for n in range(1_000_000):
            try:
                written = file.write(b"a" * CHUNK)
            except OSError as error:
                equal(error.errno, errno.ENOSPC, "errno of a write on a full disk")
                written = 0
            if written < CHUNK:
                file.truncate(n * CHUNK)
                return n * CHUNK
    return 0


@long_test
def an_overwrite_leaves_metadata_its_room_where_others_have_some(place: Place) -> None:
    """The inode's domain is full of another file's data, and the other domain is half empty."""
    os.sched_setaffinity(0, {0})
    with (
        _volume(place, domains=2) as device,
        mounted(place, device, "placement=lane") as mount,
    ):
        # Data fills the inode's domain first.
        size = _fill(mount / "other")
        os.truncate(mount / "other", size * 9 // 16)
        os.sync()
        path = mount / "f"
        path.write_bytes(bytes(size // 4))
        os.sync()
        # Each overwrite frees a block of the other domain, and cuts an extent.
        blocks = list(range(0, size // 4 // BLOCK, 2))
        random.Random(1).shuffle(blocks)
        with path.open("r+b", buffering=0) as file:
            for n, block in enumerate(blocks):
                os.pwrite(file.fileno(), _stamp(block, 1), block * BLOCK)
                if n % 64 == 63:
                    os.fsync(file.fileno())
        check(os.statvfs(mount).f_bavail * BLOCK > size // 8, "the log became full")


@long_test
def writers_of_a_full_log_do_not_take_each_other_s_room(place: Place) -> None:
    """Each overwrites blocks of its own file: what one frees is there for who waits for it."""
    writers = 16
    with _volume(place) as device, mounted(place, device) as mount:
        size = _fill(mount / "0")
        (mount / "0").unlink()
        os.sync()
        blocks = size // writers // BLOCK * 15 // 16
        for number in range(writers):
            (mount / str(number)).write_bytes(bytes(blocks * BLOCK))
        os.sync()
        _fill(mount / "rest")
        end = load_ends(10)

        def work(number: int) -> None:
            choose = random.Random(number)
            fd = os.open(mount / str(number), os.O_RDWR)
            written = denied = 0
            while time.monotonic() < end:
                try:
                    os.pwrite(fd, _stamp(written, 0), choose.randrange(blocks) * BLOCK)
                    written += 1
                except OSError as error:
                    equal(error.errno, errno.ENOSPC, "errno")
                    denied += 1
            print(f"{number}: {written} written, {denied} denied")
            equal(denied, 0, f"ENOSPC in {written} overwrites")

        children(writers, work, seconds=240)


@test
def extents_that_are_cut_find_room(place: Place) -> None:
    """Written over in the middle, when an inode's own records are as good as full."""
    with _volume(place) as device:
        with mounted(place, device) as mount:
            wanted = bytearray(512 * BLOCK)
            with (mount / "f").open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, 256 * BLOCK)
                os.pwrite(file.fileno(), bytes(256 * BLOCK), 256 * BLOCK)
                os.fsync(file.fileno())
                for block in (0, 300, 350, 400):
                    os.pwrite(file.fileno(), b"b" * BLOCK, block * BLOCK)
                    wanted[block * BLOCK : (block + 1) * BLOCK] = b"b" * BLOCK
                os.fsync(file.fileno())
        with mounted(place, device) as mount:
            equal((mount / "f").read_bytes(), bytes(wanted), "the bytes")


@long_test
def parts_of_blocks_are_zeroed_beside_writeback(place: Place) -> None:
    """Holes with ragged ends, while other pages of the file are written back."""
    with _volume(place) as device, mounted(place, device) as mount:
        path = mount / "f"
        path.write_bytes(b"a" * 1024 * BLOCK)
        end = time.monotonic() + 6

        def work(number: int) -> None:
            choose = random.Random(number)
            fd = os.open(path, os.O_RDWR)
            while time.monotonic() < end:
                block = choose.randrange(498) + 500 * (number % 2)
                if number % 2:
                    os.pwrite(fd, b"b" * BLOCK, block * BLOCK)
                    os.fdatasync(fd)
                else:
                    os.pwrite(fd, b"a" * 3 * BLOCK, block * BLOCK)
                    os.fdatasync(fd)
                    fallocate(fd, PUNCH, block * BLOCK + 100, 2 * BLOCK)
                    found = os.pread(fd, 3 * BLOCK, block * BLOCK)
                    right = b"a" * 100 + bytes(2 * BLOCK) + b"a" * (BLOCK - 100)
                    equal(found, right, f"bytes of block {block} and on")
            os.close(fd)

        children(2, work)
