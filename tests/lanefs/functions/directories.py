# SPDX-License-Identifier: GPL-2.0-only
"""Directories: large ones, deep ones, and listings while they change."""

import ctypes
import errno
import os
import signal
import struct
from collections.abc import Iterator
from pathlib import Path

from tests.lanefs.functions.files import drop_caches
from tests.lanefs.functions.harness import (
    Place,
    Skipped,
    check,
    equal,
    fails,
    libc,
    long_test,
    test,
)

_SYS_GETDENTS64 = 217


def getdents(fd: int, size: int) -> list[tuple[int, int, int, str]]:
    """(inode, cookie, type, name) of one getdents64(2) call with a buffer of `size` bytes."""
    buffer = ctypes.create_string_buffer(size)
    length = libc.syscall(_SYS_GETDENTS64, fd, buffer, size)
    if length < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    found, at = [], 0
    while at < length:
        inode, cookie, record, kind = struct.unpack_from("<QqHB", buffer.raw, at)
        name = buffer.raw[at + 19 : at + record].split(b"\0")[0]
        found.append((inode, cookie, kind, os.fsdecode(name)))
        at += record
    return found


def entries(fd: int, size: int = 32768) -> Iterator[tuple[int, int, int, str]]:
    """All entries from the current position on."""
    while found := getdents(fd, size):
        yield from found


@long_test
def a_large_directory_finds_and_lists_every_name(place: Place) -> None:
    """20,000 names of many lengths; then half of them go, then all."""
    made = [f"{n}-" + "x" * (n * 7 % 200) for n in range(20000)]
    fd = os.open(place.directory, os.O_RDONLY)
    for name in made:
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, dir_fd=fd))
    if place.device is not None:
        drop_caches()
    equal(len(os.listdir(fd)), len(made), "names listed")
    check(set(os.listdir(fd)) == set(made), "other names are listed than were made")
    for name in made[::7]:
        os.stat(name, dir_fd=fd)
    for name in made[::2]:
        os.unlink(name, dir_fd=fd)
    check(set(os.listdir(fd)) == set(made[1::2]), "after the removal of half")
    for name in made[:400:2]:
        with fails(errno.ENOENT, "stat of a removed name"):
            os.stat(name, dir_fd=fd)
    for name in made[1::2]:
        os.unlink(name, dir_fd=fd)
    equal(os.listdir(fd), [], "names in the end")
    os.close(fd)


@long_test
def a_listing_is_stable_while_others_change_the_directory(place: Place) -> None:
    """What is there all the time is listed once, in every one of many listings."""
    fixed = {f"fixed{n}" for n in range(2000)}
    for name in fixed:
        (place.directory / name).touch()
    changer = os.fork()
    if changer == 0:
        fd = os.open(place.directory, os.O_RDONLY)
        names = [f"{n}-changing-" + "y" * (n % 150) for n in range(600)]
        while True:
            for name in names:
                os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=fd))
            for number, name in enumerate(names):
                if number % 3:
                    os.unlink(name, dir_fd=fd)
                else:
                    os.rename(name, f"moved-{name}", src_dir_fd=fd, dst_dir_fd=fd)
            for name in names[::3]:
                os.unlink(f"moved-{name}", dir_fd=fd)
    try:
        for number in range(12):
            fd = os.open(place.directory, os.O_RDONLY)
            found = [name for _, _, _, name in entries(fd, 512 if number % 2 else 32768)]
            os.close(fd)
            there = [name for name in found if name in fixed]
            equal(len(set(there)), len(fixed), "of the names that stay, listed")
            equal(len(there), len(fixed), "of the names that stay, listed in all")
            equal((found.count("."), found.count("..")), (1, 1), "'.' and '..'")
            check(os.waitpid(changer, os.WNOHANG) == (0, 0), "the changing process failed")
    finally:
        os.kill(changer, signal.SIGKILL)
        os.waitpid(changer, 0)
    for name in os.listdir(place.directory):
        (place.directory / name).unlink()


@long_test
def a_position_in_a_directory_can_be_sought(place: Place) -> None:
    """From each cookie the listing goes on with what followed, also after removals."""
    for n in range(500):
        (place.directory / f"name{n}").touch()
    fd = os.open(place.directory, os.O_RDONLY)
    whole = list(entries(fd))
    equal(len(whole), 502, "entries")
    equal(len({cookie for _, cookie, _, _ in whole}), 502, "different cookies")
    for at in range(0, 502, 17):
        os.lseek(fd, whole[at][1], os.SEEK_SET)
        equal([e[3] for e in entries(fd)], [e[3] for e in whole[at + 1 :]], f"after entry {at}")
    names = [e[3] for e in whole if e[3] not in (".", "..")]
    for name in names[100:200]:
        os.unlink(name, dir_fd=fd)
    position = next(cookie for _, cookie, _, name in whole if name == names[150])
    os.lseek(fd, position, os.SEEK_SET)
    rest = [e[3] for e in entries(fd) if e[3] not in (".", "..")]
    equal(rest, names[200:], "after the cookie of a removed name")
    os.lseek(fd, 0, os.SEEK_SET)
    equal(len(list(entries(fd))), 402, "entries after rewinding")
    os.close(fd)


@long_test
def a_directory_can_be_emptied_while_it_is_listed(place: Place) -> None:
    """As rm -r does, with a small buffer."""
    for n in range(1500):
        (place.directory / f"name{n}").touch()
    fd = os.open(place.directory, os.O_RDONLY)
    for _, _, _, name in entries(fd, 256):
        if name not in (".", ".."):
            os.unlink(name, dir_fd=fd)
    os.close(fd)
    equal(os.listdir(place.directory), [], "what is left")


@test
def a_listing_tells_inodes_and_types(place: Place) -> None:
    """As stat does; '..' is the parent."""
    here = place.directory
    (here / "dir").mkdir()
    (here / "file").touch()
    (here / "link").symlink_to("file")
    os.mkfifo(here / "fifo")
    kinds = {"dir": 4, "file": 8, "link": 10, "fifo": 1, ".": 4, "..": 4}
    fd = os.open(here, os.O_RDONLY)
    for inode, _, kind, name in entries(fd):
        check(kind in (0, kinds[name]), f"{name} is listed as type {kind}")
        if name != "..":
            equal(inode, os.lstat(here / name).st_ino, f"the inode of {name}")
    os.close(fd)
    fd = os.open(here / "dir", os.O_RDONLY)
    parent = next(inode for inode, _, _, name in entries(fd) if name == "..")
    equal(parent, here.stat().st_ino, "the inode of '..'")
    os.close(fd)


@test
def deep_directories(place: Place) -> None:
    """600 levels down and up again by '..'; then removed from the inside."""
    fd = os.open(place.directory, os.O_RDONLY)
    top = os.fstat(fd).st_ino
    for _ in range(600):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    if place.device is not None:
        drop_caches()
    for _ in range(600):
        above = os.open("..", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = above
        os.rename("d", "e", src_dir_fd=fd, dst_dir_fd=fd)
    equal(os.fstat(fd).st_ino, top, "the directory at the top")
    os.close(fd)
    equal(os.listdir(place.directory), ["e"], "the top")


@long_test
def many_subdirectories(place: Place) -> None:
    """Their number is in the link count, if the file system counts."""
    here = place.directory
    for n in range(1000):
        (here / f"d{n}").mkdir()
    if here.stat().st_nlink == 1:
        raise Skipped("directories are not counted")
    equal(here.stat().st_nlink, 1002, "links")
    for n in range(1000):
        (here / f"d{n}").rmdir()
    equal(here.stat().st_nlink, 2, "links when they are gone")


@long_test
def names_of_equal_hash_or_prefix_do_not_mix(place: Place) -> None:
    """Names that differ in one byte, at each position."""
    base = "n" * 200
    made = {base[:n] + c + base[n + 1 :] for n in range(200) for c in "abc"}
    for name in made:
        (place.directory / name).write_text(name[:20])
    for name in sorted(made)[::11]:
        equal((place.directory / name).read_text(), name[:20], "the file behind a name")
    check(set(os.listdir(place.directory)) == made, "the names")
    for name in sorted(made)[::2]:
        (place.directory / name).unlink()
    check(set(os.listdir(place.directory)) == set(sorted(made)[1::2]), "the names that stay")
    check(not (place.directory / Path(sorted(made)[0])).exists(), "a removed name is there")
