# SPDX-License-Identifier: GPL-2.0-only
"""What other tasks see of a file while it is written."""

import mmap
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lanefs.functions.files import BLOCK
from tests.lanefs.functions.harness import (
    Place,
    Skipped,
    check,
    children,
    equal,
    load_ends,
    long_test,
    open_direct,
    optional,
)
from tests.lanefs.functions.loop import mounted, scsi_device

SECONDS = 3.0
SECTOR = 512
WORD = 4


@contextmanager
def _data(size: int, offset: int) -> Iterator[memoryview]:
    """So many bytes of memory, at this offset in a page."""
    with mmap.mmap(-1, 2 * BLOCK) as pages, memoryview(pages)[offset : offset + size] as data:
        data[:] = b"a" * size
        yield data


def _write_directly(path: Path, size: int, offset: int) -> None:
    """Write so many bytes; Skipped where the device has larger sectors, or wants other memory."""
    fd = open_direct(path, os.O_RDWR)
    try:
        with _data(size, offset) as data, optional("direct I/O of such sectors and memory"):
            os.pwritev(fd, [data], 0)
    finally:
        os.close(fd)


def _read_while_appended(directory: Path, size: int, offset: int = 0) -> None:
    """A buffered read of what direct writes of `size` bytes append finds their bytes or the end.

    They come from memory at this offset in a page. The writer shares its CPU with a busy process,
    so that it is often stopped halfway.
    """
    path = directory / "f"
    path.touch()
    _write_directly(path, size, offset)
    os.truncate(path, 0)
    end = load_ends(SECONDS)
    cpus = sorted(os.sched_getaffinity(0))

    def append() -> None:
        fd = open_direct(path, os.O_RDWR)
        with _data(size, offset) as data:
            for number in range(20_000):
                equal(os.pwritev(fd, [data], number * size), size, "bytes appended")
                if time.monotonic() > end:
                    break

    def read() -> None:
        fd = os.open(path, os.O_RDONLY)
        at = 0
        while time.monotonic() < end:
            found = os.pread(fd, size, at)
            equal(found.strip(b"a"), b"", f"other bytes at {at}")
            at += len(found)

    def keep_busy() -> None:
        while time.monotonic() < end:
            pass

    tasks = ((append, cpus[0]), (keep_busy, cpus[0]), (read, cpus[-1]))

    def work(number: int) -> None:
        task, cpu = tasks[number]
        os.sched_setaffinity(0, {cpu})
        task()

    children(len(tasks), work)


@long_test
def a_direct_append_is_not_read_before_it_is_written(place: Place) -> None:
    """No zeros are read in its place."""
    _read_while_appended(place.directory, BLOCK)


@long_test
def a_direct_append_to_a_block_is_not_read_before_it_is_written(place: Place) -> None:
    """As above, where the end of the file moves inside a block that is cached."""
    place.own()
    if place.filesystem == "ext4":
        raise Skipped("of Linux 6.12 it shows zeros")
    _read_while_appended(place.directory, SECTOR)


@long_test
def a_direct_append_of_any_words_is_not_read_before_it_is_written(place: Place) -> None:
    """As above, of memory that is aligned to no sector, which many devices take."""
    if place.filesystem == "ext4":
        raise Skipped("of Linux 6.12 it shows zeros")
    with scsi_device(place, 64) as device, mounted(place, device) as mount:
        _read_while_appended(mount, SECTOR, WORD)


@long_test
def a_file_with_data_never_seems_to_have_no_blocks(place: Place) -> None:
    """st_blocks while data is written back for the first time: programs take 0 for a hole."""
    place.own()
    if place.filesystem == "ext4":
        raise Skipped("of Linux 6.18 it may have none")
    end = load_ends(SECONDS)

    def path(number: int) -> str:
        return f"{place.directory}/f{number}"

    with mmap.mmap(-1, 8) as shared:

        def write() -> None:
            number = 0
            while time.monotonic() < end:
                shared[:] = number.to_bytes(8, "little")
                fd = os.open(path(number), os.O_CREAT | os.O_WRONLY)
                os.write(fd, b"x" * BLOCK)
                os.fdatasync(fd)
                os.close(fd)
                if number >= 10:
                    os.unlink(path(number - 10))
                number += 1

        def look() -> None:
            while time.monotonic() < end:
                name = path(int.from_bytes(shared[:], "little"))
                try:
                    found = os.stat(name)
                except FileNotFoundError:
                    continue
                check(not found.st_size or found.st_blocks > 0, f"{name} has no blocks")

        children(2, lambda number: look() if number else write())
