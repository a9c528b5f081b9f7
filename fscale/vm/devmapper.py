# SPDX-License-Identifier: GPL-2.0-only
"""Device-mapper devices and messages to their targets by ioctl (include/uapi/linux/dm-ioctl.h).

A call of dmsetup takes tens of milliseconds in an emulated guest. A crash test makes devices for
each image, and a mark must be in the write log before any later write.
"""

import errno
import fcntl
import os
import stat
import struct
import time
from pathlib import Path

DIRECTORY = Path("/dev/mapper")
CONTROL = DIRECTORY / "control"
# A device that was just closed may be busy for a while.
RETRIES, RETRY_SECONDS = 100, 0.05
# struct dm_ioctl: version, sizes, counts, flags, dev, name, uuid; padded to 312 bytes
_HEADER = struct.Struct("=3I2IIiIIIQ128s129s7x")
_DEV_OFFSET = struct.calcsize("=3I2IIiIII")
# struct dm_target_spec: first sector, sectors, status, offset of the next, type
_TARGET = struct.Struct("=QQiI16s")
_SECTOR = struct.Struct("=Q")
_VERSION = (4, 0, 0)


def _code(number: int) -> int:
    return 3 << 30 | _HEADER.size << 16 | 0xFD << 8 | number


_DEV_CREATE, _DEV_REMOVE, _DEV_SUSPEND, _TABLE_LOAD, _TARGET_MSG = map(_code, (3, 4, 6, 9, 14))


def request(name: str, body: bytes = b"", targets: int = 0) -> bytes:
    """The ioctl's argument: `body` for the device `name`."""
    size = _HEADER.size + len(body)
    head = _HEADER.pack(*_VERSION, size, _HEADER.size, targets, 0, 0, 0, 0, 0, name.encode(), b"")
    return head + body


def message(text: str) -> bytes:
    """The body of a message to the target at sector 0."""
    return _SECTOR.pack(0) + text.encode() + b"\0"


def target(line: str) -> bytes:
    """A line of a table: the first sector, the number of sectors, the type, its parameters."""
    first, sectors, kind, *parameters = line.split(maxsplit=3)
    text = "".join(parameters).encode() + b"\0"
    text += bytes(-len(text) % 8)
    head = _TARGET.pack(int(first), int(sectors), 0, _TARGET.size + len(text), kind.encode())
    return head + text


def _call(code: int, argument: bytes) -> bytes:
    fd = os.open(CONTROL, os.O_RDWR)
    try:
        answer = bytearray(argument)
        fcntl.ioctl(fd, code, answer)
        return bytes(answer)
    finally:
        os.close(fd)


def create(name: str, table: str) -> str:
    """Make a device and its node, as dmsetup does; its path, or OSError."""
    targets = [target(line) for line in table.splitlines()]
    answer = _call(_DEV_CREATE, request(name))
    try:
        _call(_TABLE_LOAD, request(name, b"".join(targets), len(targets)))
        # Without the flag, it resumes.
        _call(_DEV_SUSPEND, request(name))
        (device,) = _SECTOR.unpack_from(answer, _DEV_OFFSET)
        path = DIRECTORY / name
        os.mknod(path, stat.S_IFBLK | 0o600, device)
    except BaseException:
        _call(_DEV_REMOVE, request(name))
        raise
    return str(path)


def remove(name: str) -> None:
    """Remove a device and its node; OSError if it stays busy."""
    for left in reversed(range(RETRIES)):
        try:
            _call(_DEV_REMOVE, request(name))
            break
        except OSError as error:
            if error.errno != errno.EBUSY or not left:
                raise
            time.sleep(RETRY_SECONDS)
    (DIRECTORY / name).unlink()


def send(name: str, text: str) -> None:
    """Send a message; OSError if the device or the target rejects it."""
    _call(_TARGET_MSG, request(name, message(text)))
