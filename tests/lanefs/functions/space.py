# SPDX-License-Identifier: GPL-2.0-only
"""fallocate: blocks allocated ahead, holes punched, ranges zeroed. Discarding what is free."""

import ctypes
import errno
import fcntl
import mmap
import os
import random
import stat
import struct
from pathlib import Path

from tests.lanefs.functions.files import BLOCK, drop_caches
from tests.lanefs.functions.harness import (
    Place,
    Skipped,
    check,
    children,
    equal,
    fails,
    long_test,
    open_direct,
    opened,
    optional,
    run,
    test,
)
from tests.lanefs.functions.loop import loop_device, mounted

KEEP, PUNCH, ZERO = 1, 2, 0x10
FITRIM = 0xC0185879
_MADV_HWPOISON = 100
_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
_libc.pwrite.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64]
_libc.pwrite.restype = ctypes.c_ssize_t


def fallocate(fd: int, mode: int, offset: int, length: int) -> None:
    """As fallocate(2); OSError."""
    if _libc.fallocate(fd, mode, offset, length) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _settle(place: Place) -> None:
    if os.geteuid() == 0 and place.device is not None:
        drop_caches()


def _blocks(fd: int) -> int:
    return os.fstat(fd).st_blocks * 512 // BLOCK


@test
def allocation_ahead_reads_as_zeros(place: Place) -> None:
    """fallocate grows the file with blocks that read as zeros, also around what is written."""
    path = place.directory / "f"
    with path.open("w+b") as file:
        fd = file.fileno()
        with optional("fallocate"):
            fallocate(fd, 0, 0, 8 * BLOCK)
        equal(os.fstat(fd).st_size, 8 * BLOCK, "the size")
        check(8 <= _blocks(fd) <= 10, f"{_blocks(fd)} blocks for 8")
        equal(os.pread(fd, 8 * BLOCK, 0).count(0), 8 * BLOCK, "zeros")
        os.pwrite(fd, b"x" * 100, 3 * BLOCK + 50)
        _settle(place)
        data = os.pread(fd, 8 * BLOCK, 0)
        equal(data.count(b"x"), 100, "bytes written to what was allocated")
        equal(data.count(0), 8 * BLOCK - 100, "zeros around them")
        before = _blocks(fd)
        fallocate(fd, 0, 0, 8 * BLOCK)
        equal(_blocks(fd), before, "blocks when all are there already")
        fallocate(fd, 0, 100 * BLOCK + 7, 1)
        equal(os.fstat(fd).st_size, 100 * BLOCK + 8, "the size after one byte far away")


@test
def blocks_kept_past_the_end_stay(place: Place) -> None:
    """FALLOC_FL_KEEP_SIZE: the size stays, the blocks stay over close and remount, until a cut."""
    path = place.directory / "f"
    with path.open("w+b") as file:
        with optional("fallocate"):
            fallocate(file.fileno(), KEEP, 0, 64 * BLOCK)
        equal(os.fstat(file.fileno()).st_size, 0, "the size")
        os.pwrite(file.fileno(), b"y" * 20 * BLOCK, 0)
    if place.device is not None:
        place.cycle()
    with path.open("r+b") as file:
        fd = file.fileno()
        check(64 <= _blocks(fd) <= 66, f"{_blocks(fd)} blocks, 64 were asked for")
        equal(os.fstat(fd).st_size, 20 * BLOCK, "the size")
        os.pwrite(fd, b"z" * BLOCK, 30 * BLOCK)
        data = os.pread(fd, 40 * BLOCK, 0)
        expected = b"y" * 20 * BLOCK + bytes(10 * BLOCK) + b"z" * BLOCK
        check(data == expected, "other bytes in what was kept")
        os.ftruncate(fd, 10 * BLOCK)
        check(_blocks(fd) <= 12, f"{_blocks(fd)} blocks after a cut to 10")


@test
def a_cut_to_the_same_size_gives_back_what_was_kept(place: Place) -> None:
    """Blocks past the end go, through an open file or a path; the bytes and those before stay."""
    path = place.directory / "f"
    with path.open("w+b", buffering=0) as file:
        for size, cut in ((0, os.ftruncate), (10_000, os.ftruncate), (10_000, os.truncate)):
            file.truncate(size)
            os.pwrite(file.fileno(), b"y" * size, 0)
            os.fsync(file.fileno())
            before = _blocks(file.fileno())
            with optional("fallocate"):
                fallocate(file.fileno(), KEEP, 20 * BLOCK, 64 * BLOCK)
            check(_blocks(file.fileno()) >= before + 64, "fallocate took no blocks")
            cut(path if cut is os.truncate else file.fileno(), size)
            check(_blocks(file.fileno()) <= max(before, 3), f"{_blocks(file.fileno())} blocks stay")
            equal(path.read_bytes(), b"y" * size, "the bytes")
        # What was written but is not on the device yet is not behind the end.
        os.pwrite(file.fileno(), b"z" * 50_000, 0)
        os.ftruncate(file.fileno(), 50_000)
        os.fsync(file.fileno())
    _settle(place)
    equal(path.read_bytes(), b"z" * 50_000, "the bytes that were waiting")


def _change_at_random(place: Place, mode: int) -> None:
    """Writes and `mode` of random ranges of one file, which must hold what a bytearray does."""
    rng = random.Random(mode)
    right = bytearray()
    path = place.directory / "f"
    with path.open("w+b") as file:
        fd = file.fileno()
        for number in range(300):
            start = rng.randrange(60 * BLOCK)
            length = rng.choice([rng.randrange(1, BLOCK), rng.randrange(1, 20 * BLOCK)])
            if rng.random() < 0.5:
                data = bytes([rng.randrange(1, 256)]) * length
                os.pwrite(fd, data, start)
                right.extend(bytes(max(0, start + length - len(right))))
                right[start : start + length] = data
            else:
                with optional(f"fallocate of mode {mode}"):
                    fallocate(fd, mode, start, length)
                if not mode & KEEP:
                    right.extend(bytes(max(0, start + length - len(right))))
                end = min(start + length, len(right))
                right[start:end] = bytes(max(0, end - start))
            if number % 20 == 0:
                os.fsync(fd)
            if number % 60 == 0:
                _settle(place)
            equal(os.fstat(fd).st_size, len(right), "the size")
            check(os.pread(fd, len(right) + 1, 0) == right, f"other bytes after change {number}")
        _settle(place)
        check(os.pread(fd, len(right) + 1, 0) == right, "other bytes from the device")


@long_test
def punched_holes_read_as_zeros(place: Place) -> None:
    """FALLOC_FL_PUNCH_HOLE in a file that is also written to; the size stays."""
    _change_at_random(place, PUNCH | KEEP)


@long_test
def zeroed_ranges_read_as_zeros(place: Place) -> None:
    """FALLOC_FL_ZERO_RANGE, with the size kept and not."""
    _change_at_random(place, ZERO)
    (place.directory / "f").unlink()
    _change_at_random(place, ZERO | KEEP)


@test
def punched_blocks_are_given_back(place: Place) -> None:
    """st_blocks, SEEK_HOLE and SEEK_DATA; what was punched can be written again."""
    path = place.directory / "f"
    with path.open("w+b") as file:
        fd = file.fileno()
        os.pwrite(fd, b"a" * 2000 * BLOCK, 0)
        os.fsync(fd)
        before = _blocks(fd)
        with optional("punching"):
            fallocate(fd, PUNCH | KEEP, 100 * BLOCK, 1000 * BLOCK)
        check(_blocks(fd) <= before - 990, f"{before} blocks, then {_blocks(fd)}")
        equal(os.lseek(fd, 0, os.SEEK_HOLE), 100 * BLOCK, "the hole")
        equal(os.lseek(fd, 100 * BLOCK, os.SEEK_DATA), 1100 * BLOCK, "the data after it")
        # Every other block of the rest: the map gets as many extents.
        for block in range(1101, 2000, 2):
            fallocate(fd, PUNCH | KEEP, block * BLOCK, BLOCK)
        os.pwrite(fd, b"b" * 1100 * BLOCK, 50 * BLOCK)
        _settle(place)
        right = bytearray(b"a" * 2000 * BLOCK)
        for block in range(1101, 2000, 2):
            right[block * BLOCK : (block + 1) * BLOCK] = bytes(BLOCK)
        right[50 * BLOCK : 1150 * BLOCK] = b"b" * 1100 * BLOCK
        check(os.pread(fd, len(right), 0) == right, "other bytes in the end")
        fallocate(fd, PUNCH | KEEP, 0, 1 << 40)
        check(_blocks(fd) == 0, f"{_blocks(fd)} blocks when all is a hole")
        equal(os.fstat(fd).st_size, 2000 * BLOCK, "the size when all is a hole")


@test
def only_known_modes_are_done(place: Place) -> None:
    """Others: EOPNOTSUPP; read-only descriptors: EBADF; beyond the largest size: EFBIG."""
    path = place.directory / "f"
    path.write_bytes(b"x" * 10)
    with path.open("r+b") as file, path.open("rb") as reader:
        with optional("fallocate"):
            fallocate(file.fileno(), 0, 0, 10)
        with fails(errno.EOPNOTSUPP, "an unknown mode"):
            fallocate(file.fileno(), 0x4000, 0, BLOCK)
        with fails(errno.EBADF, "a descriptor for reading"):
            fallocate(reader.fileno(), 0, 0, BLOCK)
        if run("stat", "--file-system", "--format=%T", str(path)) == "tmpfs\n":
            raise Skipped("no size is too large for a file on tmpfs")
        with fails(errno.EFBIG, "more than any file can have"):
            fallocate(file.fileno(), 0, (1 << 63) - 2 * BLOCK, BLOCK)
    equal(path.read_bytes(), b"x" * 10, "the file")


@test
def allocation_takes_the_right_to_act_as_the_owner(place: Place) -> None:
    """fallocate of every kind by another user clears S_ISUID."""
    place.directory.chmod(0o777)
    for mode in (0, KEEP, PUNCH | KEEP, ZERO):
        path = place.directory / f"f{mode}"
        path.write_bytes(b"x" * 3 * BLOCK)
        path.chmod(0o4777)
        with path.open("r+b") as file:
            pid = os.fork()
            if pid == 0:
                os.setresuid(12345, 12345, 12345)
                try:
                    fallocate(file.fileno(), mode, 0, 2 * BLOCK)
                except OSError as error:
                    os._exit(77 if error.errno == errno.EOPNOTSUPP else 1)
                os._exit(0)
            _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == 77:
            continue
        equal(code, 0, f"fallocate of mode {mode} by another user")
        equal(stat.S_IMODE(path.stat().st_mode), 0o777, f"the mode after fallocate {mode}")


@test
def holes_punched_while_others_write(place: Place) -> None:
    """Buffered, mapped and direct writers of their own blocks; one punches those between them."""
    path = place.directory / "f"
    blocks, writers = 256, 3
    with path.open("w+b") as file:
        os.ftruncate(file.fileno(), blocks * BLOCK)
        for what, mode in (("punching", PUNCH | KEEP), ("zeroing", ZERO | KEEP)):
            with optional(what):
                fallocate(file.fileno(), mode, 0, BLOCK)
    os.close(open_direct(path, os.O_RDWR))
    # Block n belongs to writer n % 4, or, for 3, to the one who punches.

    def work(number: int) -> None:
        rng = random.Random(number)
        fd = os.open(path, os.O_RDWR | (os.O_DIRECT if number == 2 else 0))
        memory = mmap.mmap(-1, BLOCK)
        mapped = mmap.mmap(fd, blocks * BLOCK) if number == 1 else None
        last = dict.fromkeys(range(number, blocks, 4), 0)
        for _ in range(400):
            block = rng.choice(list(last))
            if number == writers:
                mode = rng.choice([PUNCH | KEEP, ZERO | KEEP])
                fallocate(fd, mode, block * BLOCK, BLOCK)
                if rng.random() < 0.3:
                    os.pwrite(fd, b"p" * BLOCK, block * BLOCK)
                    fallocate(fd, PUNCH | KEEP, block * BLOCK + 5, BLOCK - 9)
                    data = os.pread(fd, BLOCK, block * BLOCK)
                    check(data == b"ppppp" + bytes(BLOCK - 9) + b"pppp", "a punched block")
                    fallocate(fd, PUNCH | KEEP, block * BLOCK, BLOCK)
                equal(os.pread(fd, BLOCK, block * BLOCK).count(0), BLOCK, f"zeros of block {block}")
                continue
            last[block] = rng.randrange(1, 256)
            memory[:] = bytes([last[block]]) * BLOCK
            if mapped is not None:
                mapped[block * BLOCK : (block + 1) * BLOCK] = memory[:]
            else:
                os.pwritev(fd, [memory], block * BLOCK)
        for block, value in last.items():
            os.preadv(fd, [memory], block * BLOCK)
            equal(memory[:].count(value), BLOCK, f"bytes of writer {number}'s block {block}")

    children(writers + 1, work)
    _settle(place)
    data = path.read_bytes()
    equal(len(data), blocks * BLOCK, "the size")
    for block in range(blocks):
        part = data[block * BLOCK : (block + 1) * BLOCK]
        equal(part.count(part[:1]), BLOCK, f"bytes of one kind in block {block}")
        check(block % 4 != 3 or not part[0], f"block {block} was punched")


@long_test
def allocation_beyond_what_is_free_changes_nothing(place: Place) -> None:
    """ENOSPC; nothing is gone; a hole punched on a full disk gives space."""
    place.own()
    big, rest = place.directory / "big", place.directory / "rest"
    os.sync()
    before = os.statvfs(place.directory)
    free = before.f_bavail * before.f_frsize
    with big.open("w+b") as file:
        with optional("fallocate"):
            fallocate(file.fileno(), 0, 0, BLOCK)
        for mode in (0, KEEP):
            with fails(errno.ENOSPC, f"fallocate {mode} of more than there is"):
                fallocate(file.fileno(), mode, 0, free + (1 << 30))
        equal(os.fstat(file.fileno()).st_size, BLOCK, "the size")
        os.ftruncate(file.fileno(), 0)
        fallocate(file.fileno(), 0, 0, free * 9 // 10)
        os.pwrite(file.fileno(), b"x" * BLOCK, free // 2)
    with rest.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"r" * BLOCK)
        except OSError as error:
            equal(error.errno, errno.ENOSPC, "errno of a write on a full disk")
        size = os.fstat(file.fileno()).st_size
        with big.open("r+b") as holes:
            fallocate(holes.fileno(), PUNCH | KEEP, 3 * BLOCK + 1, 5 << 20)
        for _ in range(1000):
            equal(file.write(b"s" * BLOCK), BLOCK, "a write to what was punched free")
    equal(rest.stat().st_size, size + 1000 * BLOCK, "the size of the other file")
    rest.unlink()
    big.unlink()
    os.sync()
    after = os.statvfs(place.directory)
    check(before.f_bfree - after.f_bfree < 300, "blocks did not come back")


@long_test
def what_is_freed_is_discarded(place: Place) -> None:
    """Mounted with `discard` the device gets space back as files go; otherwise by FITRIM."""
    size = 40 << 20
    place.directory.joinpath("m").mkdir()
    mount = str(place.directory / "m")
    with loop_device(place, 160) as (device, backing):
        made = backing.stat().st_blocks

        def held() -> int:
            """Bytes that the device has beside what mkfs wrote, such as a journal of zeros."""
            return (backing.stat().st_blocks - made) * 512

        def write_and_remove() -> None:
            (Path(mount) / "f").write_bytes(b"x" * size)
            os.sync()
            check(held() >= size, f"{held()} bytes behind a file of {size}")
            (Path(mount) / "f").unlink()
            os.sync()

        run("mount", "-t", place.filesystem, "-o", "nodiscard", device, mount)
        try:
            write_and_remove()
            check(held() >= size, f"{held()} bytes without discard")
            with (Path(mount) / "kept").open("wb") as file:
                file.write(b"k" * (5 << 20))
            run("fstrim", mount)
            check(held() < size // 2, f"{held()} bytes after fstrim")
            run("mount", "-o", "remount,discard", mount)
            write_and_remove()
        finally:
            run("umount", mount)
        check(held() < size // 2, f"{held()} bytes after discarding")
        run("mount", "-t", place.filesystem, device, mount)
        try:
            data = (Path(mount) / "kept").read_bytes()
        finally:
            run("umount", mount)
        check(data == b"k" * (5 << 20), "fstrim took bytes of a file")


@test
def a_cut_inside_a_long_extent_needs_no_space(place: Place) -> None:
    """Of 300 MiB allocated in one extent all but 40 KiB go, though the inode's map is full."""
    with loop_device(place, 700, domains=1) as (device, _), mounted(place, device) as mount:
        before = os.statvfs(mount).f_bfree
        with (mount / "f").open("w+b") as file:
            with optional("fallocate"):
                os.posix_fallocate(file.fileno(), 0, 300 << 20)
            for block in (0, 2, 4, 6):
                os.pwrite(file.fileno(), b"w" * BLOCK, block * BLOCK)
                os.fsync(file.fileno())
            os.ftruncate(file.fileno(), 10 * BLOCK)
            os.fsync(file.fileno())
            check(os.fstat(file.fileno()).st_blocks <= 32 * 8, "blocks are left behind the end")
            expected = (b"w" * BLOCK + bytes(BLOCK)) * 4 + bytes(2 * BLOCK)
            equal(os.pread(file.fileno(), 1 << 20, 0), expected, "the bytes")
        (mount / "other").write_bytes(b"another file")
        os.sync()
        check(before - os.statvfs(mount).f_bfree < 300, "blocks did not come back")


@test
def closing_keeps_what_fallocate_allocated(place: Place) -> None:
    """Blocks beyond the end that were asked for stay, those that writeback took ahead may go."""
    ahead = 8 << 20
    direct = place.directory / "direct"
    fd = open_direct(direct, os.O_CREAT | os.O_RDWR)
    with mmap.mmap(-1, BLOCK) as aligned:
        fallocate(fd, KEEP, ahead, ahead)
        os.pwrite(fd, aligned, 0)
    os.close(fd)
    check(direct.stat().st_blocks * 512 >= ahead, f"{direct.stat().st_blocks} sectors, direct")
    zeroed = place.directory / "zeroed"
    with zeroed.open("w+b") as file:
        file.write(b"z" * 99 * BLOCK)
        file.flush()
        os.fsync(file.fileno())
        os.pwrite(file.fileno(), b"z" * 4000, 99 * BLOCK)
        with optional("zeroing"):
            fallocate(file.fileno(), ZERO | KEEP, 99 * BLOCK + 1000, ahead)
    check(zeroed.stat().st_blocks * 512 >= ahead, f"{zeroed.stat().st_blocks} sectors, zeroed")
    equal(zeroed.read_bytes()[99 * BLOCK :], b"z" * 1000 + bytes(3000), "the bytes")


@test
def fallocate_over_data_in_memory_keeps_no_more_than_it_was_asked_for(place: Place) -> None:
    """What a growing file would be given ahead is nothing that close() could take back then."""
    size, more = 16 << 20, 8 << 20
    for mode, start, end, right in (
        (0, 0, size, size),
        (KEEP, 0, size, size),
        (ZERO | KEEP, size - 3 * BLOCK, size, size),
        (KEEP, size, size + more, size + more),
        (KEEP, 2 * size, 2 * size + more, size + more),
    ):
        path = place.directory / f"f{mode}.{start}.{end}"
        with path.open("wb", buffering=0) as file:
            for number in range(size >> 20):
                file.write(b"x" * (1 << 20))
                if number == 0:
                    os.fsync(file.fileno())
            with optional("fallocate"):
                fallocate(file.fileno(), mode, start, end - start)
        os.sync()
        _settle(place)
        blocks = path.stat().st_blocks * 512 // BLOCK - right // BLOCK
        check(0 <= blocks < 64, f"{blocks} blocks more than the {right // BLOCK} of {path.name}")
        path.unlink()


@test
def what_a_failed_direct_write_took_goes_with_the_close(place: Place) -> None:
    """Its memory cannot be read, so nothing is written, and no block stays with the file."""
    path = place.directory / "f"
    fd = open_direct(path, os.O_CREAT | os.O_RDWR)
    if _libc.pwrite(fd, None, 40 << 20, 0) >= 0:
        raise Skipped("this file system writes no memory that is not there")
    equal(ctypes.get_errno(), errno.EFAULT, "errno of a write from nowhere")
    os.close(fd)
    _settle(place)
    check(path.stat().st_blocks <= 16, f"{path.stat().st_blocks} sectors of an empty file")


@test
def a_failed_fallocate_keeps_nothing_that_was_taken_ahead(place: Place) -> None:
    """Writeback that makes room for it takes blocks ahead; they go with the close."""
    path = place.directory / "f"
    place.own()
    with path.open("w+b") as file:
        for _ in range(2):
            os.fsync(file.fileno())
            file.write(b"x" * (1 << 20))
            file.flush()
        with fails(errno.ENOSPC, "fallocate of more than there is"):
            fallocate(file.fileno(), KEEP, 0, os.statvfs(path).f_blocks * BLOCK * 2)
    _settle(place)
    check(path.stat().st_blocks * 512 < (2 << 20) + 16 * BLOCK, f"{path.stat().st_blocks} sectors")


@test
def fstrim_refuses_a_range_that_is_none(place: Place) -> None:
    """A start or a least length close to 2^64 is not taken for 0."""
    top = (1 << 64) - 1
    with loop_device(place, 320) as (device, _), mounted(place, device) as mount:
        fd = os.open(mount, os.O_RDONLY)
        with fails(errno.EINVAL, "FITRIM from 2^64-1 on"):
            fcntl.ioctl(fd, FITRIM, bytearray(struct.pack("=QQQ", top, top, 0)))
        with fails(errno.EINVAL, "FITRIM of less than a block"):
            fcntl.ioctl(fd, FITRIM, bytearray(struct.pack("=QQQ", 0, BLOCK // 4 - 1, 0)))
        asked = bytearray(struct.pack("=QQQ", 0, top, top))
        try:
            fcntl.ioctl(fd, FITRIM, asked)
            equal(struct.unpack("=QQQ", asked)[1], 0, "bytes trimmed in runs of 2^64-1")
        except OSError as error:
            equal(error.errno, errno.EINVAL, "errno of FITRIM with such a least length")
        os.close(fd)


@test
def fstrim_takes_runs_of_any_wanted_length(place: Place) -> None:
    """A long run is discarded in pieces, but its whole length is compared with the least one."""
    with loop_device(place, 320, domains=1) as (device, _), mounted(place, device) as mount:

        def trimmed(least: int) -> int:
            asked = bytearray(struct.pack("=QQQ", 0, 1 << 62, least))
            with opened(mount) as fd:
                fcntl.ioctl(fd, FITRIM, asked)
            return int(struct.unpack("=QQQ", asked)[1])

        # From the longest on: ext4 passes over what was trimmed in runs no longer than asked for.
        found = {least: trimmed(least << 20) for least in (60, 30, 9, 8, 0)}
        check(found[0] >= 160 << 20, f"{found[0]} bytes trimmed of an empty device of 320 MiB")
        for least, size in found.items():
            check(size >= found[0] // 2, f"{size} bytes trimmed in runs of {least} MiB: {found}")
        if place.filesystem == "lanefs":
            equal(trimmed(127 << 20), 0, "bytes trimmed in runs longer than an allocation group")


def _lose(path: Path, pages: int) -> int:
    """Make pages of a file dirty and have their memory fail; 1: that cannot be done."""
    with path.open("r+b") as file:
        file.truncate(pages * BLOCK)
        with mmap.mmap(file.fileno(), pages * BLOCK) as mapped:
            for page in range(pages):
                mapped[page * BLOCK] = 1
            try:
                mapped.madvise(_MADV_HWPOISON)
            except OSError:
                return 1
    return 0


@test
def a_page_whose_memory_failed_holds_no_space(place: Place) -> None:
    """Dirty pages that the memory lost leave the cache; what was promised to them is free again."""
    path = place.directory / "lost"
    pages = 16
    place.own()
    path.touch()
    os.sync()
    before = os.statvfs(place.directory).f_bfree
    child = os.fork()
    if child == 0:
        # It may be killed for what its memory has become.
        os._exit(_lose(path, pages))
    if os.waitpid(child, 0)[1] >> 8:
        raise Skipped("this kernel or user cannot have memory fail")
    os.sync()
    held = before - os.statvfs(place.directory).f_bfree
    check(held < pages // 2, f"{held} blocks are held")
    path.unlink()
