# SPDX-License-Identifier: GPL-2.0-only
"""Reads the log of dm-log-writes: all writes to a device in the order in which they became durable.

The kernel logs a completed write only when a flush (or its own FUA) makes it durable. So the log up
to any entry has what a disk with a volatile cache certainly holds after a power cut at that time.
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
# The unit that a disk writes atomically.
SECTOR = 512

_SUPER = struct.Struct("<QQQI")
_ENTRY = struct.Struct("<QQQQ")


@dataclass(frozen=True)
class LogEntry:
    """One entry; `data_offset` and `length` are bytes in the log, `offset` bytes on the device."""

    index: int
    flags: int
    offset: int
    length: int
    data_offset: int
    label: str | None

    @property
    def durable(self) -> bool:
        """Whether the device confirmed to the writer that everything up to here is durable."""
        return bool(self.flags & (FLUSH | FUA))


def read_log(log: BinaryIO) -> list[LogEntry]:
    """All entries of a log device; FscaleError if it has no valid log."""
    log.seek(0)
    head = log.read(_SUPER.size)
    if len(head) < _SUPER.size:
        raise FscaleError(f"the log device has only {len(head)} bytes, too few for a log")
    magic, version, count, sector_size = _SUPER.unpack(head)
    if magic != MAGIC or version != VERSION:
        raise FscaleError(
            f"the log device has no dm-log-writes log (magic {magic:#x}, version {version})"
        )
    return list(_entries(log, count, sector_size))


def _entries(log: BinaryIO, count: int, sector_size: int) -> Iterator[LogEntry]:
    position = sector_size
    for index in range(count):
        log.seek(position)
        head = log.read(sector_size)
        if len(head) < sector_size:
            raise FscaleError(
                f"the log ends within entry {index} of {count}; the log device needs more space"
            )
        sector, sectors, flags, label_length = _ENTRY.unpack_from(head)
        label = None
        if flags & MARK:
            label = head[_ENTRY.size : _ENTRY.size + label_length].decode(errors="replace")
        position += sector_size
        yield LogEntry(index, flags, sector * sector_size, sectors * sector_size, position, label)
        # A discard has a length and no data.
        if not flags & DISCARD:
            position += sectors * sector_size


def crash_points(entries: list[LogEntry]) -> list[int]:
    """Indices of the entries after which a power cut is worth testing.

    After each flush or FUA write more data is durable; after each mark the workload relies on more.
    Of consecutive marks only the last one is used, because it is the strictest.
    """
    points = []
    for entry, following in zip(entries, [*entries[1:], None], strict=True):
        marks_follow = following is not None and following.flags & MARK
        if (entry.durable or entry.flags & MARK) and not marks_follow:
            points.append(entry.index)
    return points


def apply(log: BinaryIO, entry: LogEntry, device: BinaryIO) -> None:
    """Write an entry's data to `device`. A discard is ignored: a disk may do that."""
    if entry.flags & (DISCARD | MARK) or not entry.length:
        return
    log.seek(entry.data_offset)
    device.seek(entry.offset)
    device.write(log.read(entry.length))


def under_way(group: list[LogEntry]) -> list[LogEntry]:
    """The entries after one flush, up to and including the next, that a cut may have kept.

    A disk may write the data in its cache in any order before it is flushed, so a power cut during
    the flush may keep any of them. A write that carries a flush begins after that flush.
    """
    *before, last = group
    replayed = [e for e in before if e.length and not e.flags & (DISCARD | MARK)]
    if last.length and not last.flags & (FLUSH | DISCARD | MARK):
        replayed.append(last)
    return replayed


def apply_some(log: BinaryIO, group: list[LogEntry], device: BinaryIO, rng: random.Random) -> None:
    """Write a random subset of the entries to `device`, some of them only in part."""
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
