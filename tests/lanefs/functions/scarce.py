# SPDX-License-Identifier: GPL-2.0-only
"""Little space, beside what holds the superblock's lock or free blocks: what fits is written."""

import fcntl
import mmap
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path

from tests.lanefs.functions.files import BLOCK
from tests.lanefs.functions.harness import (
    Place,
    called,
    check,
    children,
    equal,
    libc,
    load_ends,
    long_test,
    opened,
)
from tests.lanefs.functions.loop import fsck, loop_device, mounted
from tests.lanefs.functions.nowait import cgroups
from tests.lanefs.functions.space import FITRIM, KEEP, fallocate

SECONDS = 4.0
# Scattered blocks of a file, each of which reserves more than it takes; and what else is free.
SCATTERED, SPARE = 600, 300
_MEMORY = 3 << 20
"""of a writer: less than the pages that it scatters, and what they need, in all"""
_FIFREEZE, _FITHAW = 0xC0045877, 0xC0045878
_MS_REMOUNT = 32


def _remount(mount: Path, fd: int) -> None:
    del fd
    called(libc.mount(None, bytes(mount), None, _MS_REMOUNT, None), "mount")


def _freeze(mount: Path, fd: int) -> None:
    del mount
    fcntl.ioctl(fd, _FIFREEZE, 0)
    fcntl.ioctl(fd, _FITHAW, 0)
    # Else the next freeze begins before a writer goes on.
    time.sleep(0.005)


def _trim(mount: Path, fd: int) -> None:
    del mount
    fcntl.ioctl(fd, FITRIM, bytearray(struct.pack("=QQQ", 0, 1 << 62, 0)))


def _sync(mount: Path, fd: int) -> None:
    del mount
    called(libc.syncfs(fd), "syncfs")


def leave(path: Path, left: int) -> None:
    """Write a file that leaves so many blocks to data."""
    found = os.statvfs(path.parent)
    path.write_bytes(bytes(found.f_bavail * found.f_frsize - left * BLOCK))
    os.sync()


def _write(mount: Path) -> None:
    """Write, store, and allocate less than what was left; OSError, or SIGBUS."""
    offsets = range(0, 2 * SCATTERED * BLOCK, 2 * BLOCK)
    with (mount / "scattered").open("w+b", buffering=0) as file:
        for offset in offsets:
            os.pwrite(file.fileno(), b"w" * BLOCK, offset)
        os.ftruncate(file.fileno(), 0)
        os.ftruncate(file.fileno(), offsets.stop)
        with mmap.mmap(file.fileno(), offsets.stop) as area:
            for offset in offsets:
                area[offset] = ord("w")
    with (mount / "allocated").open("wb") as file:
        fallocate(file.fileno(), KEEP, 0, SPARE // 2 * BLOCK)
    (mount / "allocated").unlink()


def _write_until(end: float, mount: Path) -> None:
    """Once at least."""
    _write(mount)
    while time.monotonic() < end:
        _write(mount)


def _write_beside(mount: Path, done: Path, disturb: Callable[[Path, int], None]) -> None:
    """Write again and again, while another task calls `disturb` all the time."""
    end = load_ends(SECONDS)

    def work(number: int) -> None:
        disturbed = 0
        if number:
            with opened(mount) as fd:
                # A store without space would kill the other task.
                while not done.exists() and time.monotonic() < end + 30:
                    disturb(mount, fd)
                    disturbed += 1
            check(disturbed > 1, f"{disturb.__name__} was called {disturbed} times")
            return
        try:
            _write_until(end, mount)
        except OSError as error:
            raise OSError(error.errno, f"beside {disturb.__name__}: {error.strerror}") from None
        finally:
            done.touch()

    children(2, work)
    done.unlink()


@long_test
def what_fits_is_written_beside_remounts_freezes_trims_and_syncs(place: Place) -> None:
    """No ENOSPC, though others hold the superblock's lock, or are discarding what is free."""
    with loop_device(place, 64, domains=1) as (device, _):
        with mounted(place, device) as mount:
            leave(mount / "rest", SCATTERED + SPARE)
            for disturb in (_remount, _freeze, _trim, _sync):
                _write_beside(mount, place.directory / "done", disturb)
            data = (mount / "scattered").read_bytes()
            equal(data.count(b"w"), SCATTERED, "bytes that were stored")
        fsck(place, device)


@long_test
def what_fits_is_written_with_little_memory(place: Place) -> None:
    """No ENOSPC, nor an end for want of memory, though its own delayed data is reclaimed."""
    group = cgroups(place, "memory") / "fscale-little"
    group.mkdir()
    (group / "memory.max").write_text(f"{_MEMORY}")
    end = load_ends(SECONDS)

    def work(mount: Path) -> None:
        (group / "cgroup.procs").write_text("0")
        _write_until(end, mount)

    try:
        with loop_device(place, 64, domains=1) as (device, backing):
            with backing.open("r+b") as file:  # its new pages would count as the writer's memory
                os.posix_fallocate(file.fileno(), 0, 64 << 20)
            with mounted(place, device) as mount:
                leave(mount / "rest", SCATTERED + SPARE)
                children(1, lambda _: work(mount))
            fsck(place, device)
        events = dict(line.split() for line in (group / "memory.events").read_text().splitlines())
        check(int(events["max"]) > 0, f"the limit of memory was never met: {events}")
    finally:
        group.rmdir()
