# SPDX-License-Identifier: GPL-2.0-only
"""The log of dm-log-writes: every write to a device in the order in which it became durable.

The kernel logs a completed write only when a flush (or its own FUA) makes it durable, so that the
log up to any entry is what a disk with a volatile cache is sure to hold after a power cut then.
Format: Documentation/admin-guide/device-mapper/log-writes.rst and drivers/md/dm-log-writes.c.
"""

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from fscale.model.errors import FscaleError

MAGIC = 0x6A736677736872
VERSION = 1
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8
# What a disk writes whole or not at all.
SECTOR = 512

_SUPER = struct.Struct("<QQQI")
_ENTRY = struct.Struct("<QQQQ")


@dataclass(frozen=True)
class Entry:
    """One entry; `data_offset` and `length` are bytes in the log, `offset` bytes on the device."""

    index: int
    flags: int
    offset: int
    length: int
    data_offset: int
    label: str | None

    @property
    def durable(self) -> bool:
        """Whether the writer was told that everything up to here is on the disk."""
        return bool(self.flags & (FLUSH | FUA))


def read_log(log: BinaryIO) -> list[Entry]:
    """All entries of a log device; FscaleError when it holds none of ours."""
    log.seek(0)
    head = log.read(_SUPER.size)
    if len(head) < _SUPER.size:
        raise FscaleError("the log device is too small")
    magic, version, count, sector_size = _SUPER.unpack(head)
    if magic != MAGIC or version != VERSION:
        raise FscaleError(f"no dm-log-writes log (magic {magic:#x}, version {version})")
    return list(_entries(log, count, sector_size))


def _entries(log: BinaryIO, count: int, sector_size: int) -> Iterator[Entry]:
    position = sector_size
    for index in range(count):
        log.seek(position)
        head = log.read(sector_size)
        if len(head) < sector_size:
            raise FscaleError(f"the log ends within entry {index} of {count}: give it more space")
        sector, sectors, flags, label_length = _ENTRY.unpack_from(head)
        label = None
        if flags & MARK:
            label = head[_ENTRY.size : _ENTRY.size + label_length].decode(errors="replace")
        position += sector_size
        yield Entry(index, flags, sector * sector_size, sectors * sector_size, position, label)
        # A discard has a length and no data.
        if not flags & DISCARD:
            position += sectors * sector_size


def crash_points(entries: list[Entry]) -> list[int]:
    """Indices of the entries after which a power cut is worth a look.

    After each flush or FUA write the disk holds something new for sure; after each mark the
    workload relies on more. Of marks in a row the last one asks for most.
    """
    points = []
    for entry, following in zip(entries, [*entries[1:], None], strict=True):
        marks_follow = following is not None and following.flags & MARK
        if (entry.durable or entry.flags & MARK) and not marks_follow:
            points.append(entry.index)
    return points


def apply(log: BinaryIO, entry: Entry, device: BinaryIO) -> None:
    """Write an entry's data to `device`. A discard is ignored: a disk may do that."""
    if entry.flags & (DISCARD | MARK) or not entry.length:
        return
    log.seek(entry.data_offset)
    device.seek(entry.offset)
    device.write(log.read(entry.length))


def under_way(group: list[Entry]) -> list[Entry]:
    """Of the entries after one flush, up to and with the next, those that a cut may have kept.

    A disk may write what it holds in its cache in any order before it is flushed, so a power cut
    during the flush may keep any of them. A write that carries a flush begins after it.
    """
    *before, last = group
    found = [e for e in before if e.length and not e.flags & (DISCARD | MARK)]
    if last.length and not last.flags & (FLUSH | DISCARD | MARK):
        found.append(last)
    return found


def apply_some(log: BinaryIO, group: list[Entry], device: BinaryIO, rng: random.Random) -> None:
    """Write some of the entries to `device`, and of some of these only some sectors."""
    share = rng.choice((0.1, 0.5, 0.9))
    for entry in group:
        if rng.random() >= share:
            continue
        torn = rng.random() < 0.25
        log.seek(entry.data_offset)
        data = log.read(entry.length)
        for at in range(0, entry.length, SECTOR) if torn else (0,):
            if not torn or rng.random() < 0.5:
                device.seek(entry.offset + at)
                device.write(data[at : at + SECTOR] if torn else data)
