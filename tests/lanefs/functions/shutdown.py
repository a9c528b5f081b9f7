# SPDX-License-Identifier: GPL-2.0-only
"""FS_IOC_SHUTDOWN: changes stop at once, and what was durable is there after the next mount."""

import errno
import mmap
import os
import signal
import time
from pathlib import Path

from tests.lanefs.device import SHUTDOWN_LOG as LOG
from tests.lanefs.device import SHUTDOWN_NOW as NOW
from tests.lanefs.device import SHUTDOWN_SYNC as SYNC
from tests.lanefs.device import shut_down
from tests.lanefs.functions.files import BLOCK
from tests.lanefs.functions.flags import signal_of
from tests.lanefs.functions.harness import (
    Place,
    check,
    children,
    equal,
    fails,
    libc,
    long_test,
    optional_elsewhere,
    run,
    test,
)
from tests.lanefs.functions.loop import fsck, loop_device, mounted
from tests.lanefs.functions.space import KEEP, PUNCH, fallocate
from tests.lanefs.functions.writers import STOPPED, Notes, look_at_all, noted, write
from tests.lanefs.functions.xattrs import as_nobody


def shutdown(place: Place, path: Path, keep: int) -> None:
    """Stop the file system; Skipped where it cannot."""
    with optional_elsewhere(place, "shutdown"):
        shut_down(path, keep)


def _refused(mount: Path, fd: int) -> None:
    for what, call in (
        ("a creation", lambda: (mount / "new").touch()),
        ("mkdir", lambda: (mount / "new").mkdir()),
        ("a removal", lambda: (mount / "synced").unlink()),
        ("a rename", lambda: (mount / "synced").rename(mount / "new")),
        ("chmod", lambda: (mount / "synced").chmod(0o600)),
        ("a write to a dirty page", lambda: os.pwrite(fd, b"z", 0)),
        ("an append", lambda: os.pwrite(fd, b"z" * 10, 100_000)),
        ("truncation", lambda: os.ftruncate(fd, 5)),
        ("fallocate", lambda: os.posix_fallocate(fd, 0, 1 << 20)),
    ):
        try:
            call()
        except OSError as error:
            check(error.errno in STOPPED, f"{what} after a shutdown fails with {error}")
        else:
            check(False, f"{what} succeeds after a shutdown")


def _stopped(place: Place, mount: Path, fd: int, keep: int) -> None:
    """Shut down with a file open whose pages are dirty."""
    with mmap.mmap(fd, 0) as memory:
        memory[4 * BLOCK] = 1
        shutdown(place, mount, keep)
        _refused(mount, fd)
        if place.filesystem != "lanefs":
            return
        found = signal_of(lambda: memory.__setitem__(4 * BLOCK, 2))
        equal(found, signal.SIGBUS, "the signal of a store that faults")
        if keep != SYNC:
            with fails(errno.EIO, "fsync of what can be written no more"):
                os.fsync(fd)


@long_test
def a_shutdown_keeps_what_it_is_asked_to_keep(place: Place) -> None:
    """All, the log or what is on the device; nothing more changes; then recovery and fsck."""
    for keep in (SYNC, LOG, NOW):
        with loop_device(place, 320) as (device, _):
            with mounted(place, device) as mount:
                (mount / "synced").write_bytes(b"s" * 20_000)
                os.sync()
                (mount / "later").write_bytes(b"l" * 20_000)
                with (mount / "later").open("r+b", buffering=0) as file:
                    _stopped(place, mount, file.fileno(), keep)
                shutdown(place, mount, NOW)
                with fails(errno.EIO, "a read of a cached file afterwards"):
                    (mount / "synced").read_bytes()
            with mounted(place, device) as mount:
                equal((mount / "synced").read_bytes(), b"s" * 20_000, "what was synced")
                if keep == SYNC:
                    right = b"l" * 4 * BLOCK + b"\1" + b"l" * (20_000 - 4 * BLOCK - 1)
                    equal((mount / "later").read_bytes(), right, "all that was written")
                check(keep == NOW or (mount / "later").exists(), "the log was not kept")
                check(not (mount / "new").exists(), "a change got through")
            fsck(place, device)


@test
def what_is_synced_after_its_close_has_no_blocks_ahead(place: Place) -> None:
    """Opening a file to write, only to sync it, takes no blocks that a crash would keep."""
    with loop_device(place, 320) as (device, _):
        with mounted(place, device) as mount:
            path = mount / "f"
            with path.open("wb") as file:
                file.write(b"f" * (4 << 20))
                file.flush()
                os.fsync(file.fileno())
            with path.open("ab") as file:
                file.write(b"a" * (256 << 10))
            before = path.stat().st_blocks
            with path.open("r+b") as file:
                os.fsync(file.fileno())
            shutdown(place, mount, NOW)
        with mounted(place, device) as mount:
            after = (mount / "f").stat().st_blocks
        check(after - before <= 8, f"{after} sectors after the crash, {before} before")


@long_test
def a_shutdown_needs_rights_and_a_meaning(place: Place) -> None:
    """EPERM and EINVAL, and the file system goes on."""
    with loop_device(place, 320) as (device, _), mounted(place, device) as mount:

        def try_it() -> None:
            with fails(errno.EPERM, "a shutdown without privileges"):
                shutdown(place, mount, NOW)

        as_nobody(try_it)
        with fails(errno.EINVAL, "a shutdown of no kind"):
            shut_down(mount, 3)
        (mount / "f").write_text("x")


@long_test
def a_shutdown_among_writers_loses_nothing_durable(place: Place) -> None:
    """Files that were created, overwritten, replaced and renamed; recovered four times over."""
    with loop_device(place, 320) as (device, backing):
        notes = backing.with_name("notes")
        notes.mkdir()

        def work(number: int, here: Path) -> None:
            if number == 0:
                # Six of the eight tell of what is durable; a slow kernel takes its time.
                while noted(notes, f"{here.name}-*") < 6:
                    time.sleep(0.1)
                time.sleep(1)
                shutdown(place, here, NOW)
                return
            write(here, Notes(notes / f"{here.name}-{number}"), number)

        for round_ in range(4):
            with mounted(place, device) as mount:
                (mount / f"{round_}").mkdir()
                os.sync()
                children(9, lambda number, here=mount / f"{round_}": work(number, here))  # type: ignore[misc]
            with mounted(place, device) as mount:
                durable = look_at_all(mount, notes)
            check(durable >= 6 * (round_ + 1), f"only {durable} things were durable")
        # ext4 has noted that its journal was aborted, which e2fsck tells.
        if place.filesystem == "lanefs":
            fsck(place, device)


@long_test
def a_size_that_survives_has_the_data_below_it(place: Place) -> None:
    """A crash after a write and a change of the size leaves no size without the data."""
    half, all_ = 8 * BLOCK, 16 * BLOCK
    changes = {
        "cut": (all_, lambda fd: os.ftruncate(fd, half)),
        "grown": (half, lambda fd: os.ftruncate(fd, all_)),
        "allocated": (half, lambda fd: os.posix_fallocate(fd, 0, all_)),
        "far": (half, lambda fd: os.posix_fallocate(fd, 2 * all_, half)),
        "punched": (all_, lambda fd: fallocate(fd, PUNCH | KEEP, half, half)),
    }
    with loop_device(place, 320) as (device, _):
        with mounted(place, device) as mount:
            for kind, (written, change) in changes.items():
                for number in range(10):
                    fd = os.open(mount / f"{kind}-{number}", os.O_CREAT | os.O_WRONLY)
                    os.write(fd, b"x" * written)
                    change(fd)
                    os.close(fd)
            shutdown(place, mount, LOG)
        with mounted(place, device) as mount:
            found = [path for path in mount.iterdir() if "-" in path.name]
            equal(len(found), 10 * len(changes), "the files")
            without = [path.name for path in found if path.stat().st_size]
            without = [name for name in without if (mount / name).read_bytes().count(b"x") < half]
            equal(without, [], "files that have a size and not the data below it")
        if place.filesystem == "lanefs":
            fsck(place, device)


@long_test
def a_shutdown_of_a_frozen_file_system_leaves_nobody_waiting(place: Place) -> None:
    """A writer that waits for the thaw is told, and the thaw gives back what the freeze took."""
    place.own_lanefs("others may leave the locks of the freeze behind")
    with loop_device(place, 320) as (device, _), mounted(place, device) as mount:
        (mount / "f").write_text("x")
        run("fsfreeze", "-f", str(mount))

        def write() -> None:
            with fails(errno.EROFS, "a creation that the thaw lets in"):
                (mount / "g").touch()

        def thaw() -> None:
            time.sleep(0.5)
            shutdown(place, mount, NOW)
            run("fsfreeze", "-u", str(mount))

        children(2, lambda number: (write, thaw)[number]())
        with fails(errno.EROFS, "a creation after the thaw"):
            (mount / "h").touch()
        with fails(errno.EIO, "a read after the thaw"):
            (mount / "f").read_text()
        check("ro" in _options(mount), "it is not shown as read-only")


def _options(mount: Path) -> list[str]:
    lines = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    return next(options.split(",") for _, where, _, options, *_ in lines if where == str(mount))


def _commit_seconds() -> float:
    """CPU time of all threads that commit."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().partition(") ")
        except OSError:
            continue
        if "(lanefs-commit" in name:
            ticks += sum(int(word) for word in rest.split()[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


@long_test
def nothing_begins_after_a_shutdown_and_no_thread_works_on(place: Place) -> None:
    """Not what would join a transaction that is open, either; and what is old is not committed."""
    with (
        loop_device(place, 320, domains=1) as (device, _),
        mounted(place, device) as mount,
    ):
        os.sched_setaffinity(0, {0})
        fd = os.open(mount / "f", os.O_CREAT | os.O_RDWR)
        os.pwrite(fd, bytes(100_000), 0)
        os.sync()
        before = os.open(mount, os.O_RDONLY)
        for n in range(20):
            (mount / f"n{n}").touch()
        shutdown(place, mount, NOW)
        for size in (50_000, 5000, 200_000):
            try:
                os.ftruncate(fd, size)
            except OSError as error:
                check(error.errno in STOPPED, f"truncation fails with {error}")
            else:
                check(False, f"a truncation to {size} bytes succeeds")
        os.close(fd)
        if place.filesystem == "lanefs":
            check(libc.syncfs(before) != 0, "syncfs does not say that changes are lost")
            # Until a commit would be due, in 5 s.
            time.sleep(6)
            spent = -_commit_seconds()
            time.sleep(2)
            spent += _commit_seconds()
            check(spent < 0.5, f"threads that have nothing to commit took {spent} s of two")
        os.close(before)
