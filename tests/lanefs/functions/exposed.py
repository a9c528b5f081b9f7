# SPDX-License-Identifier: GPL-2.0-only
"""After a crash a file has only bytes that were written to it, and zeros."""

import errno
import mmap
import os
import random
import time
from pathlib import Path

from tests.lanefs.device import SHUTDOWN_LOG as LOG
from tests.lanefs.device import SHUTDOWN_NOW as NOW
from tests.lanefs.functions.concurrent import allowed
from tests.lanefs.functions.files import BLOCK
from tests.lanefs.functions.harness import (
    Place,
    check,
    children,
    equal,
    load_ends,
    long_test,
    open_direct,
    opened,
)
from tests.lanefs.functions.loop import fsck, loop_device, mounted
from tests.lanefs.functions.shifts import COLLAPSE, INSERT
from tests.lanefs.functions.shutdown import shutdown
from tests.lanefs.functions.space import KEEP, PUNCH, ZERO, fallocate
from tests.lanefs.functions.writers import STOPPED

_WRITERS, _FILES = 3, 5
_FOREIGN = b"\xcd"
_MODES = {
    "allocate": 0,
    "keep": KEEP,
    "punch": PUNCH | KEEP,
    "zero": ZERO,
    "collapse": COLLAPSE,
    "insert": INSERT,
}


def _soil(mount: Path) -> None:
    """Leave the foreign byte in all blocks that are free."""
    fd = os.open(mount / "soil", os.O_CREAT | os.O_WRONLY)
    while allowed(lambda: os.write(fd, _FOREIGN * (1 << 20)), errno.ENOSPC):
        pass
    os.fsync(fd)
    os.close(fd)
    (mount / "soil").unlink()
    os.sync()


def _write_directly(path: Path, byte: bytes, at: int, length: int) -> None:
    """Whole blocks, from the one at `at` on."""
    fd = open_direct(path, os.O_RDWR | os.O_CREAT)
    try:
        with mmap.mmap(-1, length // BLOCK * BLOCK + BLOCK) as buffer:
            buffer.write(byte * len(buffer))
            os.pwritev(fd, [buffer], at // BLOCK * BLOCK)
    finally:
        os.close(fd)


def _change(path: Path, byte: bytes, rng: random.Random) -> None:
    """Change a file at random; OSError. What is written to it is `byte`."""
    kind = rng.choice((*("write", "append", "direct", "cut", "fsync", "unlink"), *_MODES))
    at, length = rng.randrange(128 * BLOCK), rng.randrange(1, 32 * BLOCK)
    if kind == "unlink":
        path.unlink(missing_ok=True)
        return
    if kind == "direct":
        _write_directly(path, byte, at, length)
        return
    if kind in {"collapse", "insert"}:
        at, length = at // BLOCK * BLOCK, length // BLOCK * BLOCK + BLOCK
    with opened(path, os.O_RDWR | os.O_CREAT) as fd:
        if kind in _MODES:
            fallocate(fd, _MODES[kind], at, length)
        elif kind == "fsync":
            os.fsync(fd)
        elif kind == "cut":
            os.ftruncate(fd, at)
        else:
            os.pwrite(fd, byte * length, at if kind == "write" else os.fstat(fd).st_size)


def _byte(writer: int, file: int) -> bytes:
    """What is written to a file, and to no other."""
    return bytes([1 + writer * _FILES + file])


def _change_until_stopped(mount: Path, writer: int, seed: int) -> None:
    rng = random.Random(seed * _WRITERS + writer)
    while True:
        file = rng.randrange(_FILES)
        try:
            _change(mount / f"{writer}-{file}", _byte(writer, file), rng)
        except OSError as error:
            if error.errno in STOPPED:
                return
            # A range is not within the file, or there is no space.
            if error.errno not in {errno.EINVAL, errno.ENOSPC}:
                raise


def _shut_down_among_writers(place: Place, mount: Path, seed: int, keep: int) -> None:
    end = load_ends(2 + seed % 3)

    def work(number: int) -> None:
        if number < _WRITERS:
            _change_until_stopped(mount, number, seed)
            return
        while time.monotonic() < end:
            time.sleep(0.05)
        shutdown(place, mount, keep)

    children(_WRITERS + 1, work)


def _check_files(mount: Path) -> int:
    """Fail where a file has another's bytes; how many files there are."""
    paths = [path for path in mount.iterdir() if "-" in path.name]
    for path in paths:
        writer, file = map(int, path.name.split("-"))
        others = set(path.read_bytes()) - {0, *_byte(writer, file)}
        equal(others, set(), f"bytes in {path.name} that were never written to it")
    return len(paths)


def _crash(place: Place, alloc: str) -> int:
    """How many files there were after crashes."""
    found = 0
    with loop_device(place, 64, alloc=alloc) as (device, _):
        with mounted(place, device) as mount:
            _soil(mount)
        for seed, keep in enumerate((LOG, NOW, LOG)):
            with mounted(place, device) as mount:
                _shut_down_among_writers(place, mount, seed, keep)
            with mounted(place, device) as mount:
                found += _check_files(mount)
            if place.filesystem == "lanefs":
                fsck(place, device)
    return found


@long_test
def a_crash_shows_no_bytes_that_were_never_written(place: Place) -> None:
    """Not those of other files, nor of deleted ones, whether or not the last commits are kept."""
    for alloc in ("extent", "log"):
        check(_crash(place, alloc) > 0, f"no file was there after a crash ({alloc})")
