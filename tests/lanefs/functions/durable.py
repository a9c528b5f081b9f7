# SPDX-License-Identifier: GPL-2.0-only
"""What is on the device when an operation returns."""

import itertools
import mmap
import os
from collections.abc import Callable
from pathlib import Path

from fscale.vm import crashload
from fscale.vm.crashtest import map_device
from fscale.vm.logwrites import FLUSH, MARK, LogEntry, read_log
from tests.lanefs.functions.files import BLOCK
from tests.lanefs.functions.harness import (
    Place,
    Skipped,
    check,
    equal,
    long_test,
    open_direct,
    opened,
    run,
)
from tests.lanefs.functions.loop import attached, fsck, loop_device, mounted, slow_device
from tests.lanefs.functions.shutdown import LOG, NOW, shutdown
from tests.lanefs.functions.traced import traced


@long_test
def dirsync_makes_names_durable(place: Place) -> None:
    """A copy of the device, as after a power cut, has every name that an operation returned for."""
    with loop_device(place, 320) as (device, backing):
        copy = backing.with_name("copy")
        with mounted(place, device, "dirsync") as mount:
            (mount / "d").mkdir()
            for name in ("made", "moved", "removed", "linked"):
                (mount / "d" / name).touch()
            (mount / "d" / "moved").rename(mount / "renamed")
            os.link(mount / "d" / "linked", mount / "link")
            (mount / "d" / "removed").unlink()
            os.symlink("x" * 300, mount / "long")
            run("cp", "--sparse=always", str(backing), str(copy))
        with attached(copy) as again, mounted(place, again) as mount:
            equal(sorted(os.listdir(mount / "d")), ["linked", "made"], "names of the directory")
            names = set(os.listdir(mount)) - {"lost+found"}
            equal(names, {"d", "link", "long", "renamed"}, "names of the root")
            equal(os.readlink(mount / "long"), "x" * 300, "a long symbolic link")


def _removed_while_open(base: Path) -> None:
    with (base / "f").open("wb", buffering=0) as file:
        file.write(b"x" * BLOCK)
        (base / "f").unlink()
        os.fsync(file.fileno())


def _renamed_symlink(base: Path) -> None:
    (base / "old").symlink_to("target")
    crashload.sync(base)
    (base / "old").rename(base / "new")
    crashload.sync(base)


def _file_in_place_of_a_moved_directory(base: Path) -> None:
    (base / "a").mkdir()
    (base / "b").mkdir()
    os.sync()
    (base / "a").rename(base / "b" / "a")
    (base / "a").touch()
    crashload.sync(base / "a")
    (base / "a").rename(base / "b" / "f")
    crashload.sync(base / "b" / "f")


def _new_directory_beside_a_renamed_file(base: Path) -> None:
    (base / "old").write_bytes(b"x" * BLOCK)
    crashload.sync(base / "old")
    (base / "d").mkdir()
    (base / "d" / "f").touch()
    (base / "old").rename(base / "new")
    crashload.sync(base)


def _linked_file_in_place_of_a_directory(base: Path) -> None:
    (base / "a").mkdir()
    os.sync()
    (base / "a").rmdir()
    (base / "d").mkdir()
    (base / "e").mkdir()
    (base / "a").touch()
    os.link(base / "a", base / "e" / "l")
    crashload.sync(base / "e")
    crashload.sync(base)


def _removed_directory_whose_entry_moved(base: Path) -> None:
    (base / "a" / "b").mkdir(parents=True)
    (base / "d").mkdir()
    os.sync()
    (base / "a" / "b").rename(base / "d" / "b")
    with opened(base / "a") as fd:
        (base / "a").rmdir()
        os.fsync(fd)


def _names(base: Path) -> dict[str, tuple[int, int]]:
    """The inode and the number of links of each name below."""
    return {
        str(path.relative_to(base)): (path.lstat().st_ino, path.lstat().st_nlink)
        for path in base.rglob("*")
    }


@long_test
def an_fsync_keeps_the_names_that_led_to_it(place: Place) -> None:
    """What was created, moved and removed before the last fsync survives a shutdown."""
    with loop_device(place, 320, domains=4) as (device, _):
        for change in (
            _removed_while_open,
            _renamed_symlink,
            _file_in_place_of_a_moved_directory,
            _new_directory_beside_a_renamed_file,
            _linked_file_in_place_of_a_directory,
            _removed_directory_whose_entry_moved,
        ):
            with mounted(place, device) as mount:
                base = mount / change.__name__
                base.mkdir()
                os.sync()
                change(base)
                right = _names(base)
                shutdown(place, mount, NOW)
            with mounted(place, device) as mount:
                equal(_names(mount / change.__name__), right, f"names after {change.__name__}")
        fsck(place, device)


def _changed_time(path: Path, name: str) -> int:
    """Read or overwrite the file until this time of it changes; it, in nanoseconds."""
    before = now = getattr(path.stat(), name)
    while now == before:
        with path.open("r+b", buffering=0) as file:
            if name == "st_atime_ns":
                file.read()
            else:
                file.write(b"y")
        now = getattr(path.stat(), name)
    return now


@long_test
def times_that_wait_in_memory_are_kept(place: Place) -> None:
    """With lazytime, by fsync, sync, and the inode's leaving memory; then a shutdown."""

    causes: dict[str, Callable[[Path], object]] = {
        "fsync": crashload.sync,
        "sync": lambda _: os.sync(),
        "leaving memory": lambda _: Path("/proc/sys/vm/drop_caches").write_text("2"),
        "another change": lambda path: path.chmod(0o777),
    }
    options = ("lazytime", "strictatime")
    with loop_device(place, 100) as (device, _):
        with mounted(place, device, *options) as mount:
            (mount / "f").write_bytes(b"x" * 100)
        for (what, cause), name in itertools.product(
            causes.items(), ("st_atime_ns", "st_mtime_ns")
        ):
            with mounted(place, device, *options) as mount:
                changed = _changed_time(mount / "f", name)
                cause(mount / "f")
                shutdown(place, mount, LOG)
            with mounted(place, device) as mount:
                equal(getattr((mount / "f").stat(), name), changed, f"{name} after {what}")


def _flushes(device: str) -> int:
    """How often the cache of this disk was flushed."""
    return int(Path(f"/sys/block/{Path(device).name}/stat").read_text().split()[15])


@long_test
def a_synchronous_direct_write_flushes_once(place: Place) -> None:
    """An overwrite with O_DIRECT and O_DSYNC costs one flush."""
    writes = 200
    with loop_device(place, 320) as (device, _), mounted(place, device) as mount:
        path = mount / "f"
        path.write_bytes(b"x" * 16 * BLOCK)
        os.sync()
        fd = open_direct(path, os.O_RDWR | os.O_DSYNC)
        with mmap.mmap(-1, BLOCK) as block:
            os.pwritev(fd, [block], 0)
            before = _flushes(device)
            for number in range(writes):
                os.pwritev(fd, [block], number % 16 * BLOCK)
            flushes = _flushes(device) - before
        os.close(fd)
        check(writes <= flushes < writes * 1.2, f"{flushes} flushes for {writes} writes")


@long_test
def commits_of_tied_domains_share_a_flush(place: Place) -> None:
    """An fsync of a new file in one domain, with its name in the other, commits both."""
    syncs = 50
    place.own()
    if place.filesystem != "lanefs" or len(os.sched_getaffinity(0)) < 2:
        raise Skipped("two domains need lanefs and two CPUs")
    with (
        slow_device(place, 256, 0.002, 2, cache=True) as device,
        mounted(place, device) as mount,
    ):
        for cpu in (1, 0):
            os.sched_setaffinity(0, {cpu})
            (mount / str(cpu)).mkdir()
        os.sync()
        before = _flushes(device)

        def sync() -> None:
            for number in range(syncs):
                fd = os.open(mount / "1" / f"f{number}", os.O_CREAT | os.O_WRONLY)
                os.fsync(fd)
                os.close(fd)

        commits = len(traced(device, sync, "lanefs/lanefs_commit"))
        flushes = _flushes(device) - before
    check(commits >= 2 * syncs, f"{commits} commits for {syncs} fsyncs of two domains")
    check(syncs <= flushes < syncs * 1.3, f"{flushes} flushes for {syncs} fsyncs")


def _recorded(place: Place, crashed: Path, *recover: str) -> list[LogEntry]:
    """The writes and flushes of a command that recovers a crashed image, its DEVICE."""
    image, log = crashed.with_name("image"), crashed.with_name("log")
    run("cp", "--sparse=always", str(crashed), str(image))
    with log.open("wb") as file:
        file.truncate(2 * image.stat().st_size)
    with attached(image) as data, attached(log) as written:
        table = f"0 {image.stat().st_size // 512} log-writes {data} {written}"
        with map_device("fscale-recovery", table) as device:
            run(*[word.replace("DEVICE", device) for word in recover])
            if recover[0] == "mount":
                run("umount", device)
        with Path(written).open("rb") as file:
            return [entry for entry in read_log(file) if not entry.flags & MARK]


@long_test
def a_recovery_makes_the_log_durable_before_it_writes(place: Place) -> None:
    """What it reads may be in the disk's cache only, and be lost where its own writes are not."""
    place.own_lanefs("others recover in their own way")
    point = place.directory / "m"
    with loop_device(place, 100, domains=2) as (device, backing):
        crashed = backing.with_name("crashed")
        with mounted(place, device, "dirsync") as mount:
            for number in range(20):
                (mount / f"d{number}").mkdir()
            run("cp", "--sparse=always", str(backing), str(crashed))
        for recover in (
            ("mount", "-t", "lanefs", "DEVICE", str(point)),
            ("fsck.lanefs", "--replay", "DEVICE"),
            ("fsck.lanefs", "-y", "DEVICE"),
        ):
            entries = _recorded(place, crashed, *recover)
            check(len(entries) > 5, f"{recover[0]} has written {len(entries)} times only")
            first = entries[0]
            flushed = first.flags & FLUSH and not first.length
            check(bool(flushed), f"{' '.join(recover[:2])} writes before it flushes: {first}")
