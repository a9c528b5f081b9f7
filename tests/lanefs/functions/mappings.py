# SPDX-License-Identifier: GPL-2.0-only
"""Shared mappings: stores behind the end of the file, and the kernel's own stores to them."""

import fcntl
import itertools
import mmap
import os
import struct
from collections.abc import Callable
from pathlib import Path

from tests.lanefs.functions.files import BLOCK, FS_IOC_FIEMAP, drop_caches
from tests.lanefs.functions.harness import (
    Place,
    Skipped,
    check,
    equal,
    long_test,
    open_direct,
    optional,
    test,
)
from tests.lanefs.functions.space import ZERO, fallocate


def _write(path: Path) -> None:
    with path.open("r+b") as file:
        os.pwrite(file.fileno(), bytes(1), 3 * BLOCK - 1)


def _write_directly(path: Path) -> None:
    fd = open_direct(path, os.O_RDWR)
    with mmap.mmap(-1, BLOCK) as data:
        os.pwritev(fd, [data], 2 * BLOCK)
    os.close(fd)


def _allocate(path: Path, mode: int) -> None:
    with path.open("r+b") as file, optional("fallocate"):
        fallocate(file.fileno(), mode, BLOCK, 2 * BLOCK)


_GROW: dict[str, Callable[[Path], None]] = {
    "truncate": lambda path: os.truncate(path, 3 * BLOCK),
    "a write": _write,
    "a direct write": _write_directly,
    "fallocate": lambda path: _allocate(path, 0),
    "fallocate of zeros": lambda path: _allocate(path, ZERO),
}


@long_test
def stores_behind_the_end_do_not_show_when_the_file_grows(place: Place) -> None:
    """A mapping may store to the rest of the last page; a longer file has zeros there."""
    place.own()
    if place.filesystem == "ext4":
        raise Skipped("of Linux 6.18 it shows them after a direct write")
    path = place.directory / "f"
    for (what, grow), synced in itertools.product(_GROW.items(), (False, True)):
        path.write_bytes(b"a" * BLOCK)
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
            os.ftruncate(file.fileno(), 1000)
            memory[2000:2010] = b"b" * 10
            if synced:
                os.fsync(file.fileno())
                memory[3000:3010] = b"c" * 10
            grow(path)
        right = b"a" * 1000 + bytes(3 * BLOCK - 1000)
        equal(path.read_bytes(), right, f"the bytes after {what}, {synced=}")
        drop_caches()
        equal(path.read_bytes(), right, f"the bytes on the device after {what}, {synced=}")


@test
def fiemap_may_answer_into_the_file_itself(place: Place) -> None:
    """Its buffer is in a mapping of the file, in a page that is not in memory yet."""
    header = struct.Struct("=QQIIII")
    with (place.directory / "f").open("w+b") as file:
        for block in range(0, 20, 2):
            os.pwrite(file.fileno(), b"x" * BLOCK, block * BLOCK)
        os.fsync(file.fileno())
        drop_caches()
        with (
            mmap.mmap(file.fileno(), 19 * BLOCK) as memory,
            memoryview(memory) as view,
            view[BLOCK - header.size :] as answer,
        ):
            header.pack_into(answer, 0, 0, (1 << 63) - 1, 0, 0, 20, 0)
            with optional("FIEMAP"):
                fcntl.ioctl(file.fileno(), FS_IOC_FIEMAP, answer)
            check(header.unpack_from(answer)[3] >= 10, "FIEMAP shows too few extents")
