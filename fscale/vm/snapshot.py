# SPDX-License-Identifier: GPL-2.0-only
"""Reads what a persistent snapshot of device-mapper has changed, from its store.

The store tells which chunks were written, so that nobody has to read all of a device to compare it.
Format: drivers/md/dm-snap-persistent.c. The first chunk is a header; then an area, which is a chunk
with the numbers of changed chunks, is followed by their data, and so on.
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from fscale.model.errors import FscaleError

CHUNK = 4096
_SECTOR = 512
_MAGIC = 0x70416E53
_HEADER = struct.Struct("<4I")
# An exception: number of the chunk on the device, and in the store; no chunk of it is 0.
_EXCEPTION = struct.Struct("<2Q")
_AREA = CHUNK // _EXCEPTION.size


def table(size: int, origin: Path, store: Path) -> str:
    """The table of a snapshot of `size` bytes."""
    return f"0 {size // _SECTOR} snapshot {origin} {store} P {CHUNK // _SECTOR}"


def clear(store: Path) -> None:
    """Make the next snapshot with this store begin without changes."""
    with store.open("r+b") as file:
        file.write(bytes(CHUNK))
        file.flush()
        os.fsync(file.fileno())


def changed(store: Path, origin: Path) -> dict[int, bytes]:
    """The chunks that differ from the origin's, by number, after the snapshot was removed.

    FscaleError if the store has no valid snapshot.
    """
    with store.open("rb") as written, origin.open("rb") as before:
        magic, valid, _, sectors = _HEADER.unpack(written.read(_HEADER.size))
        if magic != _MAGIC or not valid or sectors * _SECTOR != CHUNK:
            raise FscaleError(f"{store} has no valid snapshot")
        chunks = {old: _read(written, new) for old, new in _exceptions(written)}
        return {old: data for old, data in chunks.items() if data != _read(before, old)}


def _exceptions(store: BinaryIO) -> Iterator[tuple[int, int]]:
    area = 1
    while True:
        for old, new in _EXCEPTION.iter_unpack(_read(store, area)):
            if not new:
                return
            yield old, new
        area += 1 + _AREA


def _read(device: BinaryIO, chunk: int) -> bytes:
    device.seek(chunk * CHUNK)
    return device.read(CHUNK)
