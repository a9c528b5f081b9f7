# SPDX-License-Identifier: GPL-2.0-only
"""What swap, containers and programs that do direct I/O ask of a file system."""

import ctypes
import errno
import fcntl
import mmap
import os
import signal
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
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
    open_direct,
    opened,
    optional_elsewhere,
    run,
    test,
)

AT_FDCWD = -100
GETVERSION, GETFSUUID = 0x80087601, 0x80111500
STATX_DIOALIGN = 0x2000
# System calls and flags of linux/mount.h and linux/sched.h.
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
OPEN_TREE_CLONE, AT_EMPTY_PATH, MOVE_FROM_EMPTY, ATTR_IDMAP = 1, 0x1000, 4, 0x100000
CLONE_NEWUSER = 0x10000000
MAPPED = 100_000


@test
def a_swap_file_can_be_used(place: Place) -> None:
    """One that fallocate() has made; its blocks stay where they are as long as it is in use."""
    place.own()
    place.in_place()
    if not Path("/proc/swaps").exists():
        raise Skipped("the kernel has no swap")
    path = place.directory / "swap"
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 16 << 20)
    path.chmod(0o600)
    run("mkswap", str(path))
    done = subprocess.run(["swapon", str(path)], capture_output=True, text=True, check=False)
    if done.returncode and place.filesystem not in ("lanefs", "ext4", "xfs"):
        raise Skipped(f"no swap files: {done.stderr.strip()}")
    equal((done.returncode, done.stderr), (0, ""), "swapon")
    try:
        with fails(errno.ETXTBSY, "truncation of a swap file"):
            os.truncate(path, 4096)
        with path.open("r+b") as file, fails(errno.ETXTBSY, "a write to a swap file"):
            os.pwrite(file.fileno(), b"x", 8192)
    finally:
        run("swapoff", str(path))
    os.truncate(path, 4096)


@test
def direct_io_says_how_it_is_to_be_aligned(place: Place) -> None:
    """By statx, and I/O that keeps to it is done."""
    place.in_place()
    path = place.directory / "f"
    path.write_bytes(b"x" * 8192)
    found = ctypes.create_string_buffer(256)
    called(libc.statx(AT_FDCWD, bytes(path), 0, STATX_DIOALIGN, found), "statx")
    (mask,) = struct.unpack_from("=I", found)
    memory, offset = struct.unpack_from("=II", found, 152)
    if not mask & STATX_DIOALIGN and place.filesystem != "lanefs":
        raise Skipped("no STATX_DIOALIGN")
    check(bool(mask & STATX_DIOALIGN), "it does not say")
    check(0 < memory <= offset <= 4096, f"{memory} in memory and {offset} in the file")
    fd = open_direct(path, os.O_RDONLY)
    block = mmap.mmap(-1, 4096)
    equal(os.preadv(fd, [block], offset), 4096, "bytes of a read that keeps to it")
    os.close(fd)
    equal(block[:], b"x" * 4096, "what it reads")


@test
def an_inode_has_a_version_and_a_file_system_an_identity(place: Place) -> None:
    """The generation, which stays over a mount; and the UUID, where the kernel asks for one."""
    place.own()
    path = place.directory / "f"
    path.touch()

    def version() -> int:
        with opened(path) as fd, optional_elsewhere(place, "FS_IOC_GETVERSION"):
            return int(struct.unpack("=i", fcntl.ioctl(fd, GETVERSION, bytes(4)))[0])

    before = version()
    place.cycle()
    equal(version(), before, "the generation after a mount")
    fd = os.open(path, os.O_RDONLY)
    try:
        said = fcntl.ioctl(fd, GETFSUUID, bytes(17))
    except OSError as error:
        equal(error.errno, errno.ENOTTY, "errno of FS_IOC_GETFSUUID")
        release = tuple(int(word) for word in os.uname().release.split(".")[:2])
        check(release < (6, 9) or place.filesystem != "lanefs", "no UUID")
        return
    finally:
        os.close(fd)
    check(said[0] == 16 and any(said[1:]), f"the UUID is {said.hex()}")


@test
def leases_can_be_taken(place: Place) -> None:
    """One to read, and one to write where nobody else has the file open; others break them."""
    path = place.directory / "f"
    path.write_bytes(b"x")
    with path.open("rb") as file, path.open("rb"):
        for kind in (fcntl.F_RDLCK, fcntl.F_UNLCK):
            fcntl.fcntl(file, fcntl.F_SETLEASE, kind)
            equal(fcntl.fcntl(file, fcntl.F_GETLEASE), kind, "the lease")
        with fails(errno.EAGAIN, "a lease to write what another has open"):
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    signal.signal(signal.SIGIO, lambda *_: broken.append(True))
    broken: list[bool] = []
    with path.open("rb") as file:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        with fails(errno.EAGAIN, "an open that does not wait for the lease"):
            os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        equal(broken, [True], "signals of a lease that is to be given back")
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)


@contextmanager
def _user_namespace() -> Iterator[int]:
    """One in which the root of the file system is MAPPED."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os._exit(1 if libc.unshare(CLONE_NEWUSER) or os.write(write, b"x") != 1 else _pause())
    os.close(write)
    try:
        if os.read(read, 1) != b"x":
            raise Skipped("no user namespaces")
        for kind in ("uid_map", "gid_map"):
            Path(f"/proc/{pid}/{kind}").write_text(f"0 {MAPPED} 1000\n")
        with opened(f"/proc/{pid}/ns/user") as fd:
            yield fd
    finally:
        os.close(read)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _pause() -> int:
    signal.pause()
    return 0


@test
def an_idmapped_mount_maps_owners(place: Place) -> None:
    """Of what is there and what is created, chowned or given an ACL there."""
    place.own()
    source, target = place.directory / "s", place.directory / "t"
    source.mkdir()
    target.mkdir()
    source.chmod(0o777)
    (source / "f").touch()
    os.chown(source / "f", 5, 6)
    tree = called(libc.syscall(OPEN_TREE, AT_FDCWD, bytes(source), OPEN_TREE_CLONE), "open_tree")
    try:
        with _user_namespace() as namespace:
            attributes = struct.pack("=QQQQ", ATTR_IDMAP, 0, 0, namespace)
            done = libc.syscall(MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH, attributes, 32)
        if done < 0 and place.filesystem != "lanefs":
            raise Skipped("no idmapped mounts")
        called(done, "mount_setattr")
        moved = libc.syscall(MOVE_MOUNT, tree, b"", AT_FDCWD, bytes(target), MOVE_FROM_EMPTY)
        called(moved, "move_mount")
    finally:
        os.close(tree)
    try:
        stat = (target / "f").stat()
        equal((stat.st_uid - MAPPED, stat.st_gid - MAPPED), (5, 6), "owner in the mount")
        os.chown(target / "f", MAPPED + 7, MAPPED + 8)
        children(1, lambda _: _as_owner(target))
    finally:
        run("umount", str(target))
    stat = (source / "f").stat()
    equal((stat.st_uid, stat.st_gid), (7, 8), "owner after chown in the mount")
    stat = (source / "made").stat()
    equal((stat.st_uid, stat.st_gid), (9, 9), "owner of what was created in the mount")


def _as_owner(target: Path) -> None:
    os.setresgid(MAPPED + 9, MAPPED + 9, MAPPED + 9)
    os.setresuid(MAPPED + 9, MAPPED + 9, MAPPED + 9)
    (target / "made").touch()
