# SPDX-License-Identifier: GPL-2.0-only
"""Direct I/O that is submitted and whose end is waited for later (io_submit)."""

import contextlib
import ctypes
import errno
import mmap
import os
import re
import struct
from pathlib import Path

from tests.lanefs.functions.faulty import failing
from tests.lanefs.functions.files import BLOCK
from tests.lanefs.functions.harness import (
    Place,
    called,
    check,
    children,
    equal,
    fails,
    libc,
    long_test,
    open_direct,
)
from tests.lanefs.functions.log import blocks_of
from tests.lanefs.functions.loop import fsck, loop_device, mounted
from tests.lanefs.functions.scarce import leave
from tests.lanefs.functions.traced import traced

# System calls of x86-64, and structures of linux/aio_abi.h.
_IO_SETUP, _IO_DESTROY, _IO_GETEVENTS, _IO_SUBMIT = 206, 207, 208, 209
_PWRITE = 1
_IOCB, _EVENT = struct.Struct("=QIIHhIQQqQII"), struct.Struct("=QQqq")


def _pwrite(fd: int, data: mmap.mmap, at: int) -> int:
    """Submit a write, and wait for its end; what it returned, as a system call does."""
    context = ctypes.c_ulong()
    called(libc.syscall(_IO_SETUP, 1, ctypes.byref(context)), "io_setup")
    address = ctypes.addressof(ctypes.c_char.from_buffer(data))
    iocb = ctypes.create_string_buffer(
        _IOCB.pack(0, 0, 0, _PWRITE, 0, fd, address, len(data), at, 0, 0, 0)
    )
    event = ctypes.create_string_buffer(_EVENT.size)
    try:
        called(libc.syscall(_IO_SUBMIT, context, 1, ctypes.byref(ctypes.pointer(iocb))), "submit")
        called(libc.syscall(_IO_GETEVENTS, context, 1, 1, event, None), "io_getevents")
    finally:
        libc.syscall(_IO_DESTROY, context)
    return int(_EVENT.unpack(event.raw)[2])


def _interrupts(lines: list[str]) -> list[str]:
    """Those of these lines of tracefs that an interrupt, of hardware or software, has left."""
    return [line for line in lines if re.search(r"\] \S\S[^.]", line)]


@long_test
def the_end_of_a_direct_overwrite_opens_no_handle_in_an_interrupt(place: Place) -> None:
    """Of a written block in which an append has failed, so that it moves the size on disk."""
    place.own_lanefs("the tracepoint is lanefs's")
    with failing(place, 64, alloc="extent") as disk:
        with mounted(place, disk.path) as mount:
            path = mount / "f"
            with path.open("wb", buffering=0) as file:
                file.write(b"a" * 100)
                os.fsync(file.fileno())
                disk.fail(blocks_of(path))
                file.write(b"b" * (BLOCK - 100))
                with fails(errno.EIO, "fsync"):
                    os.fsync(file.fileno())
            disk.mend()
            fd = open_direct(path, os.O_RDWR)
            with mmap.mmap(-1, BLOCK) as data, contextlib.closing(os.fdopen(fd, "r+b", 0)):
                # The page cache tells the next one as well that a write has failed.
                with contextlib.suppress(OSError):
                    os.preadv(fd, [data], 0)
                data[:] = b"c" * BLOCK
                written: list[int] = []
                said = traced(
                    disk.path,
                    lambda: written.append(_pwrite(fd, data, 0)),
                    "lanefs/lanefs_handle_start",
                )
                equal(written, [BLOCK], "what the write returns")
            check(bool(said), "no handle is opened")
            equal(_interrupts(said), [], "handles opened in interrupts")
        with mounted(place, disk.path) as mount:
            equal((mount / "f").read_bytes(), b"c" * BLOCK, "the bytes")
        fsck(place, disk.path)


def _append(path: Path, pieces: int, size: int, rounds: int) -> None:
    """Fill a new file piece by piece, and remove it, so many times."""
    with mmap.mmap(-1, size) as data:
        for turn in range(rounds):
            fd = open_direct(path, os.O_CREAT | os.O_WRONLY)
            data[:] = bytes([1 + turn]) * size
            for number in range(pieces):
                equal(_pwrite(fd, data, number * size), size, f"append {number} of turn {turn}")
            os.close(fd)
            path.unlink()


@long_test
def asynchronous_appends_that_fit_are_written(place: Place) -> None:
    """On a disk that is almost full, to a file that another task reads as it grows."""
    pieces, size = 48, 16 * BLOCK
    done = place.directory / "done"
    with loop_device(place, 64, domains=4) as (device, _):
        with mounted(place, device) as mount:
            # A quarter more than is written, for the file's map and what each domain keeps.
            leave(mount / "rest", pieces * size * 5 // 4 // BLOCK)
            path = mount / "appended"

            def append() -> None:
                try:
                    _append(path, pieces, size, 8)
                finally:
                    done.touch()

            def read() -> None:
                while not done.exists():
                    with contextlib.suppress(FileNotFoundError):
                        check(0 not in path.read_bytes(), "zeros were read where data was appended")

            children(2, lambda number: (append, read)[number]())
            done.unlink()
        fsck(place, device)
