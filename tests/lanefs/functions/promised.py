# SPDX-License-Identifier: GPL-2.0-only
"""Space that fallocate gave to a file: writes to it do not fail, however full the disk is."""

import errno
import mmap
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.lanefs.functions.files import BLOCK, drop_caches
from tests.lanefs.functions.harness import (
    Place,
    check,
    equal,
    long_test,
    open_direct,
    optional,
)
from tests.lanefs.functions.loop import loop_device, mounted


def _until_full(work: Callable[[int], None]) -> int:
    """Call `work` until it fails for want of space; how often it did not."""
    count = 0
    while True:
        try:
            work(count)
        except OSError as error:
            equal(error.errno, errno.ENOSPC, "errno on a full disk")
            return count
        count += 1


def _fill(root: Path) -> None:
    """Take all that is free: data, and then names, objects and attributes in every directory."""
    directories = []
    for cpu in sorted(os.sched_getaffinity(0)):
        os.sched_setaffinity(0, {cpu})
        directories.append(root / f"dir{cpu}")
        directories[-1].mkdir()
        (directories[-1] / "f").touch()
    with (root / "rest").open("wb", buffering=0) as file:
        _until_full(lambda _: check(file.write(b"r" * BLOCK) == BLOCK, "a write is short"))
    os.sync()
    for _ in range(2):
        for at in directories:
            name = os.urandom(8).hex()
            _until_full(lambda n, at=at, name=name: os.mkdir(at / f"{name}{n}"))  # type: ignore[misc]
            _until_full(
                lambda n, at=at, name=name: os.link(  # type: ignore[misc]
                    at / "f", at / f"{name}{n}-{'x' * 200}"
                )
            )
            with suppress(OSError):
                os.setxattr(at / "f", "user.value", b"x" * 3000)
        os.sync()


def _block(n: int) -> bytes:
    return b"%07d." % n * (BLOCK // 8)


@long_test
def what_was_allocated_ahead_takes_writes_on_a_full_disk(place: Place) -> None:
    """Every second block of it: buffered, direct, through a mapping; no error, and all is there."""
    kinds = ("buffered", "direct", "mapped")
    cpus = os.sched_getaffinity(0)
    with loop_device(place, 100, domains=4) as (device, _):
        with mounted(place, device) as mount:
            free = os.statvfs(mount)
            blocks = free.f_bavail * free.f_frsize // BLOCK // 5
            os.sched_setaffinity(0, {min(cpus)})
            for kind in kinds:
                with (mount / kind).open("wb") as file, optional("fallocate"):
                    os.posix_fallocate(file.fileno(), 0, blocks * BLOCK)
            os.close(open_direct(mount / "direct", os.O_RDWR))
            os.sched_setaffinity(0, cpus)
            _fill(mount)
            os.sched_setaffinity(0, cpus)
            with (mount / "buffered").open("r+b", buffering=0) as file:
                for n in range(1, blocks, 2):
                    equal(os.pwrite(file.fileno(), _block(n), n * BLOCK), BLOCK, "bytes written")
                    if n % 500 == 1:
                        os.fsync(file.fileno())
                os.fsync(file.fileno())
            fd = os.open(mount / "direct", os.O_RDWR | os.O_DIRECT)
            with os.fdopen(fd, "r+b", buffering=0), mmap.mmap(-1, BLOCK) as memory:
                for n in range(1, blocks, 2):
                    memory[:] = _block(n)
                    equal(os.pwritev(fd, [memory], n * BLOCK), BLOCK, "bytes written directly")
                os.fsync(fd)
            with (mount / "mapped").open("r+b") as file:
                with mmap.mmap(file.fileno(), blocks * BLOCK) as area:
                    for n in range(1, blocks, 2):
                        area[n * BLOCK : (n + 1) * BLOCK] = _block(n)
                    area.flush()
                os.fsync(file.fileno())
        drop_caches()
        with mounted(place, device) as mount:
            for kind in kinds:
                data = (mount / kind).read_bytes()
                equal(len(data), blocks * BLOCK, f"the size of the {kind} one")
                for n in range(blocks):
                    right = _block(n) if n % 2 else bytes(BLOCK)
                    check(data[n * BLOCK : (n + 1) * BLOCK] == right, f"{kind}: block {n} differs")
