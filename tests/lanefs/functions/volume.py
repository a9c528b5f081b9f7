# SPDX-License-Identifier: GPL-2.0-only
"""The whole file system: full, read-only, mounted again, frozen."""

import ctypes
import errno
import hashlib
import mmap
import os
import random
import signal
import stat
import subprocess
import time
from pathlib import Path

from tests.lanefs.functions.harness import (
    Place,
    Skipped,
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

CHUNK = 1 << 20
# System calls and commands of linux/mount.h.
FSCONFIG, FSPICK = 431, 433
SET_FLAG, RECONFIGURE = 0, 7
AT_FDCWD = -100


def _fill(directory: Path, chunk: int = CHUNK) -> dict[str, int]:
    """Write files until the file system is full; what each holds, by name."""
    sizes: dict[str, int] = {}
    for number in range(100_000):
        name = f"fill{number}"
        try:
            fd = os.open(directory / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except OSError as error:
            equal(error.errno, errno.ENOSPC, "errno of a creation on a full disk")
            return sizes
        sizes[name] = 0
        try:
            while sizes[name] < 16 * chunk:
                sizes[name] += os.write(fd, _pattern(number, sizes[name], chunk))
        except OSError as error:
            equal(error.errno, errno.ENOSPC, "errno of a write on a full disk")
            if chunk == 1:
                return sizes
            chunk = max(chunk // 16, 1)
        finally:
            os.close(fd)
    return sizes


def _pattern(number: int, offset: int, length: int) -> bytes:
    unit = b"%06d-" % number
    start = offset % len(unit)
    return (unit * (length // len(unit) + 2))[start : start + length]


def _same(directory: Path, sizes: dict[str, int]) -> None:
    for name, size in sizes.items():
        number = int(name.removeprefix("fill"))
        with (directory / name).open("rb") as file:
            equal(os.fstat(file.fileno()).st_size, size, f"the size of {name}")
            at = 0
            while data := file.read(CHUNK):
                check(data == _pattern(number, at, len(data)), f"{name} holds other bytes")
                at += len(data)


def _free(directory: Path) -> int:
    os.sync()
    found = os.statvfs(directory)
    return found.f_bfree * found.f_frsize


@long_test
def a_full_disk_loses_nothing(place: Place) -> None:
    """All that was written is there; what is freed can be used again, three times over."""
    place.own()
    before = _free(place.directory)
    for round_ in range(3):
        sizes = _fill(place.directory)
        left = os.statvfs(place.directory)
        check(sum(sizes.values()) > before * 7 // 10, f"only {sum(sizes.values())} bytes fitted")
        check(left.f_bavail * left.f_frsize < before // 20, "full, though statfs tells of space")
        if round_ == 0:
            place.cycle()
        _same(place.directory, sizes)
        with (
            (place.directory / "fill0").open("ab", buffering=0) as file,
            fails(errno.ENOSPC, "large writes on a full disk"),
        ):
            # One may be done in part.
            for _ in range(3):
                file.write(bytes(left.f_bavail + 64) * 4096)
        os.truncate(place.directory / "fill0", sizes["fill0"])
        names = list(sizes)
        random.Random(round_).shuffle(names)
        for name in names:
            (place.directory / name).unlink()
        after = _free(place.directory)
        check(before - after < 2 << 20, f"{before - after} bytes did not come back")
        (place.directory / "again").write_text("x")
        (place.directory / "again").unlink()


@long_test
def a_full_disk_takes_removals_and_renames(place: Place) -> None:
    """unlink, rename within a directory and truncate work when nothing is free."""
    place.own()
    (place.directory / "d").mkdir()
    for n in range(50):
        (place.directory / f"small{n}").write_bytes(b"x" * 5000)
    _fill(place.directory / "d", chunk=1 << 16)
    for n in range(0, 50, 2):
        (place.directory / f"small{n}").rename(place.directory / f"small{n + 1}")
    os.truncate(place.directory / "small1", 10)
    equal((place.directory / "small1").read_bytes(), b"x" * 10, "a file that was cut")
    for entry in list(os.scandir(place.directory / "d")):
        os.unlink(entry.path)
    for n in range(1, 50, 2):
        (place.directory / f"small{n}").unlink()
    (place.directory / "d").rmdir()


@long_test
def a_full_disk_signals_stores_to_holes(place: Place) -> None:
    """SIGBUS for a store that finds no block; the kernel goes on."""
    place.own()
    hole = place.directory / "hole"
    with hole.open("w+b") as file:
        os.ftruncate(file.fileno(), 64 << 20)
    sizes = _fill(place.directory)
    pid = os.fork()
    if pid == 0:
        with hole.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
            for offset in range(0, 64 << 20, 4096):
                memory[offset] = 7
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    equal(os.waitstatus_to_exitcode(status), -signal.SIGBUS, "stores to holes on a full disk")
    _same(place.directory, sizes)


@long_test
def stores_to_holes_find_space_beside_freezes(place: Place) -> None:
    """What waits to be written holds more space than it takes; no freeze makes that a signal."""
    with loop_device(place, 64, domains=1) as (device, _), mounted(place, device) as mount:
        path, pages, rounds = mount / "f", 600, 4
        with (mount / "rest").open("wb", buffering=0) as rest:
            spare = (pages + 300) * 4096
            found = os.statvfs(mount)
            rest.write(bytes(found.f_bavail * found.f_frsize - spare))
        os.sync()
        done = place.directory / "done"

        def store() -> None:
            for _ in range(rounds):
                with path.open("w+b") as file:
                    os.ftruncate(file.fileno(), 2 * pages * 4096)
                    with mmap.mmap(file.fileno(), 2 * pages * 4096) as area:
                        for page in range(pages):
                            area[2 * page * 4096] = 1
            done.touch()

        def freeze() -> None:
            while not done.exists():
                run("fsfreeze", "-f", str(mount))
                run("fsfreeze", "-u", str(mount))

        children(2, lambda number: (store, freeze)[number]())


@long_test
def a_full_disk_of_small_files(place: Place) -> None:
    """Inodes or blocks run out; all names are there, and all go."""
    place.own()
    made = 0
    try:
        for number in range(400_000):
            if number % 1000 == 0:
                (place.directory / f"d{number}").mkdir()
            name = f"d{number - number % 1000}/f{number}"
            fd = os.open(place.directory / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            made += 1
            try:
                os.write(fd, b"%d" % number)
            finally:
                os.close(fd)
            # An emulated guest makes some thousand files a second.
            if made == 30_000:
                break
    except OSError as error:
        equal(error.errno, errno.ENOSPC, "errno when inodes or blocks run out")
    found = sum(len(files) for _, _, files in os.walk(place.directory))
    check(found == made, f"{found} names of {made}")
    run("rm", "-rf", *map(str, place.directory.iterdir()))
    equal(os.listdir(place.directory), [], "the directory")


@long_test
def everything_is_there_after_a_remount(place: Place) -> None:
    """Kinds, modes, owners, times, links, sizes, inode numbers, bytes."""
    here = place.directory
    (here / "d" / "sub").mkdir(parents=True)
    (here / "d" / "f").write_bytes(b"bytes" * 3000)
    os.link(here / "d" / "f", here / "link")
    (here / "short").symlink_to("d/f")
    (here / "long").symlink_to("x" * 300)
    os.mknod(here / "dev", stat.S_IFCHR | 0o600, os.makedev(10, 300_000))
    os.mkfifo(here / "fifo")
    with (here / "sparse").open("wb") as file:
        file.truncate(1 << 33)
        os.pwrite(file.fileno(), b"x", 1 << 32)
    for n in range(3000):
        (here / "d" / "sub" / f"n{n}").touch()
    os.chown(here / "d" / "f", 123456, 654321)
    os.chmod(here / "d", 0o3770)
    os.utime(here / "d" / "sub", ns=(-1, 5_000_000_000_999_999_999))

    def seen() -> dict[str, object]:
        result: dict[str, object] = {}
        for base, directories, files in os.walk(here):
            for name in [".", *directories, *files]:
                path = Path(base, name)
                s = path.lstat()
                size = None if stat.S_ISDIR(s.st_mode) else s.st_size
                times = (s.st_mtime_ns, s.st_ctime_ns, s.st_atime_ns)
                kept = (s.st_mode, s.st_uid, s.st_gid, s.st_nlink, s.st_ino, s.st_rdev, size)
                result[str(path)] = (*kept, s.st_blocks if size else None, times)
                if stat.S_ISLNK(s.st_mode):
                    result[f"{path}:"] = os.readlink(path)
        return result

    os.sync()
    before = seen()
    place.cycle()
    after = seen()
    for name in before.keys() | after.keys():
        equal(after.get(name), before.get(name), f"after a remount, {name}")
    equal((here / "link").read_bytes(), b"bytes" * 3000, "the bytes")
    with (here / "sparse").open("rb") as sparse:
        equal(os.pread(sparse.fileno(), 3, (1 << 32) - 1), b"\0x\0", "the sparse file's bytes")


@long_test
def unsynced_changes_survive_an_orderly_unmount(place: Place) -> None:
    """Nothing but umount writes them."""
    for n in range(300):
        (place.directory / f"f{n}").write_bytes(b"%d" % n * n)
    for n in range(0, 300, 3):
        (place.directory / f"f{n}").rename(place.directory / f"g{n}")
    place.cycle()
    for n in range(300):
        name = f"{'f' if n % 3 else 'g'}{n}"
        equal((place.directory / name).read_bytes(), b"%d" % n * n, name)
    equal(len(os.listdir(place.directory)), 300, "names")


@long_test
def read_only_is_read_only(place: Place) -> None:
    """remount,ro and mount -o ro: EROFS, and not a byte of the device changes."""
    device = place.own()
    here = place.directory
    (here / "f").write_text("x")
    (here / "d").mkdir()
    place.remount("ro")
    for what, call in (
        ("creation", lambda: os.mkdir(here / "n")),
        ("open to write", lambda: os.open(here / "f", os.O_WRONLY)),
        ("unlink", lambda: os.unlink(here / "f")),
        ("rename", lambda: os.rename(here / "f", here / "g")),
        ("chmod", lambda: os.chmod(here / "f", 0o600)),
        ("rmdir", lambda: os.rmdir(here / "d")),
    ):
        with fails(errno.EROFS, f"{what} on a read-only mount"):
            call()
    equal((here / "f").read_text(), "x", "a read")
    place.remount("rw")
    (here / "f").write_text("y")
    place.unmount()
    digest = _digest(device)
    place.mount("ro")
    equal((here / "f").read_text(), "y", "what was written after remount,rw")
    os.listdir(here)
    place.unmount()
    changed = _digest(device) != digest
    place.mount()
    check(not changed, "a read-only mount changed the device")


def _digest(device: str) -> str:
    with Path(device).open("rb") as file:
        # The file system writes past what was cached of its device.
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return hashlib.file_digest(file, "sha256").hexdigest()


@long_test
def an_emergency_remount_stops_writers(place: Place) -> None:
    """sysrq-u makes all read-only though files are open to write; what was fsync'd stays."""
    place.own()
    here = place.directory

    def durable(number: int, round_: int) -> None:
        for n in range(1_000_000):
            name = f"{round_}-{number}-{n}"
            with (here / name).open("xb", buffering=0) as file:
                file.write(b"%d" % n * 3000)
                os.fsync(file.fileno())
            os.rename(here / name, here / f"{name}.{n}")

    def hasty(number: int, round_: int) -> None:
        for n in range(1_000_000):
            os.mkdir(here / f"{round_}-{number}-{n}")
            (here / f"{round_}-{number}-{n}" / "f").touch()
            if n >= 10:
                (here / f"{round_}-{number}-{n - 10}" / "f").unlink()
                os.rmdir(here / f"{round_}-{number}-{n - 10}")

    def work(number: int, round_: int) -> None:
        if not number:
            time.sleep(2)
            Path("/proc/sysrq-trigger").write_text("u")
            return
        try:
            (hasty if number % 2 else durable)(number, round_)
        except OSError as error:
            check(error.errno in (errno.EROFS, errno.EIO), f"a writer fails with {error}")

    for round_ in range(4):
        children(6, lambda number, round_=round_: work(number, round_))  # type: ignore[misc]
        place.remount("rw")
        (here / f"after{round_}").write_text("x")
        for path in here.glob("*/f"):
            path.unlink()
    place.cycle()
    for round_ in range(4):
        equal((here / f"after{round_}").read_text(), "x", "what was written after remount,rw")
    for path in here.glob("*.*"):
        data = path.suffix[1:].encode() * 3000
        check(path.read_bytes() == data, f"{path.name} lacks what was fsync'd")


@test
def a_busy_file_system_is_not_unmounted_or_made_read_only(place: Place) -> None:
    """EBUSY while a file is open for writing."""
    place.own()
    fd = os.open(place.directory / "f", os.O_CREAT | os.O_WRONLY)
    for argv in (
        ["umount", str(place.mount_point)],
        ["mount", "-o", "remount,ro", str(place.mount_point)],
    ):
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        check(done.returncode != 0, f"{' '.join(argv)} succeeds while a file is open")
    os.write(fd, b"x")
    os.close(fd)
    equal((place.directory / "f").read_text(), "x", "what was written")


@test
def statfs_tells_what_is_used(place: Place) -> None:
    """Blocks and inodes go down and come back; names of 255 bytes."""
    place.own()

    def now() -> os.statvfs_result:
        os.sync()
        return os.statvfs(place.directory)

    before = now()
    check(before.f_blocks >= before.f_bfree >= before.f_bavail > 0, "blocks do not add up")
    equal(before.f_namemax, 255, "f_namemax")
    (place.directory / "f").write_bytes(bytes(8 << 20))
    for n in range(100):
        (place.directory / f"i{n}").touch()
    during = now()
    used = (before.f_bfree - during.f_bfree) * before.f_frsize
    check(8 << 20 <= used < 9 << 20, f"{used} bytes are used by a file of 8 MiB")
    if before.f_files:
        equal(before.f_ffree - during.f_ffree, 101, "inodes used by 101 files")
    run("rm", "-rf", *map(str, place.directory.iterdir()))
    after = now()
    check(before.f_bfree - after.f_bfree < 300, "the blocks did not come back")
    if before.f_files:
        equal(after.f_ffree, before.f_ffree, "free inodes in the end")


@test
def a_frozen_file_system_waits_and_goes_on(place: Place) -> None:
    """fsfreeze -f, a writer that waits, fsfreeze -u."""
    place.own()
    argv = ["fsfreeze", "-f", str(place.mount_point)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Skipped(f"no freezing: {done.stderr.strip()}")
    pid = os.fork()
    if pid == 0:
        (place.directory / "f").write_text("x")
        os._exit(0)
    try:
        os.sched_yield()
        waited = subprocess.run(["sleep", "0.5"], check=True).returncode == 0
        check(waited and os.waitpid(pid, os.WNOHANG) == (0, 0), "a write went on while frozen")
    finally:
        run("fsfreeze", "-u", str(place.mount_point))
    _, status = os.waitpid(pid, 0)
    equal(status, 0, "the writer")
    equal((place.directory / "f").read_text(), "x", "what was written")


@long_test
def a_close_leaves_a_frozen_file_system_alone(place: Place) -> None:
    """What was allocated ahead for a growing file is given back at another time."""
    device = place.own()
    read, write = os.pipe()
    fd = os.open(place.directory / "f", os.O_CREAT | os.O_WRONLY)
    for _ in range(300):
        os.write(fd, b"x" * 4096)
        os.fsync(fd)
    pid = os.fork()
    if pid == 0:
        os.close(write)
        os.read(read, 1)
        os.close(fd)
        os._exit(0)
    os.close(fd)
    argv = ["fsfreeze", "-f", str(place.mount_point)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        os.kill(pid, signal.SIGKILL)
        raise Skipped(f"no freezing: {done.stderr.strip()}")
    try:
        digest = _digest(device)
        os.close(write)
        # It may wait until the file system is thawed.
        time.sleep(1)
        os.sync()
        changed = _digest(device) != digest
    finally:
        run("fsfreeze", "-u", str(place.mount_point))
    _, status = os.waitpid(pid, 0)
    equal(status, 0, "the process that closed the file")
    check(not changed, "closing a file changed a frozen file system")


@test
def a_remount_that_does_not_say_stays_read_only(place: Place) -> None:
    """fsconfig() changes an option of a read-only mount, and says nothing of how it is mounted."""
    place.own()
    with loop_device(place, 320) as (device, _), mounted(place, device, "ro") as mount:
        context = libc.syscall(FSPICK, AT_FDCWD, bytes(mount), 0)
        if context < 0:
            raise Skipped(f"no fspick ({errno.errorcode[ctypes.get_errno()]})")
        try:
            if place.filesystem == "lanefs":
                done = libc.syscall(FSCONFIG, context, SET_FLAG, b"nodiscard", None, 0)
                check(done == 0, "fsconfig does not take an option")
            done = libc.syscall(FSCONFIG, context, RECONFIGURE, None, None, 0)
            check(done == 0, f"fsconfig ends with {errno.errorcode.get(ctypes.get_errno())}")
        finally:
            os.close(context)
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        (found,) = [line for line in lines if f" {mount} " in line]
        equal(found.split(" - ")[1].split()[2].split(",")[0], "ro", "the file system is")


def _ablated(mount: Path) -> list[str]:
    """The mechanisms of lanefs that are turned off, as the mount shows them."""
    lines = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    (options,) = [line[3].split(",") for line in lines if line[1] == str(mount)]
    return [option.removeprefix("ablate=") for option in options if option.startswith("ablate=")]


@test
def mechanisms_are_ablated_by_name(place: Place) -> None:
    """Refused: unknown ones, a log's where there is none, and what a remount cannot change."""
    place.own_lanefs("the option is lanefs's")
    with (
        loop_device(place, 320) as (device, _),
        mounted(place, device, "ablate=fsync+inodes+iolock") as mount,
    ):
        equal(_ablated(mount), ["inodes+iolock+fsync"], "mounted without")
        for names, taken in (
            ("inodes+readpath", True),
            ("inodes+nothing", False),
            ("inodes+", False),
            ("inodes+gc", False),
            ("none", False),
            ("inodes+recovery", False),
        ):
            argv = ["mount", "-o", f"remount,ablate={names}", str(mount)]
            done = subprocess.run(argv, capture_output=True, check=False)
            equal(done.returncode == 0, taken, f"whether a remount takes {names}")
        equal(_ablated(mount), ["inodes+readpath"], "remounted without")
    with (
        loop_device(place, 320) as (device, _),
        mounted(place, device, "ablate=fsync") as mount,
    ):
        run("mount", "-o", "remount,ablate=none", str(mount))
        equal(_ablated(mount), [], "remounted with all")
