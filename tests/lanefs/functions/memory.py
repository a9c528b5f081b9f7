# SPDX-License-Identifier: GPL-2.0-only
"""Inodes in memory: found, forgotten, found again; watched; gone when the file system goes."""

import ctypes
import errno
import os
import select
import subprocess
import time
from pathlib import Path

from tests.lanefs.functions.harness import (
    Place,
    Skipped,
    called,
    check,
    children,
    equal,
    fails,
    libc,
    long_test,
    run,
    test,
)
from tests.lanefs.functions.loop import loop_device, mounted

IN_DELETE_SELF, IN_UNMOUNT = 0x400, 0x2000
FAN_CLASS_NOTIF, FAN_NONBLOCK, FAN_MARK_ADD, FAN_OPEN = 0, 2, 1, 0x20
AT_FDCWD, AT_SYMLINK_FOLLOW = -100, 0x400


def _watch(inotify: int, path: Path, mask: int) -> int:
    return called(libc.inotify_add_watch(inotify, bytes(path), mask), "inotify_add_watch")


def _events(inotify: int) -> list[tuple[int, int]]:
    """Watches and masks of the events that are there, or come within a second."""
    found = []
    while select.select([inotify], [], [], 1.0)[0]:
        data = os.read(inotify, 1 << 16)
        while data:
            watch, mask, _, length = (
                int.from_bytes(data[at : at + 4], "little") for at in (0, 4, 8, 12)
            )
            found.append((watch, mask))
            data = data[16 + length :]
    return found


@long_test
def a_watched_inode_does_not_hold_the_umount(place: Place) -> None:
    """inotify is told of the umount, which ends, for a file that is cached and one that is not."""
    place.own()
    (place.directory / "d").mkdir()
    paths = [place.directory / "d", *(place.directory / "d" / f"f{n}" for n in range(50))]
    for path in paths[1:]:
        path.write_text("x")
    inotify = called(libc.inotify_init1(os.O_CLOEXEC), "inotify_init1")
    try:
        watches = {_watch(inotify, path, IN_DELETE_SELF) for path in paths}
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3")
        place.unmount()
        told = {watch for watch, mask in _events(inotify) if mask & IN_UNMOUNT}
        equal(len(told), len(watches), "watches that were told of the umount")
        place.mount()
        equal(paths[-1].read_text(), "x", "a file after it")
    finally:
        os.close(inotify)


@test
def a_mark_of_fanotify_does_not_hold_the_umount(place: Place) -> None:
    """The same for marks on inodes, which pin them."""
    place.own()
    path = place.directory / "f"
    path.write_text("x")
    group = called(libc.fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK, os.O_RDONLY), "fanotify")
    try:
        mask = ctypes.c_uint64(FAN_OPEN)
        marked = libc.fanotify_mark(group, FAN_MARK_ADD, mask, AT_FDCWD, bytes(path))
        called(marked, "fanotify_mark")
        place.cycle()
        equal(path.read_text(), "x", "the file")
    finally:
        os.close(group)


def _drop_until(done: Path) -> None:
    while not done.exists():
        Path("/proc/sys/vm/drop_caches").write_text("3")


@long_test
def what_leaves_memory_is_found_again(place: Place) -> None:
    """Look-ups race with the eviction of what they look up; sizes and contents stay."""
    place.own()
    here, done = place.directory, place.directory / "done"
    for n in range(40):
        (here / f"f{n}").write_bytes(b"%03d" % n * (n + 1))
    os.sync()

    def work(number: int) -> None:
        if number == 0:
            _drop_until(done)
            return
        until = time.monotonic() + 8
        while time.monotonic() < until:
            for n in range(40):
                data = (here / f"f{n}").read_bytes()
                check(data == b"%03d" % n * (n + 1), f"f{n} holds {data[:20]!r}")
        done.touch()

    children(4, work)


@long_test
def numbers_are_given_out_again_while_inodes_leave(place: Place) -> None:
    """Files come and go, some of them open, while the caches are dropped."""
    place.own()
    here, done = place.directory, place.directory / "done"

    def work(number: int) -> None:
        if number == 0:
            _drop_until(done)
            return
        own = here / f"d{number}"
        own.mkdir()
        until = time.monotonic() + 8
        rounds = 0
        while time.monotonic() < until:
            held = []
            for n in range(30):
                fd = os.open(own / f"f{n}", os.O_CREAT | os.O_EXCL | os.O_RDWR)
                os.write(fd, b"%d.%d.%d" % (number, rounds, n))
                held.append(fd)
            inodes = [os.fstat(fd).st_ino for fd in held]
            equal(len(set(inodes)), 30, "different inode numbers of files that exist")
            for n in range(30):
                (own / f"f{n}").unlink()
            for n, fd in enumerate(held):
                equal(os.fstat(fd).st_nlink, 0, "links of what has no name")
                equal(os.pread(fd, 99, 0), b"%d.%d.%d" % (number, rounds, n), "its contents")
                os.close(fd)
            rounds += 1
        equal(list(own.iterdir()), [], "names left")
        done.touch()

    children(4, work)


@test
def what_has_no_name_keeps_the_file_system_writable(place: Place) -> None:
    """remount,ro is refused while an inode waits for its deletion, though it is open to read."""
    place.own()
    path = place.directory / "f"
    path.write_text("x")
    fd = os.open(path, os.O_RDONLY)
    path.unlink()
    argv = ["mount", "-o", "remount,ro", str(place.mount_point)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    check(done.returncode != 0, "remount,ro succeeds with an open file that has no name")
    os.close(fd)
    # Nothing of the kinds of inodes that come and go without a name is left over in a count.
    os.close(os.open(place.directory, os.O_TMPFILE | os.O_RDWR))
    fd = os.open(place.directory, os.O_TMPFILE | os.O_RDWR)
    old, new = b"/proc/self/fd/%d" % fd, bytes(place.directory / "linked")
    called(libc.linkat(AT_FDCWD, old, AT_FDCWD, new, AT_SYMLINK_FOLLOW), "linkat")
    os.close(fd)
    (place.directory / "d").mkdir()
    (place.directory / "d").rmdir()
    place.remount("ro")
    place.remount("rw")
    (place.directory / "linked").unlink()
    run("sync", "-f", str(place.directory))
    place.remount("ro")
    place.remount("rw")


@long_test
def the_umount_finds_all_inodes(place: Place) -> None:
    """Thousands of inodes, cached and in use until just before, and the file system goes."""
    place.own()

    def work(number: int) -> None:
        own = place.directory / f"d{number}"
        own.mkdir()
        for n in range(1500):
            (own / f"f{n}").write_bytes(b"x" * (n % 3))
            if n % 4 == 0:
                (own / f"f{n}").unlink()

    children(4, work)
    place.cycle()
    for number in range(4):
        left = sum(1 for _ in (place.directory / f"d{number}").iterdir())
        equal(left, 1125, f"files in d{number}")


def _cached_inodes() -> int:
    """Of lanefs, in memory, give or take some."""
    cache = Path("/sys/kernel/slab/lanefs_inode")
    if not (cache / "shrink").exists():
        raise Skipped("the kernel does not tell of its slabs")
    Path("/proc/sys/vm/drop_caches").write_text("2")
    # They are freed after a grace period.
    time.sleep(1)
    (cache / "shrink").write_text("1")
    return int((cache / "objects").read_text().split()[0])


@long_test
def a_creation_that_finds_no_inode_leaves_nothing(place: Place) -> None:
    """In memory that other inodes had before; more of them are not left when it is unmounted."""
    place.own_lanefs("the slab is lanefs's")
    with loop_device(place, 50, domains=1, inodes=400) as (device, _):
        before = _cached_inodes()
        with mounted(place, device) as mount:
            for n in range(10_000):
                try:
                    (mount / f"f{n}").touch()
                except OSError as error:
                    equal(error.errno, errno.ENOSPC, "errno of a creation without an inode")
                    break
            others = [place.directory / f"f{n}" for n in range(100)]
            for _ in range(20):
                # Memory for more, which inodes have had that were in use.
                for path in others:
                    path.touch()
                for path in others:
                    path.unlink()
                time.sleep(0.1)
                for n in range(100):
                    with fails(errno.ENOSPC, "a creation without an inode"):
                        (mount / f"more{n}").touch()
        after = _cached_inodes()
    check(after - before < 100, f"{before} inodes in memory before, {after} after")
