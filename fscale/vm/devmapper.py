# SPDX-License-Identifier: GPL-2.0-only
"""Messages to device-mapper targets by ioctl (include/uapi/linux/dm-ioctl.h).

`dmsetup message` takes tens of milliseconds in an emulated guest, but a mark must be in the write
log before any later write.
"""

import fcntl
import os
import struct
from pathlib import Path

CONTROL = Path("/dev/mapper/control")
# struct dm_ioctl: version, sizes, counts, flags, dev, name, uuid; padded to 312 bytes
_HEADER = struct.Struct("=3I2IIiIIIQ128s129s7x")
_SECTOR = struct.Struct("=Q")
_VERSION = (4, 0, 0)
_TARGET_MSG = 3 << 30 | _HEADER.size << 16 | 0xFD << 8 | 14


def request(name: str, message: str) -> bytes:
    """The ioctl's argument: `message` to the target at sector 0 of the device `name`."""
    body = _SECTOR.pack(0) + message.encode() + b"\0"
    size = _HEADER.size + len(body)
    head = _HEADER.pack(*_VERSION, size, _HEADER.size, 0, 0, 0, 0, 0, 0, name.encode(), b"")
    return head + body


def send(name: str, message: str) -> None:
    """Send a message; OSError if the device or the target rejects it."""
    fd = os.open(CONTROL, os.O_RDWR)
    try:
        fcntl.ioctl(fd, _TARGET_MSG, bytearray(request(name, message)))
    finally:
        os.close(fd)
