# SPDX-License-Identifier: GPL-2.0-only
"""What is free is counted in the background: what can be had meanwhile, and what waits."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lanefs.blocks import BITMAP_BITS, read_layout
from tests.lanefs.device import reads
from tests.lanefs.functions.files import drop_caches
from tests.lanefs.functions.gate import Gate, gated, stacks, wait_until_in
from tests.lanefs.functions.harness import (
    Failed,
    Place,
    check,
    equal,
    fails,
    long_test,
    run,
)
from tests.lanefs.functions.log import blocks_of
from tests.lanefs.functions.loop import fsck, loop_device, mounted

MIB = 1 << 20
ALLOCS = ("extent", "log")
COUNTED = 512
"""bitmap blocks that are counted before those behind the gate are read (count.c)"""
LARGE = {"extent": 1 << 20, "log": 68 << 10}
"""MiB, with more bitmap blocks than COUNTED; a log has an owner table of 4 GiB per TiB"""
_SAID: dict[str, Any] = {"stderr": subprocess.PIPE, "env": {**os.environ, "LC_ALL": "C"}}
SMALL = 2000
"""MiB of a device whose bitmaps are one request"""


@dataclass(frozen=True)
class _Volume:
    loop: str
    device: str
    gate: Gate


@contextmanager
def _volume(place: Place, mib: int, alloc: str, counted: int) -> Iterator[_Volume]:
    """A file system of one domain, with a gate in front of all but so many of its block bitmaps."""
    place.own_lanefs("the bitmaps are lanefs's")
    with loop_device(place, mib, domains=1, alloc=alloc, inodes=1 << 20) as (loop, backing):
        found = read_layout(backing)
        first, end = found.bbitmap + counted, found.bbitmap + found.groups
        with gated(loop, first, end) as (device, gate):
            yield _Volume(loop, device, gate)


@contextmanager
def _mounted_closed(place: Place, volume: _Volume) -> Iterator[Path]:
    """Mounted with the gate closed, which is open again when it is unmounted."""
    drop_caches()
    with ExitStack() as stack:
        volume.gate.close()
        stack.callback(volume.gate.open)
        mount = stack.enter_context(mounted(place, volume.device))
        stack.callback(volume.gate.open)
        yield mount


def _write(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.write(bytes(size))
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _running(gate: Gate, *argv: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process, for which the gate is opened at the end whatever happens."""
    with subprocess.Popen(argv, text=True, **options) as process:
        try:
            yield process
        finally:
            gate.open()


@long_test
def a_mount_of_a_large_device_does_not_wait_for_the_count(place: Place) -> None:
    """Files are made and written before all is counted; statfs() waits, and is right."""
    for alloc, mib in LARGE.items():
        with _volume(place, mib, alloc, COUNTED) as volume:
            before = reads(volume.loop)
            with _mounted_closed(place, volume) as mount:
                took = reads(volume.loop) - before
                check(took < 100, f"a mount of {mib} MiB ({alloc}) takes {took} reads")
                ask = ["stat", "--file-system", "--format", "%f %d", str(mount)]
                with _running(volume.gate, *ask, stdout=subprocess.PIPE) as waiting:
                    wait_until_in(waiting, "lanefs_count")
                    for number in range(20):
                        _write(mount / f"f{number}", MIB)
                    with (mount / "allocated").open("wb") as file:
                        os.posix_fallocate(file.fileno(), 0, 100 * MIB)
                    for number in range(0, 20, 2):
                        (mount / f"f{number}").unlink()
                    check(waiting.poll() is None, "statfs() has not waited for the count")
                    volume.gate.open()
                    answer, _ = waiting.communicate(timeout=120)
                os.sync()
                found = os.statvfs(mount)
                check(int(answer.split()[0]) > 0, "statfs() knows no free block")
            with mounted(place, volume.device) as mount:
                equal(os.statvfs(mount).f_bfree, found.f_bfree, f"free blocks later ({alloc})")
                equal(os.statvfs(mount).f_ffree, found.f_ffree, f"free inodes later ({alloc})")
            _unmount_while_it_counts(place, volume)
            fsck(place, volume.device)


def _unmount_while_it_counts(place: Place, volume: _Volume) -> None:
    """By the system call: umount(8) calls statfs() first."""
    mount = place.directory / "m"
    call = f"import ctypes; exit(ctypes.CDLL(None).umount2(b'{mount}', 0))"
    volume.gate.close()
    try:
        run("mount", "-t", place.filesystem, volume.device, str(mount))
        with _running(volume.gate, sys.executable, "-c", call) as ending:
            wait_until_in(ending, "lanefs_count_stop")
            volume.gate.open()
            equal(ending.wait(120), 0, "what umount2() returns")
    finally:
        volume.gate.open()


@long_test
def a_disk_is_full_only_when_all_is_counted(place: Place) -> None:
    """A writer waits for what is not counted, and then gets as much as at another time."""
    for alloc in ALLOCS:
        with _volume(place, SMALL, alloc, 0) as volume:
            with mounted(place, volume.device) as mount:
                with (mount / "most").open("wb") as file:
                    room = os.statvfs(mount).f_bavail * 4096
                    os.posix_fallocate(file.fileno(), 0, room - 64 * MIB)
                usual = _fill(mount)
            with _mounted_closed(place, volume) as mount:
                path = mount / "w"
                with _running(volume.gate, *_writer(path), **_SAID) as writing:
                    wait_until_in(writing, "lanefs_count_more")
                    volume.gate.open()
                    _, said = writing.communicate(timeout=240)
                check("No space left" in said, f"the writer ends with {said!r}")
                size = path.stat().st_size
            least = usual * 98 // 100
            check(size >= least, f"{size} bytes could be written ({alloc}), before {usual}")
            fsck(place, volume.device)


def _writer(path: Path) -> list[str]:
    """A command that writes until there is an error."""
    return ["dd", "if=/dev/zero", f"of={path}", "bs=1M"]


def _fill(mount: Path) -> int:
    """How many bytes a file gets; it is gone then."""
    path = mount / "w"
    subprocess.run(_writer(path), capture_output=True, check=False)
    size = path.stat().st_size
    path.unlink()
    os.sync()
    return size


@long_test
def a_bitmap_that_cannot_be_read_ends_the_count(place: Place) -> None:
    """It can be mounted and read; what needs to know what is free fails, and writes do."""
    for alloc in ALLOCS:
        with _volume(place, SMALL, alloc, 0) as volume:
            with mounted(place, volume.device) as mount:
                _write(mount / "f", MIB)
            volume.gate.breaks()
            drop_caches()
            with mounted(place, volume.device) as mount:
                with fails(errno.EIO, "statfs()"):
                    os.statvfs(mount)
                with fails(errno.EROFS, "a new file"):
                    (mount / "g").touch()
                equal((mount / "f").read_bytes(), bytes(MIB), "the file")
            volume.gate.open()
            drop_caches()
            subprocess.run(["fsck.lanefs", "-y", volume.device], capture_output=True, check=False)
            fsck(place, volume.device)
            with mounted(place, volume.device) as mount:
                check(os.statvfs(mount).f_bavail > 0, "no block is free after the repair")


@long_test
def a_read_of_a_bitmap_holds_up_no_commit(place: Place) -> None:
    """While blocks are freed or allocated whose bitmap is read, another file's fsync() ends."""
    far_groups = 8
    with _volume(place, SMALL, "extent", far_groups) as volume:
        with mounted(place, volume.device) as mount:
            (mount / "near").write_text("x")
            with (mount / "filler").open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, (far_groups + 1) * BITMAP_BITS * 4096)
            for name in ("grows", "goes"):
                _write(mount / name, MIB)
                group = blocks_of(mount / name)[0] // BITMAP_BITS
                check(group > far_groups, f"the file lies in group {group}")
        grow = ["dd", "if=/dev/zero", "bs=4k", "count=1", "oflag=append", "conv=notrunc,fsync"]
        for name, argv in (("grows", [*grow, "of=grows"]), ("goes", ["rm", "goes"])):
            _commits_meanwhile(place, volume, argv, name)
        fsck(place, volume.device)


def _commits_meanwhile(place: Place, volume: _Volume, argv: list[str], name: str) -> None:
    drop_caches()
    with ExitStack() as stack:
        mount = stack.enter_context(mounted(place, volume.device))
        os.statvfs(mount)
        volume.gate.close()
        stack.callback(volume.gate.open)
        quiet: dict[str, Any] = {"cwd": mount, "stderr": subprocess.DEVNULL}
        with _running(volume.gate, *argv, **quiet) as busy:
            wait_until_in(busy, "lanefs_group_l")
            commits = "chmod g+x near; sync near; chmod g-x near; sync near"
            with subprocess.Popen(["sh", "-c", commits], cwd=mount) as change:
                try:
                    equal(change.wait(60), 0, "what sync returns")
                except subprocess.TimeoutExpired:
                    waits = stacks()
                    raise Failed(f"an fsync() waits for a read ({name}):\n{waits}") from None
                finally:
                    volume.gate.open()
            equal(busy.wait(120), 0, f"the end of {argv}")
