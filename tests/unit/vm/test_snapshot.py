# SPDX-License-Identifier: GPL-2.0-only
"""What a snapshot has changed, read from its store."""

import struct

import pytest

from fscale.model.errors import FscaleError
from fscale.vm import snapshot

CHUNK = snapshot.CHUNK


def chunk(number: int) -> bytes:
    return struct.pack("<Q", number) * (CHUNK // 8)


def store_of(exceptions: list[tuple[int, bytes]]) -> bytes:
    """A store as the kernel writes it: an area of numbers, then their chunks, and so on."""
    found = struct.pack("<4I", 0x70416E53, 1, 1, CHUNK // 512).ljust(CHUNK, b"\0")
    for first in range(0, len(exceptions) + 1, 256):
        part = exceptions[first : first + 256]
        base = len(found) // CHUNK + 1
        area = b"".join(struct.pack("<2Q", old, base + n) for n, (old, _) in enumerate(part))
        found += area.ljust(CHUNK, b"\0") + b"".join(data for _, data in part)
    # What an earlier snapshot has left there.
    return found + chunk(77)


@pytest.mark.parametrize("count", [0, 1, 255, 256, 257, 600])
def test_changed_chunks_are_those_that_differ_from_the_origin(count, tmp_path):
    store, origin = tmp_path / "store", tmp_path / "origin"
    origin.write_bytes(b"".join(chunk(n) for n in range(700)))
    written = {n: chunk(n if n % 10 == 3 else n + 1000) for n in range(count)}
    store.write_bytes(store_of(list(written.items())))
    different = {n: data for n, data in written.items() if n % 10 != 3}
    assert snapshot.changed(store, origin) == different


def test_a_store_without_a_snapshot_is_told(tmp_path):
    store, origin = tmp_path / "store", tmp_path / "origin"
    store.write_bytes(store_of([(1, chunk(5))]))
    origin.write_bytes(bytes(2 * CHUNK))
    snapshot.clear(store)
    with pytest.raises(FscaleError, match="no valid snapshot"):
        snapshot.changed(store, origin)


def test_the_table_has_chunks_of_that_size(tmp_path):
    made = snapshot.table(8 << 20, tmp_path / "origin", tmp_path / "store")
    assert made.split() == [
        *("0", "16384", "snapshot", f"{tmp_path}/origin", f"{tmp_path}/store", "P", "8"),
    ]
