# SPDX-License-Identifier: GPL-2.0-only
"""A device that fails: writers are told, nobody hangs, what was durable is there afterwards."""

import contextlib
import errno
import itertools
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fscale.vm.crashload import sync
from fscale.vm.crashtest import map_device
from tests.lanefs.functions.files import BLOCK
from tests.lanefs.functions.harness import (
    Place,
    Skipped,
    check,
    children,
    equal,
    fails,
    long_test,
    run,
)
from tests.lanefs.functions.log import blocks_of
from tests.lanefs.functions.loop import fsck, loop_device, mounted, removable_device
from tests.lanefs.functions.shutdown import STOPPED

NAME = "fscale-failing"
SECTORS = BLOCK // 512
WRITERS = 4


@dataclass(frozen=True)
class _Disk:
    """A device-mapper device, of which parts can fail."""

    path: str
    below: str
    sectors: int

    def fail(self, blocks: Sequence[int] | None = None) -> None:
        """Requests for these blocks fail from now on, or for any block."""
        if blocks is None:
            self._load(f"0 {self.sectors} error")
            return
        lines, at = [], 0
        for block in sorted(blocks):
            start = block * SECTORS
            if start > at:
                lines.append(f"{at} {start - at} linear {self.below} {at}")
            lines.append(f"{start} {SECTORS} error")
            at = start + SECTORS
        if self.sectors > at:
            lines.append(f"{at} {self.sectors - at} linear {self.below} {at}")
        self._load("\n".join(lines))

    def mend(self) -> None:
        """No request fails any more."""
        self._load(f"0 {self.sectors} linear {self.below} 0")

    def _load(self, table: str) -> None:
        # The file system is not to be frozen: it could not be, without its device.
        run("dmsetup", "suspend", "--nolockfs", "--noflush", NAME)
        done = subprocess.run(["dmsetup", "reload", NAME], input=table, text=True, check=False)
        check(done.returncode == 0, f"dmsetup does not take the table {table}")
        run("dmsetup", "resume", NAME)


@contextmanager
def _failing(place: Place, mib: int, domains: int = 1, alloc: str = "") -> Iterator[_Disk]:
    """A disk with a new file system, which does not fail yet."""
    with loop_device(place, mib, domains=domains, alloc=alloc) as (below, _):
        sectors = mib * 2048
        with map_device(NAME, f"0 {sectors} linear {below} 0") as path:
            yield _Disk(path, below, sectors)


def _write_until_it_fails(mount: Path, notes: Path, number: int) -> None:
    """Files that are synced, one after the other; each that is durable is noted elsewhere."""
    with (notes / str(number)).open("a", buffering=1) as noted:
        for n in itertools.count():
            try:
                with (mount / f"{number}-{n}").open("xb", buffering=0) as file:
                    file.write(b"%08d" % n * 2000)
                    os.fsync(file.fileno())
            except OSError as error:
                check(error.errno in STOPPED, f"a writer fails with {error}")
                return
            noted.write(f"{n}\n")


@long_test
def a_device_that_fails_under_writers_hangs_nobody(place: Place) -> None:
    """All see the error, also an fsync of what was written before; then recovery and fsck."""
    place.own()
    with _failing(place, 320, domains=2) as disk:
        notes = Path("/run/notes")
        notes.mkdir()
        with mounted(place, disk.path) as mount:
            (mount / "kept").write_bytes(b"k" * 20_000)
            os.sync()
            before = os.open(mount / "before", os.O_CREAT | os.O_RDWR)
            os.write(before, b"b" * 20_000)

            def work(number: int) -> None:
                if number:
                    _write_until_it_fails(mount, notes, number)
                    return
                while sum(path.stat().st_size > 0 for path in notes.iterdir()) < WRITERS:
                    os.sched_yield()
                disk.fail()
                with fails(errno.EIO, "fsync of what cannot be written"):
                    os.fsync(before)

            children(WRITERS + 1, work)
            os.close(before)
            if place.filesystem == "lanefs":
                # A transaction that cannot be written shuts it down; data that cannot be does not.
                with contextlib.suppress(OSError):
                    (mount / "new").touch()
                with contextlib.suppress(OSError):
                    sync(mount)
                with fails(errno.EIO, "a read of a cached file"):
                    (mount / "kept").read_bytes()
        disk.mend()
        with mounted(place, disk.path) as mount:
            equal((mount / "kept").read_bytes(), b"k" * 20_000, "what was synced")
            for path in notes.iterdir():
                for line in path.read_text().splitlines():
                    found = (mount / f"{path.name}-{line}").read_bytes()
                    equal(found, b"%08d" % int(line) * 2000, f"what writer {path.name} had synced")
        if place.filesystem == "lanefs":
            fsck(place, disk.path)
        run("rm", "-r", str(notes))


def _one_block_fails(disk: _Disk, block: int, first: int, second: int, alloc: str) -> None:
    """A write to it is an error of each descriptor, once, and so is a read of it."""
    disk.fail([block])
    os.pwrite(first, b"g" * BLOCK, 0)
    for fd, which in ((first, "the writer"), (second, "another")):
        with fails(errno.EIO, f"fsync of what cannot be written, by {which} ({alloc})"):
            os.fsync(fd)
        os.fsync(fd)
    os.posix_fadvise(second, 0, 0, os.POSIX_FADV_DONTNEED)
    with fails(errno.EIO, f"a read of what cannot be read ({alloc})"):
        os.pread(second, BLOCK, 0)
    equal(os.pread(second, BLOCK, BLOCK), b"f" * BLOCK, "the block behind")


@long_test
def a_block_that_fails_is_told_once_to_each_and_the_rest_goes_on(place: Place) -> None:
    """Of one file, which is written over in place and read; others are written as before."""
    place.own()
    for alloc in ("extent", "log") if place.filesystem == "lanefs" else ("",):
        with _failing(place, 320, alloc=alloc) as disk:
            with mounted(place, disk.path) as mount:
                path = mount / "f"
                path.write_bytes(b"f" * 16 * BLOCK)
                os.sync()
                blocks = blocks_of(path)
                with (
                    path.open("r+b", buffering=0) as first,
                    path.open("r+b", buffering=0) as second,
                ):
                    _one_block_fails(disk, blocks[0], first.fileno(), second.fileno(), alloc)
                    with (mount / "other").open("wb", buffering=0) as file:
                        file.write(b"o" * 20_000)
                        os.fsync(file.fileno())
                    disk.mend()
                    equal(os.pread(second.fileno(), BLOCK, 0), b"f" * BLOCK, "what had failed")
            fsck(place, disk.path)


@long_test
def a_removed_device_fails_reads_of_what_is_cached(place: Place) -> None:
    """They would else go on for ever, as if the file were still there."""
    place.own()
    if place.filesystem == "ext4":
        raise Skipped("older kernels' go on")
    with removable_device(place, 320) as (device, remove), mounted(place, device) as mount:
        path = mount / "f"
        path.write_bytes(b"f" * BLOCK)
        os.sync()
        fd = os.open(path, os.O_RDWR)
        equal(os.pread(fd, BLOCK, 0), b"f" * BLOCK, "the bytes")
        remove()
        # Before 6.5 a file system learns of it when its journal is written.
        try:
            (mount / "d").mkdir()
            sync(mount / "d")
        except OSError as error:
            check(error.errno in STOPPED, f"a change without the device fails with {error}")
        else:
            check(False, "a change without the device is durable")
        with fails(errno.EIO, "a read of what is cached"):
            os.pread(fd, BLOCK, 0)
        with fails(errno.EIO, "a splice of what is cached"):
            os.sendfile(os.open("/dev/null", os.O_WRONLY), fd, 0, BLOCK)
        with fails(errno.EIO, "a list of the names"):
            os.listdir(mount)
        os.close(fd)
