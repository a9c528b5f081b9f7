# SPDX-License-Identifier: GPL-2.0-only
"""Writes that fail, are dropped, or fail at random: under load, in a recovery, at an unmount."""

import contextlib
import errno
import mmap
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fscale.vm.crashload import sync
from tests.lanefs.device import SHUTDOWN_NOW
from tests.lanefs.functions.faulty import Disk, failing, random_errors
from tests.lanefs.functions.files import BLOCK, drop_caches
from tests.lanefs.functions.harness import (
    Place,
    Skipped,
    called,
    check,
    children,
    equal,
    fails,
    libc,
    load_ends,
    long_test,
    open_direct,
    run,
)
from tests.lanefs.functions.log import blocks_of, collect_always
from tests.lanefs.functions.loop import fsck, loop_device, mounted
from tests.lanefs.functions.shutdown import shutdown
from tests.lanefs.functions.writers import look_at_all, noted, write_on

MIB, WRITERS, BLOCKS = 320, 8, 8
OLD = b"old data" * (BLOCK // 8)


def _allocs(place: Place) -> tuple[str, ...]:
    return ("extent", "log") if place.filesystem == "lanefs" else ("",)


def _check_after(place: Place, device: str, notes: Path) -> int:
    """Mount, which recovers, and check what is durable and all structures; how much is durable."""
    with mounted(place, device) as mount:
        durable = look_at_all(mount, notes)
    # ext4 has noted that its journal was aborted, which e2fsck tells.
    if place.filesystem == "lanefs":
        fsck(place, device)
    return durable


@long_test
def writes_that_are_dropped_are_as_a_power_cut(place: Place) -> None:
    """Writers go on, and what was durable before is there afterwards."""
    place.own()
    for alloc in _allocs(place):
        with (
            failing(place, MIB, domains=2, alloc=alloc) as disk,
            tempfile.TemporaryDirectory(dir="/run") as directory,
        ):
            notes, dropping = Path(directory) / "notes", Path(directory) / "dropping"
            notes.mkdir()
            with mounted(place, disk.path) as mount:

                def work(
                    number: int,
                    disk: Disk = disk,
                    mount: Path = mount,
                    notes: Path = notes,
                    dropping: Path = dropping,
                ) -> None:
                    if number:
                        write_on(mount, notes, number, dropping)
                        return
                    while noted(notes) < WRITERS * 3 // 4:
                        os.sched_yield()
                    dropping.touch()
                    disk.drop_writes()
                    # What is read again then is old, and may be found to be damaged.
                    with contextlib.suppress(OSError):
                        for n in range(20):
                            (mount / f"dropped{n}").write_bytes(OLD)
                            sync(mount / f"dropped{n}")
                        drop_caches()
                        for n in range(20):
                            (mount / f"dropped{n}").write_bytes(OLD)
                    with contextlib.suppress(OSError):
                        shutdown(place, mount, SHUTDOWN_NOW)

                children(WRITERS + 1, work)
            disk.mend()
            durable = _check_after(place, disk.path, notes)
            check(durable >= WRITERS * 3 // 4, f"only {durable} things were durable")


@long_test
def an_unmount_that_is_dropped_changes_nothing(place: Place) -> None:
    """What is on the device is what was there before, and is recovered."""
    place.own()
    for alloc in _allocs(place):
        with failing(place, MIB, alloc=alloc) as disk:
            with mounted(place, disk.path) as mount:
                (mount / "kept").write_bytes(OLD)
                os.sync()
                disk.drop_writes()
                (mount / "dropped").write_bytes(OLD)
                sync(mount / "dropped")
            disk.mend()
            with mounted(place, disk.path) as mount:
                equal((mount / "kept").read_bytes(), OLD, "what was synced")
                check(not (mount / "dropped").exists(), "a dropped write is there")
            fsck(place, disk.path)


def _unmount(mount: Path) -> None:
    """Nothing: the unmount follows."""
    del mount


def _fail_to(*argv: str) -> Callable[[Path], None]:
    def work(mount: Path) -> None:
        done = subprocess.run([*argv, str(mount)], capture_output=True, check=False)
        check(done.returncode != 0, f"{argv[0]} succeeds though nothing can be written")

    return work


@long_test
def a_disk_whose_writes_fail_can_be_frozen_remounted_and_unmounted(place: Place) -> None:
    """The first two fail, and nobody hangs; what was synced is there afterwards."""
    place.own()
    ways = (_fail_to("fsfreeze", "-f"), _fail_to("mount", "-o", "remount,ro"), _unmount)
    for alloc in _allocs(place):
        for way in ways if place.filesystem == "lanefs" else ways[-1:]:
            with failing(place, MIB, domains=2, alloc=alloc) as disk:
                with mounted(place, disk.path) as mount:
                    (mount / "kept").write_bytes(OLD)
                    os.sync()
                    (mount / "new").mkdir()
                    (mount / "new" / "f").write_bytes(OLD)
                    disk.fail_writes()
                    way(mount)
                disk.mend()
                with mounted(place, disk.path) as mount:
                    equal((mount / "kept").read_bytes(), OLD, "what was synced")
                if place.filesystem == "lanefs":
                    fsck(place, disk.path)


def _write_buffered(path: Path, data: bytes) -> None:
    with path.open("r+b", buffering=0) as file:
        file.write(data)
        with fails(errno.EIO, "fsync"):
            os.fsync(file.fileno())
        os.fsync(file.fileno())


def _write_directly(path: Path, data: bytes) -> None:
    fd = open_direct(path, os.O_WRONLY)
    with mmap.mmap(-1, len(data)) as memory, fails(errno.EIO, "a direct write"):
        memory[:] = data
        os.pwrite(fd, memory, 0)
    os.close(fd)


def _write_synchronously(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_SYNC)
    with fails(errno.EIO, "a write with O_SYNC"):
        os.pwrite(fd, data, 0)
    os.close(fd)


def _write_through_a_mapping(path: Path, data: bytes) -> None:
    with path.open("r+b", buffering=0) as file, mmap.mmap(file.fileno(), len(data)) as memory:
        memory[:] = data
        with fails(errno.EIO, "msync"):
            memory.flush()


def _write_before_syncfs(path: Path, data: bytes) -> None:
    with path.open("r+b", buffering=0) as file:
        file.write(data)
        with fails(errno.EIO, "syncfs"):
            called(libc.syncfs(file.fileno()), "syncfs")


WAYS: tuple[Callable[[Path, bytes], None], ...] = (
    _write_buffered,
    _write_directly,
    _write_synchronously,
    _write_through_a_mapping,
    _write_before_syncfs,
)


@long_test
def writes_that_fail_are_told_and_show_nothing_old(place: Place) -> None:
    """Blocks that are allocated ahead stay unwritten, whatever the device has there."""
    place.own()
    if place.filesystem == "ext4":
        raise Skipped("of Linux 6.12 it shows what was there")
    with failing(place, MIB, alloc="extent") as disk:
        with mounted(place, disk.path) as mount:
            for way in WAYS:
                path = mount / way.__name__
                with path.open("wb") as file:
                    os.posix_fallocate(file.fileno(), 0, BLOCKS * BLOCK)
                    os.fsync(file.fileno())
                blocks = blocks_of(path)
                with Path(disk.below).open("r+b", buffering=0) as device:
                    for block in blocks:
                        os.pwrite(device.fileno(), OLD, block * BLOCK)
                    os.fsync(device.fileno())
                disk.fail(blocks)
                way(path, b"n" * BLOCKS * BLOCK)
                disk.mend()
        with mounted(place, disk.path) as mount:
            for way in WAYS:
                found = (mount / way.__name__).read_bytes()
                equal(found.strip(b"\0"), b"", f"the bytes after {way.__name__}")
        fsck(place, disk.path)


def _load_under_faults(
    place: Place, mount: Path, notes: Path, number: int, begin: Callable[[], None]
) -> None:
    """Writers with numbers from `number` on, until faults have stopped them or for some seconds."""

    def work(n: int) -> None:
        if n:
            write_on(mount, notes, number + n)
            return
        while noted(notes, f"{number + 1}.*") + noted(notes, f"{number + 2}.*") < 2:
            os.sched_yield()
        begin()
        end = load_ends(5)
        with contextlib.suppress(OSError):
            while time.monotonic() < end:
                (mount / f"probe{number}").touch()
                time.sleep(0.02)
        with contextlib.suppress(OSError):
            shutdown(place, mount, SHUTDOWN_NOW)

    children(WRITERS + 1, work)


def _mount_under_faults(place: Place, device: str) -> None:
    """Mount, which may fail, and unmount."""
    point = place.directory / "m"
    argv = ["mount", "-t", place.filesystem, device, str(point)]
    if subprocess.run(argv, capture_output=True, check=False).returncode == 0:
        run("umount", str(point))


@long_test
def errors_at_random_lose_nothing_durable(place: Place) -> None:
    """Of writers and of mounts that recover; one request in so many fails."""
    place.own()
    for alloc in _allocs(place):
        with (
            loop_device(place, MIB, domains=2, alloc=alloc) as (device, _),
            random_errors(device) as errors,
            tempfile.TemporaryDirectory(dir="/run") as directory,
        ):
            notes, failed, durable = Path(directory), 0, 0
            for round_, one_in in enumerate((2000, 300, 50, 10)):
                with mounted(place, device) as mount:
                    collect_always(device)
                    _load_under_faults(
                        place,
                        mount,
                        notes,
                        round_ * 100,
                        lambda one_in=one_in: errors.begin(one_in),  # type: ignore[misc]
                    )
                failed += errors.end()
                for _ in range(3):
                    errors.begin(30)
                    _mount_under_faults(place, device)
                    failed += errors.end()
                durable = _check_after(place, device, notes)
            print(f"{alloc}: {failed} requests failed, {durable} things durable", flush=True)
            check(failed >= 4, f"only {failed} requests failed")


@long_test
def bad_blocks_lose_nothing_durable(place: Place) -> None:
    """Of the whole device, chosen at random; reads and writes of them fail until it is mended."""
    place.own()
    if place.filesystem == "ext4":
        raise Skipped("of Linux 6.12 it may lose a name")
    chooser = random.Random(1)
    for alloc in _allocs(place):
        with (
            failing(place, MIB, domains=2, alloc=alloc) as disk,
            tempfile.TemporaryDirectory(dir="/run") as directory,
        ):
            notes = Path(directory)
            blocks = MIB * (1 << 20) // BLOCK
            for round_, one_in in enumerate((1000, 100, 20)):
                bad = chooser.sample(range(blocks), blocks // one_in)
                with mounted(place, disk.path) as mount:
                    collect_always(disk.path)
                    _load_under_faults(
                        place,
                        mount,
                        notes,
                        round_ * 100,
                        lambda bad=bad, disk=disk: disk.fail(bad),  # type: ignore[misc]
                    )
                _mount_under_faults(place, disk.path)
                disk.mend()
                _check_after(place, disk.path, notes)
