# SPDX-License-Identifier: GPL-2.0-only
"""Extended attributes: names, values, limits, namespaces, and when they come and go."""

import ctypes
import errno
import os
import random
import shutil
import stat
import struct
import time
from collections.abc import Callable
from pathlib import Path

from tests.lanefs.functions.harness import (
    Place,
    Skipped,
    check,
    children,
    equal,
    fails,
    libc,
    load_ends,
    optional,
    run,
    test,
)

SECONDS = 3.0
NOBODY = 65534
CAPABILITY = "security.capability"
# struct vfs_cap_data, revision 2: CAP_NET_RAW permitted and effective.
NET_RAW = struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0)


def attributes(path: Path) -> dict[str, bytes]:
    """All of an object, not following links."""
    names = os.listxattr(path, follow_symlinks=False)
    equal(len(set(names)), len(names), "the names that are listed once")
    return {name: os.getxattr(path, name, follow_symlinks=False) for name in names}


def some(path: Path, name: str, value: bytes, flags: int = 0) -> None:
    """Set one, not following links; Skipped where there are none."""
    with optional("extended attributes"):
        os.setxattr(path, name, value, flags, follow_symlinks=False)


def let_in_others(place: Place) -> None:
    """Open the directory to other users; Skipped where they cannot get to it."""
    place.directory.chmod(0o755)
    if not all(parent.stat().st_mode & 0o001 for parent in place.directory.parents):
        raise Skipped("no way to the directory for other users")


def as_nobody(work: Callable[[], None]) -> None:
    """Do something in a process without privileges."""

    def unprivileged(_: int) -> None:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        work()

    if os.geteuid() != 0:
        raise Skipped("no privileges to drop")
    children(1, unprivileged)


def _answer(call: str, path: Path, *arguments: object) -> int:
    """A system call's result, or -errno."""
    result = getattr(libc, call)(os.fsencode(path), *arguments)
    return int(result) if result >= 0 else -ctypes.get_errno()


@test
def attributes_are_kept(place: Place) -> None:
    """user.* and trusted.*, empty to large; over a remount."""
    path = place.directory / "f"
    path.touch()
    some(path, "user.empty", b"")
    right = {"user.empty": b"", "user.large": b"v" * 1500, "trusted.x": b"\0\1"}
    for name, value in right.items():
        os.setxattr(path, name, value)
    place.cycle()
    equal(attributes(path), right, "the attributes")
    os.removexattr(path, "user.large")
    with fails(errno.ENODATA, "a removed attribute"):
        os.getxattr(path, "user.large")
    place.cycle()
    del right["user.large"]
    equal(attributes(path), right, "the attributes without one")
    for name in right:
        os.removexattr(path, name)
    place.cycle()
    equal(attributes(path), {}, "the attributes after all were removed")


@test
def attributes_are_created_and_replaced_as_asked(place: Place) -> None:
    """XATTR_CREATE and XATTR_REPLACE, longer and shorter values, removing what is not there."""
    path = place.directory / "f"
    path.touch()
    for state in ("none", "others"):
        with fails(errno.ENODATA, f"replacing, {state} there"):
            some(path, "user.a", b"x", os.XATTR_REPLACE)
        with fails(errno.ENODATA, f"removing, {state} there"):
            os.removexattr(path, "user.a")
        with fails(errno.ENODATA, f"reading, {state} there"):
            os.getxattr(path, "user.a")
        os.setxattr(path, "user.z", b"other")
    os.setxattr(path, "user.a", b"first", os.XATTR_CREATE)
    with fails(errno.EEXIST, "creating one that is there"):
        os.setxattr(path, "user.a", b"second", os.XATTR_CREATE)
    for value in (b"x" * 900, b"", b"y" * 17, b"first"):
        os.setxattr(path, "user.a", value, os.XATTR_REPLACE)
        equal(attributes(path), {"user.a": value, "user.z": b"other"}, "the attributes")
    time.sleep(0.02)
    before = path.stat()
    os.setxattr(path, "user.a", b"later")
    check(path.stat().st_ctime_ns > before.st_ctime_ns, "setting changes the ctime")
    equal(path.stat().st_mtime_ns, before.st_mtime_ns, "the mtime")


@test
def attribute_calls_check_the_buffer(place: Place) -> None:
    """Size 0 asks for the size, too small a buffer is ERANGE."""
    path = place.directory / "f"
    path.touch()
    some(path, "user.abc", b"0123456789")
    buffer = ctypes.create_string_buffer(64)
    for size, right in ((0, 10), (9, -errno.ERANGE), (10, 10), (64, 10)):
        equal(_answer("getxattr", path, b"user.abc", buffer, size), right, f"getxattr, {size}")
    before = _answer("listxattr", path, buffer, 0)
    for size, right in ((0, before), (before - 1, -errno.ERANGE), (before, before), (64, before)):
        equal(_answer("listxattr", path, buffer, size), right, f"listxattr, {size}")


@test
def attribute_names_and_values_have_limits(place: Place) -> None:
    """255 bytes a name, 64 KiB a value as the kernel has it, or less: then ENOSPC."""
    path = place.directory / "f"
    path.touch()
    longest = "user." + "n" * 250
    some(path, longest, b"value")
    equal(attributes(path), {longest: b"value"}, "the attribute of the longest name")
    with fails(errno.ERANGE, "a name of 256 bytes"):
        os.setxattr(path, longest + "n", b"value")
    with fails(errno.EINVAL, "a namespace without a name"):
        os.setxattr(path, "user.", b"value")
    with fails(errno.E2BIG, "a value of more than 64 KiB"):
        os.setxattr(path, "user.big", b"v" * 65537)
    for size in (65536, 65535, 32768, 4096, 4028, 4000, 3000):
        try:
            os.setxattr(path, "user.big", bytes([size & 0xFF]) * size)
        except OSError as error:
            equal(error.errno, errno.ENOSPC, f"errno of a value of {size} bytes")
            equal(attributes(path), {longest: b"value"}, "the attributes after ENOSPC")
            continue
        equal(os.getxattr(path, "user.big"), bytes([size & 0xFF]) * size, "the large value")
        os.removexattr(path, "user.big")
    if place.filesystem == "lanefs":
        (alone := place.directory / "alone").touch()
        with fails(errno.ENOSPC, "a value of 4028 bytes"):
            os.setxattr(alone, "user.x", b"v" * 4028)
        os.setxattr(alone, "user.x", b"v" * 4027)
        with fails(errno.ENOSPC, "one more in a full block"):
            os.setxattr(alone, "user.y", b"")
        equal(attributes(alone), {"user.x": b"v" * 4027}, "the attribute that fills the block")


@test
def full_attributes_keep_what_there_is(place: Place) -> None:
    """Attributes until there is no more room: all that were set are there, also after a remount."""
    path = place.directory / "f"
    path.touch()
    some(path, "user.first", b"1")
    right = {"user.first": b"1"}
    for n in range(300):
        name, value = f"user.{n:03d}", bytes([n & 0xFF]) * (n % 120)
        try:
            os.setxattr(path, name, value)
        except OSError as error:
            equal(error.errno, errno.ENOSPC, "errno when there is no more room")
            break
        right[name] = value
    check(len(right) > 30, f"there is room for {len(right)} attributes")
    equal(attributes(path), right, "the attributes when all room is used")
    place.cycle()
    equal(attributes(path), right, "the attributes after a remount")
    os.removexattr(path, "user.020")
    del right["user.020"]
    os.setxattr(path, "user.again", b"2")
    right["user.again"] = b"2"
    place.cycle()
    equal(attributes(path), right, "the attributes after one gave way to another")


@test
def every_kind_of_object_has_attributes(place: Place) -> None:
    """trusted.* of directories, links, FIFOs, devices and sockets; user.* of files, directories."""
    made = {kind: place.directory / kind for kind in ("file", "directory", "link", "fifo", "null")}
    made["file"].touch()
    made["directory"].mkdir()
    os.symlink("x" * 200, made["link"])
    os.mkfifo(made["fifo"])
    os.mknod(made["null"], stat.S_IFCHR | 0o600, os.makedev(1, 3))
    some(made["file"], "trusted.kind", b"file")
    blocks = {kind: path.lstat().st_blocks for kind, path in made.items()}
    for kind, path in made.items():
        os.setxattr(path, "trusted.kind", kind.encode(), follow_symlinks=False)
        if kind in ("file", "directory"):
            os.setxattr(path, "user.kind", kind.encode())
        else:
            with fails(errno.EPERM, f"user.* of a {kind}"):
                os.setxattr(path, "user.kind", b"", follow_symlinks=False)
    place.cycle()
    for kind, path in made.items():
        right = {"trusted.kind": kind.encode()}
        if kind in ("file", "directory"):
            right["user.kind"] = kind.encode()
        equal(attributes(path), right, f"the attributes of the {kind}")
        for name in right:
            os.removexattr(path, name, follow_symlinks=False)
        if kind != "file":
            equal(path.lstat().st_blocks, blocks[kind], f"blocks of the {kind} without any")


@test
def namespaces_have_their_rights(place: Place) -> None:
    """Who is not root sees no trusted.*, sets no security.*, and user.* as the mode allows."""
    # The directories above may be closed to others.
    os.chdir(place.directory)
    path, locked, sticky = Path("f"), Path("locked"), Path("sticky")
    path.touch()
    locked.touch()
    sticky.mkdir()
    some(path, "trusted.secret", b"1")
    for each in (path, locked):
        os.setxattr(each, "user.known", b"2")
        os.setxattr(each, "security.label", b"3")
    os.setxattr(sticky, "user.known", b"4")
    path.chmod(0o666)
    locked.chmod(0o600)
    sticky.chmod(0o1777)
    place.directory.chmod(0o755)

    def work() -> None:
        equal(sorted(os.listxattr(path)), ["security.label", "user.known"], "the names")
        equal(os.getxattr(path, "user.known"), b"2", "a value")
        with fails(errno.ENODATA, "reading trusted.*"):
            os.getxattr(path, "trusted.secret")
        with fails(errno.EPERM, "setting trusted.*"):
            os.setxattr(path, "trusted.mine", b"")
        with fails(errno.EPERM, "removing trusted.*"):
            os.removexattr(path, "trusted.secret")
        with fails(errno.EPERM, "setting a capability"):
            os.setxattr(path, CAPABILITY, NET_RAW)
        with fails(errno.EACCES, "reading user.* of a file that cannot be read"):
            os.getxattr(locked, "user.known")
        with fails(errno.EACCES, "setting user.* of a file that cannot be written"):
            os.setxattr(locked, "user.known", b"")
        with fails(errno.EPERM, "setting user.* of another's sticky directory"):
            os.setxattr(sticky, "user.known", b"")
        os.setxattr(path, "user.mine", b"5")
        os.removexattr(path, "user.known")

    as_nobody(work)
    right = {"trusted.secret": b"1", "security.label": b"3", "user.mine": b"5"}
    equal(attributes(path), right, "the attributes afterwards")
    for name in ("nothing.x", "system.x", "usr.x", "user"):
        with fails(errno.EOPNOTSUPP, f"setting {name}"):
            os.setxattr(path, name, b"")


@test
def capabilities_go_with_a_change(place: Place) -> None:
    """A write, a truncation or another owner takes security.capability away, nothing else does."""
    if os.geteuid() != 0:
        raise Skipped("no right to give capabilities")
    path = place.directory / "f"

    def write(path: Path) -> None:
        with path.open("ab") as file:
            file.write(b"more")

    def write_again(path: Path) -> None:
        """A descriptor that has written before: the kernel remembers that there was none."""
        with path.open("ab", buffering=0) as file:
            os.removexattr(path, CAPABILITY)
            file.write(b"more")
            os.setxattr(path, CAPABILITY, NET_RAW)
            file.write(b"more")

    changes: dict[str, Callable[[Path], object]] = {
        "write": write,
        "a second write": write_again,
        "truncate": lambda path: os.truncate(path, 3),
        "chown": lambda path: os.chown(path, 1, 1),
    }
    for what, change in changes.items():
        path.write_bytes(b"a program")
        some(path, CAPABILITY, NET_RAW)
        os.setxattr(path, "user.other", b"stays")
        place.cycle()
        path.read_bytes()
        os.utime(path, (1, 1))
        path.chmod(0o755)
        path.rename(place.directory / "moved").rename(path)
        check(CAPABILITY in os.listxattr(path), f"the capability is there before {what}")
        change(path)
        equal(attributes(path), {"user.other": b"stays"}, f"the attributes after {what}")


@test
def capabilities_are_set_and_shown_by_the_tools(place: Place) -> None:
    """setcap and getcap, over a remount."""
    if not all(shutil.which(tool) for tool in ("setcap", "getcap")):
        raise Skipped("no setcap and getcap")
    path = place.directory / "program"
    path.write_bytes(b"#!/bin/true\n")
    some(path, "user.probe", b"")
    run("setcap", "cap_net_raw+ep", str(path))
    place.cycle()
    check("cap_net_raw=ep" in run("getcap", str(path)), "getcap shows what setcap set")
    run("setcap", "-r", str(path))
    equal(run("getcap", str(path)).strip(), "", "what getcap shows after setcap -r")


@test
def copies_take_attributes_along(place: Place) -> None:
    """cp -a of a tree; renames and links keep them."""
    tree = place.directory / "tree"
    (tree / "below").mkdir(parents=True)
    (tree / "below" / "f").write_bytes(b"x" * 5000)
    some(tree / "below" / "f", "user.f", b"1" * 300)
    os.setxattr(tree / "below", "user.d", b"2")
    os.setxattr(tree, "trusted.t", b"3")
    run("cp", "-a", str(tree), str(place.directory / "copy"))
    place.cycle()
    for name in (".", "below", "below/f"):
        right = attributes(tree / name)
        equal(attributes(place.directory / "copy" / name), right, f"the copy's of {name}")
        check(bool(right), f"{name} has attributes")
    os.link(tree / "below" / "f", place.directory / "link")
    (tree / "below" / "f").rename(place.directory / "moved")
    os.setxattr(place.directory / "link", "user.f", b"other")
    equal(os.getxattr(place.directory / "moved", "user.f"), b"other", "the value by another name")


@test
def removed_objects_give_attributes_back(place: Place) -> None:
    """Blocks are free again, also of files that were open when they lost their name."""
    (place.directory / "probe").touch()
    some(place.directory / "probe", "user.x", b"")

    def free() -> int:
        place.cycle()
        found = os.statvfs(place.directory)
        return found.f_bfree * found.f_frsize

    before = free()
    held = []
    for n in range(200):
        path = place.directory / f"f{n}"
        path.mkdir() if n % 5 == 0 else path.touch()
        os.setxattr(path, "user.x", b"x" * 3000)
        if n % 3 == 0:
            held.append(os.open(path, os.O_RDONLY))
    for n in range(200):
        path = place.directory / f"f{n}"
        path.rmdir() if n % 5 == 0 else path.unlink()
    for fd in held:
        equal(os.getxattr(fd, "user.x"), b"x" * 3000, "an attribute of what has no name")
        os.setxattr(fd, "user.y", b"new")
        os.close(fd)
    check(before - free() < 200 << 10, "the space of 200 attributes is free again")


@test
def names_are_listed_in_a_lasting_order(place: Place) -> None:
    """The same names in the same order, over a remount; lanefs: however they came to be."""
    names = [f"user.{'n' * (n % 7)}{n}" for n in range(40)] + ["trusted.a", "security.b"]
    orders = []
    rng = random.Random(1)
    for number in range(3):
        path = place.directory / f"f{number}"
        path.touch()
        rng.shuffle(names)
        for name in names:
            some(path, name, b"v" * rng.randrange(20))
        for name in names[:10]:
            os.removexattr(path, name)
            os.setxattr(path, name, b"again")
        orders.append(os.listxattr(path))
    place.cycle()
    for number, order in enumerate(orders):
        equal(os.listxattr(place.directory / f"f{number}"), order, "the order after a remount")
    if place.filesystem == "lanefs":
        check(orders[0] == orders[1] == orders[2], "the order is that of the names")


@test
def attributes_change_as_a_whole(place: Place) -> None:
    """Processes set, remove and read attributes of one file: no value is mixed of two."""
    path = place.directory / "f"
    path.touch()
    some(path, "user.probe", b"")
    end = load_ends(SECONDS)

    def work(number: int) -> None:
        rng = random.Random(number)
        while time.monotonic() < end:
            name = f"user.{rng.randrange(4)}"
            try:
                if number % 2:
                    value = os.getxattr(path, name)
                    check(len(set(value)) <= 1, f"{name} is {value!r}, a mixture")
                    os.listxattr(path)
                elif rng.random() < 0.3:
                    os.removexattr(path, name)
                else:
                    os.setxattr(path, name, bytes([rng.randrange(256)]) * rng.randrange(900))
            except OSError as error:
                equal(error.errno, errno.ENODATA, "errno")
            if number == 0:
                path.write_bytes(b"data")

    children(4, work)
    place.cycle()
    for name, value in attributes(path).items():
        check(len(set(value)) <= 1, f"{name} is {value!r} after a remount, a mixture")


@test
def a_read_only_mount_keeps_attributes(place: Place) -> None:
    """They are read, and setting them is EROFS."""
    path = place.directory / "f"
    path.touch()
    some(path, "user.x", b"1")
    place.remount("ro")
    with fails(errno.EROFS, "setting one on a read-only mount"):
        os.setxattr(path, "user.x", b"2")
    with fails(errno.EROFS, "removing one on a read-only mount"):
        os.removexattr(path, "user.x")
    equal(attributes(path), {"user.x": b"1"}, "the attributes")
    place.remount("rw")
