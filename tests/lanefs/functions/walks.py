# SPDX-License-Identifier: GPL-2.0-only
"""Walks of a file's whole map, which take long where it has many extents."""

import ctypes
import mmap
import os
import random
import signal
import statistics
import struct
import time
from collections.abc import Callable
from contextlib import suppress

from tests.lanefs.functions.files import BLOCK, FS_IOC_FIEMAP
from tests.lanefs.functions.harness import Place, check, equal, libc, long_test
from tests.lanefs.functions.loop import loop_device, mounted
from tests.lanefs.functions.space import KEEP, fallocate

_EXTENTS, _KILLS = 4000, 20
_LONG = 16_000
"""extents of a map whose walk takes much longer than a task to end"""
_CACHE = 4
_FIEMAP = struct.Struct("=QQIIII")
_NONE = (1 << 32) - 1


def _count_for_ever(fd: int, flags: int, header: mmap.mmap) -> None:
    """Have FIEMAP count the extents, again and again; the last answer is in `header`."""
    address = ctypes.addressof(ctypes.c_char.from_buffer(header))
    while True:
        _FIEMAP.pack_into(header, 0, 0, (1 << 63) - 1, flags, _NONE, 0, 0)
        libc.ioctl(fd, ctypes.c_ulong(FS_IOC_FIEMAP), ctypes.c_void_p(address))


def _counted_until_killed(fd: int, flags: int, seconds: float) -> int:
    """What FIEMAP had counted when the task died that had called it."""
    header = mmap.mmap(-1, mmap.PAGESIZE)
    pid = os.fork()
    if pid == 0:
        _count_for_ever(fd, flags, header)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return int(_FIEMAP.unpack_from(header)[3])


@long_test
def a_walk_of_a_map_ends_with_its_task(place: Place) -> None:
    """Of a task that is killed while FIEMAP counts extents, or reads the map, it ends there."""
    place.own_lanefs("others go on to the end")
    rng = random.Random(1)
    with (place.directory / "f").open("w+b") as file:
        fd = file.fileno()
        for number in range(_EXTENTS):
            fallocate(fd, KEEP, 2 * number * BLOCK, BLOCK)
        for flags in (0, _CACHE):
            found = [_counted_until_killed(fd, flags, rng.uniform(0.1, 0.3)) for _ in range(_KILLS)]
            whole = {_EXTENTS, _NONE}
            ended = [count for count in found if count not in whole]
            check(bool(ended), f"FIEMAP with flags {flags} always goes on to the end: {found}")
            equal([count for count in ended if count > _EXTENTS], [], "more than there are")


def _seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    began = time.monotonic()
    work()
    return time.monotonic() - began


def _death(walk: Callable[[], None], after: float) -> float:
    """Seconds from the kill of a task that walks, again and again, to its end."""
    pid = os.fork()
    while pid == 0:
        walk()
    time.sleep(after)
    os.kill(pid, signal.SIGKILL)
    return _seconds(lambda: os.waitpid(pid, 0))


@long_test
def a_task_that_walks_a_map_dies_at_once(place: Place) -> None:
    """Where fallocate counts holes, before it takes any block, and where SEEK_DATA looks."""
    place.own_lanefs("others go on to the end")
    with (
        loop_device(place, 200, domains=1) as (device, _),
        mounted(place, device) as mount,
        (mount / "f").open("w+b") as file,
    ):
        fd = file.fileno()
        os.ftruncate(fd, _LONG * BLOCK)
        for number in range(0, _LONG, 2):
            fallocate(fd, 0, number * BLOCK, BLOCK)

        def allocate() -> None:
            fallocate(fd, 0, 0, _LONG * BLOCK)

        def seek() -> None:
            with suppress(OSError):
                os.lseek(fd, 0, os.SEEK_DATA)

        allocate()
        for walk in (allocate, seek):
            whole = statistics.median(_seconds(walk) for _ in range(5))
            ends = [_death(walk, whole * (1 + number / _KILLS)) for number in range(_KILLS)]
            said = f"{walk.__name__}: {1000 * statistics.median(ends):.1f} of {1000 * whole:.1f} ms"
            print(said, flush=True)
            # Who goes on to the end of its walk takes half of one in the median.
            check(statistics.median(ends) < whole / 3, f"a killed task goes on: {said}")
