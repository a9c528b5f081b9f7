# SPDX-License-Identifier: GPL-2.0-only
"""What programs ask of a file beside its bytes: file_getattr(2), file_setattr(2), FIEMAP."""

import ctypes
import errno
import fcntl
import os
import struct
from pathlib import Path

from tests.lanefs.functions.files import BLOCK, FS_IOC_FIEMAP
from tests.lanefs.functions.flags import (
    APPEND,
    DIRSYNC,
    IMMUTABLE,
    NOATIME,
    NODUMP,
    SYNC,
    XFLAGS,
    flags_of,
    needs,
    set_flags,
)
from tests.lanefs.functions.harness import (
    Place,
    Skipped,
    called,
    check,
    equal,
    fails,
    libc,
    optional_elsewhere,
    test,
)

FILE_GETATTR, FILE_SETATTR = 468, 469
AT_FDCWD, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH = -100, 0x100, 0x1000
_SYNC, _XATTR, _CACHE = 1, 2, 4
_LAST = 1
_ATTR = struct.Struct("=QIIII")


def _get(fd: int, path: Path | str, flags: int = 0) -> int:
    """file_getattr(2), as flags of FS_IOC_GETFLAGS."""
    data = ctypes.create_string_buffer(_ATTR.size)
    where = os.fsencode(path)
    called(libc.syscall(FILE_GETATTR, fd, where, data, _ATTR.size, flags), "file_getattr")
    found = _ATTR.unpack(data.raw)[0]
    return sum(flag for flag, bit in XFLAGS.items() if found & bit)


def _set(fd: int, path: Path | str, flags: int, at: int = 0, projid: int = 0) -> None:
    xflags = sum(bit for flag, bit in XFLAGS.items() if flags & flag)
    data = _ATTR.pack(xflags, 0, 0, projid, 0)
    where = os.fsencode(path)
    called(libc.syscall(FILE_SETATTR, fd, where, data, _ATTR.size, at), "file_setattr")


@test
def attributes_can_be_had_by_path(place: Place) -> None:
    """Of files and directories, by path and by descriptor, as the ioctls give them."""
    needs(place, NODUMP | NOATIME | SYNC)
    path, directory = place.directory / "f", place.directory / "d"
    path.touch()
    directory.mkdir()
    equal(_get(AT_FDCWD, path), 0, "flags of a new file")
    for target in (path, directory):
        _set(AT_FDCWD, target, NODUMP | NOATIME)
        equal(flags_of(target), NODUMP | NOATIME, "flags by ioctl")
        set_flags(target, SYNC)
        equal(_get(AT_FDCWD, target), SYNC, "flags by path")
        fd = os.open(target, os.O_RDONLY)
        _set(fd, "", NODUMP, AT_EMPTY_PATH)
        os.close(fd)
        fd = os.open(place.directory, os.O_PATH)
        equal(_get(fd, target.name), NODUMP, "flags by the O_PATH descriptor of the directory")
        os.close(fd)
    set_flags(directory, DIRSYNC)
    _set(AT_FDCWD, directory, NODUMP)
    equal(flags_of(directory), DIRSYNC | NODUMP, "a flag that has no name there stays")
    for flag in (IMMUTABLE, APPEND):
        _set(AT_FDCWD, path, flag)
        with fails(errno.EPERM, "a write"):
            os.truncate(path, 1)
        _set(AT_FDCWD, path, 0)
    with fails(errno.ENOENT, "what is not there"):
        _get(AT_FDCWD, place.directory / "no")
    with fails(errno.EINVAL, "an unknown flag"):
        _get(AT_FDCWD, path, 0x40000000)
    if place.filesystem == "lanefs":
        with fails(errno.EOPNOTSUPP, "a project"):
            _set(AT_FDCWD, path, 0, projid=5)


@test
def attributes_of_links_and_special_files(place: Place) -> None:
    """They can have nodump and noatime, and no others; a link that is followed is the file."""
    needs(place, NODUMP | NOATIME)
    path, link, fifo = (place.directory / name for name in ("f", "l", "p"))
    path.touch()
    link.symlink_to("f")
    os.mkfifo(fifo)
    _set(AT_FDCWD, link, NODUMP)
    equal(_get(AT_FDCWD, path), NODUMP, "flags of what a link leads to")
    for target in (link, fifo):
        with optional_elsewhere(place, "flags of a link"):
            equal(_get(AT_FDCWD, target, AT_SYMLINK_NOFOLLOW), 0, f"flags of {target.name}")
            _set(AT_FDCWD, target, NODUMP | NOATIME, AT_SYMLINK_NOFOLLOW)
    place.cycle()
    for target in (link, fifo):
        equal(_get(AT_FDCWD, target, AT_SYMLINK_NOFOLLOW), NODUMP | NOATIME, target.name)
        if place.filesystem == "lanefs":
            with fails(errno.EOPNOTSUPP, "an immutable one"):
                _set(AT_FDCWD, target, IMMUTABLE, AT_SYMLINK_NOFOLLOW)


def _fiemap(fd: int, flags: int, room: int = 20) -> list[tuple[int, ...]]:
    """Logical and physical byte, length and flags of each extent; OSError has what FIEMAP left."""
    data = bytearray(32 + 56 * room)
    struct.pack_into("=QQIIII", data, 0, 0, (1 << 63) - 1, flags, 0, room, 0)
    try:
        fcntl.ioctl(fd, FS_IOC_FIEMAP, data)
    except OSError as error:
        error.filename = struct.unpack_from("=QQI", data)[2]
        raise
    count = struct.unpack_from("=QQII", data)[3]
    found = []
    for n in range(count):
        logical, physical, length, _, _, kind = struct.unpack_from("=QQQQQI", data, 32 + 56 * n)
        found.append((logical, physical, length, kind))
    return found


@test
def fiemap_shows_where_attributes_are(place: Place) -> None:
    """With FIEMAP_FLAG_XATTR; with FIEMAP_FLAG_CACHE the same as without; EBADR for others."""
    path = place.directory / "f"
    path.write_bytes(b"x" * 3 * BLOCK)
    fd = os.open(path, os.O_RDWR)
    with optional_elsewhere(place, "FIEMAP"):
        plain = _fiemap(fd, _SYNC)
    with optional_elsewhere(place, "FIEMAP_FLAG_CACHE"):
        equal(_fiemap(fd, _CACHE | _SYNC), plain, "extents of a cached map")
    equal(sum(length for _, _, length, _ in plain), 3 * BLOCK, "bytes")
    try:
        _fiemap(fd, 0x40000000)
        check(False, "an unknown flag is taken")
    except OSError as error:
        equal((error.errno, error.filename), (errno.EBADR, 0x40000000), "errno, and bits")
    if place.filesystem != "lanefs":
        raise Skipped("no block for attributes alone")
    equal(_fiemap(fd, _XATTR), [], "attributes of a file that has none")
    os.setxattr(path, "user.a", b"b" * 1000)
    (found,) = _fiemap(fd, _XATTR)
    logical, physical, length, kind = found
    equal((logical, length, kind), (0, BLOCK, _LAST), "the attributes' block")
    check(physical > 0 and physical % BLOCK == 0, f"it lies at {physical}")
    check(all(physical != extent[1] for extent in plain), "it is a block of the data")
    os.close(fd)
    place.cycle()
    with open(place.own(), "rb") as device:
        check(b"b" * 1000 in os.pread(device.fileno(), BLOCK, physical), "it is not there")
