# SPDX-License-Identifier: GPL-2.0-only
"""Flags of inodes (chattr): what they forbid, who has them, and that they are kept."""

import ctypes
import errno
import fcntl
import mmap
import os
import signal
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lanefs.functions.files import BLOCK, drop_caches
from tests.lanefs.functions.harness import (
    Place,
    Skipped,
    check,
    equal,
    fails,
    libc,
    long_test,
    opened,
    optional_elsewhere,
    run,
    test,
)
from tests.lanefs.functions.loop import attached, fsck, loop_device, mounted
from tests.lanefs.functions.space import KEEP, fallocate
from tests.lanefs.functions.xattrs import as_nobody

_GETFLAGS, _SETFLAGS = 0x80086601, 0x40086602
_FSGETXATTR, _FSSETXATTR = 0x801C581F, 0x401C5820
SYNC, IMMUTABLE, APPEND, NODUMP, NOATIME, DIRSYNC = 0x8, 0x10, 0x20, 0x40, 0x80, 0x10000
FILE = SYNC | IMMUTABLE | APPEND | NODUMP | NOATIME
ALL = FILE | DIRSYNC
# The same in struct fsxattr, which has none for DIRSYNC.
XFLAGS = {IMMUTABLE: 0x8, APPEND: 0x10, SYNC: 0x20, NOATIME: 0x40, NODUMP: 0x80}
# Of statx(2), which has only these.
_ATTRIBUTES = {IMMUTABLE: 0x10, APPEND: 0x20, NODUMP: 0x40}
_NO_FOLLOW = 0x100


def flags_of(path: Path) -> int:
    """FS_IOC_GETFLAGS, those that are ours to test."""
    with opened(path, os.O_RDONLY | os.O_NONBLOCK) as fd:
        (found,) = struct.unpack("=I", fcntl.ioctl(fd, _GETFLAGS, bytes(8))[:4])
        return int(found) & ALL


def set_flags(path: Path, flags: int) -> None:
    """FS_IOC_SETFLAGS; flags of the file system's own stay."""
    with opened(path) as fd:
        (old,) = struct.unpack("=I", fcntl.ioctl(fd, _GETFLAGS, bytes(8))[:4])
        fcntl.ioctl(fd, _SETFLAGS, struct.pack("=Ixxxx", (old & ~ALL) | flags))


def needs(place: Place, flags: int) -> None:
    """Skipped where the mount is not ours, or another file system has no such flags."""
    place.own()
    with optional_elsewhere(place, "such flags"):
        set_flags(place.directory, flags)
    set_flags(place.directory, 0)


def needs_strictness(place: Place) -> None:
    """Skipped on XFS and others, which ask for immutable files only when these are opened."""
    needs(place, IMMUTABLE)
    if place.filesystem not in ("lanefs", "ext4"):
        raise Skipped("what is open may be written to")


@contextmanager
def flagged(path: Path, flags: int) -> Iterator[None]:
    """With these flags, and afterwards with none, so that it can be removed."""
    set_flags(path, flags)
    try:
        yield
    finally:
        set_flags(path, 0)


def _extended(path: Path) -> int:
    """FS_IOC_FSGETXATTR, as flags."""
    with opened(path) as fd:
        (found,) = struct.unpack("=I", fcntl.ioctl(fd, _FSGETXATTR, bytes(28))[:4])
    return sum(flag for flag, bit in XFLAGS.items() if found & bit)


def _set_extended(path: Path, flags: int, projid: int = 0) -> None:
    xflags = sum(bit for flag, bit in XFLAGS.items() if flags & flag)
    with opened(path) as fd:
        fcntl.ioctl(fd, _FSSETXATTR, struct.pack("=IIIII8x", xflags, 0, 0, projid, 0))


def _attributes(path: Path) -> tuple[int, int]:
    """What statx tells of flags, and which of them it can tell of; not following links."""
    buffer = ctypes.create_string_buffer(256)
    if libc.statx(-100, os.fsencode(path), _NO_FOLLOW, 0x7FF, buffer) < 0:
        raise OSError(ctypes.get_errno(), "statx")
    found, known = struct.unpack_from("=Q", buffer, 8)[0], struct.unpack_from("=Q", buffer, 56)[0]

    def ours(bits: int) -> int:
        return sum(flag for flag, bit in _ATTRIBUTES.items() if bits & bit)

    return ours(found), ours(known)


def signal_of(work: Callable[[], object]) -> int:
    """The signal that ends a process which does that; 0: none."""
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    return max(0, -os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


@long_test
def flags_are_kept(place: Place) -> None:
    """Each alone and all, of files and directories, through both interfaces; over a remount."""
    needs(place, ALL)
    right: dict[str, int] = {}
    with loop_device(place, 320) as (device, _):
        with mounted(place, device) as mount:
            for directory in (False, True):
                one = [1 << bit for bit in range(32) if (ALL if directory else FILE) >> bit & 1]
                for flags in (*one, sum(one)):
                    name = f"{'d' if directory else 'f'}{flags:x}"
                    (mount / name).mkdir() if directory else (mount / name).touch()
                    set_flags(mount / name, flags)
                    right[name] = flags
            (mount / "extended").touch()
            _set_extended(mount / "extended", NOATIME | APPEND)
            right["extended"] = NOATIME | APPEND
        fsck(place, device)
        with mounted(place, device) as mount:
            for name, flags in right.items():
                equal(hex(flags_of(mount / name)), hex(flags), f"flags of {name}")
                equal(hex(_extended(mount / name)), hex(flags & ~DIRSYNC), f"extended, of {name}")
                told, known = _attributes(mount / name)
                equal(hex(told), hex(flags & known), f"statx's, of {name}")
                equal(hex(known), hex(sum(_ATTRIBUTES)), "what statx can tell of")
                set_flags(mount / name, 0)
                equal(flags_of(mount / name), 0, f"no flags of {name}")


@test
def flags_that_are_none_are_refused(place: Place) -> None:
    """EOPNOTSUPP, of another kind of object too; what there is stays."""
    needs(place, NODUMP | NOATIME)
    path = place.directory / "f"
    path.touch()
    with flagged(path, NODUMP):
        with fails(errno.EOPNOTSUPP, "a flag of no meaning here"):
            set_flags(path, 0x00800000)
        with fails(errno.EOPNOTSUPP, "dirsync of a file"):
            set_flags(path, DIRSYNC)
        if place.filesystem == "lanefs":
            with fails(errno.EOPNOTSUPP, "a project"):
                _set_extended(path, NODUMP, projid=5)
        equal(flags_of(path), NODUMP, "flags")
        before = os.stat(path).st_ctime_ns
        time.sleep(0.02)
        set_flags(path, NOATIME)
        check(os.stat(path).st_ctime_ns > before, "a change of flags leaves ctime")


@test
def an_immutable_file_refuses_all_changes(place: Place) -> None:
    """EPERM, through what was opened before too; a store to a mapping is a signal."""
    needs_strictness(place)
    path, other = place.directory / "f", place.directory / "other"
    path.write_bytes(b"x" * 3 * BLOCK)
    with path.open("r+b", buffering=0) as file, mmap.mmap(file.fileno(), 0) as memory:
        # Pages that are dirty, in the mapping and not.
        os.pwrite(file.fileno(), b"y", 0)
        memory[BLOCK] = ord("y")
        right = path.read_bytes()
        with flagged(path, IMMUTABLE):
            time.sleep(0.02)
            modified = path.stat().st_mtime_ns
            for what, call in (
                ("a write to a dirty page", lambda: os.pwrite(file.fileno(), b"z", 0)),
                ("a write", lambda: os.pwrite(file.fileno(), b"z" * 2 * BLOCK, 100)),
                ("an append", lambda: os.pwrite(file.fileno(), b"z", 3 * BLOCK)),
                ("ftruncate", lambda: os.ftruncate(file.fileno(), 5)),
                ("truncate", lambda: os.truncate(path, 5)),
                ("fallocate", lambda: fallocate(file.fileno(), KEEP, 0, 1 << 20)),
                ("open to write", lambda: os.open(path, os.O_WRONLY)),
                ("chmod", lambda: os.chmod(path, 0o600)),
                ("fchmod", lambda: os.fchmod(file.fileno(), 0o600)),
                ("chown", lambda: os.chown(path, 5, 5)),
                ("utime", lambda: os.utime(path, (1, 1))),
                ("link", lambda: os.link(path, other)),
                ("rename", lambda: os.rename(path, other)),
                ("unlink", lambda: os.unlink(path)),
                ("setxattr", lambda: os.setxattr(path, "user.x", b"")),
                ("another flag", lambda: set_flags(path, IMMUTABLE | NODUMP)),
            ):
                with fails(errno.EPERM, f"{what} of an immutable file"):
                    call()
            for page in range(3):
                found = signal_of(lambda page=page: memory.__setitem__(page * BLOCK, 1))  # type: ignore[misc]
                equal(found, signal.SIGBUS, f"the signal of a store to page {page}")
            equal(path.read_bytes(), right, "its bytes")
            equal(path.stat().st_mtime_ns, modified, "when it was modified")
        os.pwrite(file.fileno(), b"z", 0)
        memory[BLOCK] = ord("z")
        os.ftruncate(file.fileno(), 2 * BLOCK)
    equal(path.read_bytes()[::BLOCK], b"zz", "bytes written when it was mutable again")


@long_test
def a_file_stands_still_from_when_it_is_immutable(place: Place) -> None:
    """Though writers and stores to mappings are under way when it becomes so.

    On others no stores: ext4 writes the file before it says that it is immutable.
    """
    needs_strictness(place)
    stores = place.filesystem == "lanefs"
    path = place.directory / "f"
    path.write_bytes(bytes(8 * BLOCK))

    began, begin = os.pipe()

    def write(number: int) -> None:
        fd = os.open(path, os.O_RDWR)
        os.write(begin, b"w")
        for n in range(1 << 62):
            os.pwrite(fd, b"%016d" % n, (n % 8) * BLOCK + number * 16)

    def store(number: int) -> None:
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
            os.write(begin, b"s")
            for n in range(1 << 62):
                at = (n % 8) * BLOCK + number * 16
                memory[at : at + 16] = b"%016d" % n

    for _ in range(5):
        running = []
        for number in range(4):
            pid = os.fork()
            if pid == 0:
                with open(os.devnull, "w") as null:
                    os.dup2(null.fileno(), 2)
                try:
                    (store if stores and number % 2 else write)(number)
                except OSError as error:
                    os._exit(error.errno or 1)
            running.append(pid)
        for _ in running:
            os.read(began, 1)
        time.sleep(0.3)
        with flagged(path, IMMUTABLE):
            found = path.read_bytes()
            ends = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in running]
            other = -signal.SIGBUS if stores else errno.EPERM
            equal(ends, [errno.EPERM, other] * 2, "how the writers end")
            equal(path.read_bytes(), found, "the bytes after a while")
            drop_caches()
            equal(path.read_bytes(), found, "the bytes on the device")


@test
def an_append_only_file_only_grows(place: Place) -> None:
    """Opened to append; no truncation, no removal."""
    needs(place, APPEND)
    path = place.directory / "f"
    path.write_bytes(b"begin")
    with flagged(path, APPEND):
        for what, call in (
            ("open to write", lambda: os.open(path, os.O_WRONLY)),
            ("open to truncate", lambda: os.open(path, os.O_WRONLY | os.O_APPEND | os.O_TRUNC)),
            ("truncate", lambda: os.truncate(path, 1)),
            ("chmod", lambda: os.chmod(path, 0o600)),
            ("rename", lambda: os.rename(path, place.directory / "g")),
            ("unlink", lambda: os.unlink(path)),
        ):
            with fails(errno.EPERM, f"{what} of an append-only file"):
                call()
        with path.open("ab", buffering=0) as file:
            file.write(b", more")
            with fails(errno.EPERM, "ftruncate"):
                os.ftruncate(file.fileno(), 1)
            with fails(errno.EPERM, "a hole"):
                fallocate(file.fileno(), KEEP | 2, 0, BLOCK)
    equal(path.read_bytes(), b"begin, more", "its bytes")


@test
def directories_that_refuse_changes(place: Place) -> None:
    """An immutable one takes and loses no names, an append-only one loses none."""
    needs(place, IMMUTABLE | APPEND)
    here = place.directory / "d"
    (here / "sub").mkdir(parents=True)
    (here / "f").touch()
    with flagged(here, IMMUTABLE):
        for what, call in (
            ("a creation", lambda: (here / "new").touch()),
            ("mkdir", lambda: (here / "new").mkdir()),
            ("O_TMPFILE", lambda: os.open(here, os.O_TMPFILE | os.O_WRONLY)),
            ("unlink", lambda: (here / "f").unlink()),
            ("rmdir", lambda: (here / "sub").rmdir()),
            ("a rename", lambda: (here / "f").rename(here / "g")),
            ("a rename of itself", lambda: here.rename(place.directory / "e")),
            ("chmod", lambda: here.chmod(0o700)),
        ):
            with fails(errno.EPERM, f"{what} in an immutable directory"):
                call()
        (here / "f").write_text("x")
    with flagged(here, APPEND):
        (here / "new").touch()
        for name in ("f", "new"):
            with fails(errno.EPERM, "unlink in an append-only directory"):
                (here / name).unlink()
    equal(sorted(os.listdir(here)), ["f", "new", "sub"], "names")


@test
def flags_are_inherited(place: Place) -> None:
    """A new object has sync, nodump, noatime and dirsync of its directory, as far as it can."""
    needs(place, SYNC | NODUMP | NOATIME | DIRSYNC)
    here = place.directory / "d"
    here.mkdir()
    with flagged(here, SYNC | NODUMP | NOATIME | DIRSYNC | APPEND):
        (here / "f").touch()
        (here / "sub").mkdir()
        (here / "sub" / "below").touch()
        (here / "link").symlink_to("f")
        os.mkfifo(here / "fifo")
        fd = os.open(here, os.O_TMPFILE | os.O_RDWR)
        name = os.fsencode(here / "tmpfile")
        equal(libc.linkat(-100, b"/proc/self/fd/%d" % fd, -100, name, 0x400), 0, "linkat")
        os.close(fd)
    place.cycle()
    for name, right in (
        ("f", SYNC | NODUMP | NOATIME),
        ("sub", SYNC | NODUMP | NOATIME | DIRSYNC),
        ("sub/below", SYNC | NODUMP | NOATIME),
        ("tmpfile", SYNC | NODUMP | NOATIME),
    ):
        equal(hex(flags_of(here / name)), hex(right), f"flags of {name}")
    for name in ("link", "fifo"):
        equal(_attributes(here / name)[0], NODUMP, f"statx's attributes of {name}")


@test
def noatime_of_a_file_keeps_its_time(place: Place) -> None:
    """A read moves the times of others."""
    needs(place, NOATIME)
    with loop_device(place, 320) as (device, _), mounted(place, device, "strictatime") as mount:
        for name, flags, moves in (("f", 0, True), ("g", NOATIME, False)):
            (mount / name).write_bytes(b"x")
            set_flags(mount / name, flags)
            os.utime(mount / name, (1, 1))
            for _ in range(3):
                (mount / name).read_bytes()
            equal((mount / name).stat().st_atime != 1, moves, f"whether a read moves {name}'s")


@test
def sync_and_dirsync_make_changes_durable(place: Place) -> None:
    """A copy of the device, as after a power cut, has what was written and named."""
    needs(place, SYNC | DIRSYNC)
    with loop_device(place, 320) as (device, backing):
        copy = backing.with_name("copy")
        with mounted(place, device) as mount:
            (mount / "d").mkdir()
            (mount / "f").touch()
            set_flags(mount / "f", SYNC)
            set_flags(mount / "d", DIRSYNC)
            os.sync()
            with (mount / "f").open("r+b", buffering=0) as file:
                file.write(b"f" * 10_000)
                os.pwrite(file.fileno(), b"g", 5)
                os.ftruncate(file.fileno(), 9_000)
            (mount / "d" / "name").touch()
            run("cp", "--sparse=always", str(backing), str(copy))
        with attached(copy) as again, mounted(place, again) as mount:
            equal((mount / "f").read_bytes(), b"f" * 5 + b"g" + b"f" * 8994, "the bytes")
            equal(os.listdir(mount / "d"), ["name"], "names")


@test
def flags_need_rights(place: Place) -> None:
    """The owner may set some; immutable and append need a capability; others may set none."""
    needs(place, NODUMP)
    mine, yours = place.directory / "mine", place.directory / "yours"
    mine.touch()
    yours.touch()
    os.chown(mine, 65534, 65534)

    def try_it() -> None:
        set_flags(mine, NODUMP | NOATIME)
        for flag in (IMMUTABLE, APPEND):
            with fails(errno.EPERM, "a flag that needs a capability"):
                set_flags(mine, NODUMP | NOATIME | flag)
        with fails(errno.EPERM, "a flag of another's file"):
            set_flags(yours, NODUMP)

    as_nobody(try_it)
    equal(flags_of(mine), NODUMP | NOATIME, "flags of one's own")
    equal(flags_of(yours), 0, "flags of another's")
