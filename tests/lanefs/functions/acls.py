# SPDX-License-Identifier: GPL-2.0-only
"""POSIX ACLs: kept, obeyed, inherited, and what else changes them."""

import errno
import os
import random
import stat
import struct
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from tests.lanefs.functions.harness import (
    Place,
    check,
    children,
    equal,
    fails,
    load_ends,
    long_test,
    optional,
    test,
)
from tests.lanefs.functions.xattrs import NOBODY, as_nobody, attributes, let_in_others

SECONDS = 4.0
ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
OWNER, USER, GROUP, NAMED_GROUP, MASK, OTHER = 1, 2, 4, 8, 16, 32
NO_ID = 2**32 - 1


def acl(*entries: tuple[int, ...]) -> bytes:
    """An ACL of (tag, permissions) and (tag, permissions, id)."""
    packed = [
        struct.pack("<HHI", *(entry if len(entry) == 3 else (*entry, NO_ID))) for entry in entries
    ]
    return struct.pack("<I", 2) + b"".join(packed)


def named(owner: int, user: int, mask: int, other: int = 0, group: int = 0) -> bytes:
    """One that gives nobody something."""
    return acl((OWNER, owner), (USER, user, NOBODY), (GROUP, group), (MASK, mask), (OTHER, other))


def give(place: Place, path: Path, name: str, value: bytes) -> None:
    """Set one; Skipped where there are none, but not on lanefs."""
    with nullcontext() if place.filesystem == "lanefs" else optional("ACLs"):
        os.setxattr(path, name, value)


def mode_of(path: Path) -> int:
    """The permissions."""
    return stat.S_IMODE(path.lstat().st_mode)


@long_test
def acls_are_kept_and_obeyed(place: Place) -> None:
    """By who opens, from the disk, after chmod, and not any more when it is removed."""
    path = place.directory / "f"
    path.write_text("secret")
    path.chmod(0o600)
    os.setxattr(path, "user.x", b"1")
    let_in_others(place)

    def may(read: bool, write: bool, when: str) -> None:
        def work() -> None:
            for flags, right in ((os.O_RDONLY, read), (os.O_WRONLY, write)):
                with nullcontext() if right else fails(errno.EACCES, f"opening, {when}"):
                    os.close(os.open(path, flags))

        as_nobody(work)

    may(False, False, "without an ACL")
    value = named(6, 6, 4)
    give(place, path, ACCESS, value)
    for when in ("at once", "after a remount"):
        equal(attributes(path), {ACCESS: value, "user.x": b"1"}, f"the attributes, {when}")
        equal(mode_of(path), 0o640, f"the mode, {when}")
        may(True, False, when)
        if when == "at once":
            place.cycle()
    for mode, right in ((0o670, named(6, 6, 7)), (0o600, named(6, 6, 0))):
        path.chmod(mode)
        equal(os.getxattr(path, ACCESS), right, f"the ACL after a chmod to {mode:o}")
        may(mode == 0o670, mode == 0o670, f"after a chmod to {mode:o}")
        place.cycle()
        equal(os.getxattr(path, ACCESS), right, "the ACL after a chmod and a remount")
        equal(mode_of(path), mode, "the mode after a remount")
    os.removexattr(path, ACCESS)
    with fails(errno.ENODATA, "a removed ACL"):
        os.getxattr(path, ACCESS)
    path.chmod(0o600)
    may(False, False, "without the ACL")
    os.setxattr(path, ACCESS, value)
    os.setxattr(path, ACCESS, acl((OWNER, 7), (GROUP, 5), (OTHER, 1)))
    equal(mode_of(path), 0o751, "the mode after an ACL that is but a mode")
    place.cycle()
    equal(attributes(path), {"user.x": b"1"}, "the attributes after that")
    equal(mode_of(path), 0o751, "the mode after that and a remount")


@test
def default_acls_are_inherited(place: Place) -> None:
    """By each kind of object, with the mode that was asked for; the umask is of no effect."""
    parent = place.directory / "d"
    parent.mkdir()
    default = named(7, 6, 7, 5, 4)
    os.umask(0o077)
    give(place, parent, DEFAULT, default)

    def unnamed(path: Path) -> None:
        fd = os.open(path.parent, os.O_TMPFILE | os.O_WRONLY, 0o666)
        # With a directory, though of no use, Python follows the link.
        os.link(f"/proc/self/fd/{fd}", path, src_dir_fd=fd)
        os.close(fd)

    makers: dict[str, Callable[[Path], object]] = {
        "file": lambda path: os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o666)),
        "unnamed": unnamed,
        "fifo": lambda path: os.mkfifo(path, 0o660),
        "directory": lambda path: path.mkdir(0o755),
        "symlink": lambda path: path.symlink_to("file"),
    }
    masked = {
        "file": (0o664, named(6, 6, 6, 4, 4)),
        "unnamed": (0o664, named(6, 6, 6, 4, 4)),
        "fifo": (0o660, named(6, 6, 6, 0, 4)),
        "directory": (0o755, named(7, 6, 5, 5, 4)),
    }
    for name, make in makers.items():
        make(parent / name)
    for when in ("at once", "after a remount"):
        for name, (mode, right) in masked.items():
            found = {ACCESS: right} | ({DEFAULT: default} if name == "directory" else {})
            equal(attributes(parent / name), found, f"the attributes of a {name}, {when}")
            equal(mode_of(parent / name), mode, f"the mode of a {name}, {when}")
        equal(attributes(parent / "symlink"), {}, f"the attributes of a symlink, {when}")
        place.cycle()
    (parent / "directory" / "below").mkdir()
    equal(os.getxattr(parent / "directory" / "below", DEFAULT), default, "the ACL of what is below")
    # One that is but a mode: nothing is kept with what inherits it, but for directories.
    os.setxattr(parent, DEFAULT, acl((OWNER, 6), (GROUP, 6), (OTHER, 0)))
    makers["file"](parent / "plain")
    equal(attributes(parent / "plain"), {}, "what is inherited of a mode")
    equal(mode_of(parent / "plain"), 0o660, "the mode by a default ACL that is one")
    os.removexattr(parent, DEFAULT)
    for name, make in makers.items():
        make(parent / f"{name}-2")
        equal(attributes(parent / f"{name}-2"), {}, f"the attributes of a {name} without")
    for name, right in (("file-2", 0o600), ("fifo-2", 0o600), ("directory-2", 0o700)):
        equal(mode_of(parent / name), right, f"the mode of {name}, by the umask")


@test
def an_acl_that_is_not_there_changes_nothing(place: Place) -> None:
    """Neither its removal nor one that only says what the mode does moves ctime. tmpfs moves it."""
    place.own()
    path = place.directory / "d"
    path.mkdir(mode=0o750)
    os.chmod(path, 0o750)
    as_the_mode = acl((OWNER, 7), (GROUP, 5), (OTHER, 0))
    give(place, path, ACCESS, as_the_mode)
    time.sleep(0.01)
    before = path.stat().st_ctime_ns
    os.setxattr(path, ACCESS, as_the_mode)
    os.removexattr(path, ACCESS)
    os.removexattr(path, DEFAULT)
    equal(path.stat().st_ctime_ns, before, "ctime")
    os.setxattr(path, ACCESS, acl((OWNER, 7), (GROUP, 0), (OTHER, 0)))
    check(path.stat().st_ctime_ns > before, "an ACL that changes the mode leaves ctime")
    equal(mode_of(path), 0o700, "mode")


@test
def acls_are_refused_where_they_cannot_be(place: Place) -> None:
    """Kinds of objects, owners, nonsense, a read-only mount; what there was stays."""
    path = place.directory / "f"
    path.touch()
    value = named(6, 4, 4)
    give(place, path, ACCESS, value)
    (link := place.directory / "link").symlink_to("f")
    let_in_others(place)
    with fails(errno.EACCES, "a default ACL of a file"):
        os.setxattr(path, DEFAULT, value)
    for name in (ACCESS, DEFAULT):
        with fails(errno.EOPNOTSUPP, "an ACL of a symlink"):
            os.setxattr(link, name, value, follow_symlinks=False)
    wrong = {
        "no mask": acl((OWNER, 6), (USER, 6, 1), (GROUP, 4), (OTHER, 0)),
        "no owner": acl((GROUP, 4), (OTHER, 0)),
        "no order": acl((GROUP, 4), (OWNER, 6), (OTHER, 0)),
        "unknown permissions": acl((OWNER, 15), (GROUP, 4), (OTHER, 0)),
        "an unknown entry": acl((OWNER, 7), (GROUP, 4), (OTHER, 0), (64, 0)),
        "half an entry": value[:-4],
    }
    for what, bad in wrong.items():
        with fails(errno.EINVAL, f"an ACL with {what}"):
            os.setxattr(path, ACCESS, bad)

    def other() -> None:
        with fails(errno.EPERM, "an ACL of another's file"):
            os.setxattr(path, ACCESS, value)
        with fails(errno.EPERM, "removing the ACL of another's file"):
            os.removexattr(path, ACCESS)
        equal(os.getxattr(path, ACCESS), value, "the ACL, to others")

    as_nobody(other)
    if place.filesystem == "lanefs":
        many = [(USER, 7, n) for n in range(600)]
        with fails(errno.ENOSPC, "an ACL that does not fit"):
            os.setxattr(path, ACCESS, acl((OWNER, 7), *many, (GROUP, 0), (MASK, 7), (OTHER, 0)))
        fitting = acl((OWNER, 7), *many[:490], (GROUP, 0), (MASK, 7), (OTHER, 0))
        os.setxattr(path, ACCESS, fitting)
        place.cycle()
        equal(attributes(path), {ACCESS: fitting}, "a long ACL")
        os.setxattr(path, ACCESS, value)
    place.remount("ro")
    with fails(errno.EROFS, "an ACL on a read-only mount"):
        os.setxattr(path, ACCESS, named(7, 7, 7))
    place.remount("rw")
    equal(attributes(path), {ACCESS: value}, "the attributes")
    if place.filesystem == "lanefs":
        default = acl((OWNER, 7), *many[:300], (GROUP, 0), (MASK, 7), (OTHER, 0))
        os.setxattr(place.directory, DEFAULT, default)
        (place.directory / "file").touch()
        with fails(errno.ENOSPC, "a directory for which both ACLs are too long"):
            (place.directory / "both").mkdir()
        check(not (place.directory / "both").exists(), "nothing is left of it")
        os.removexattr(place.directory, DEFAULT)


@long_test
def acls_change_as_a_whole(place: Place) -> None:
    """Processes set and remove ACLs, chmod and create below: mode and ACL agree all the time."""
    parent = place.directory / "d"
    parent.mkdir()
    give(place, parent, DEFAULT, named(7, 7, 7))
    path = place.directory / "f"
    path.touch()
    end = load_ends(SECONDS)
    groups = (0, 4, 5, 7)

    def agrees(path: Path, what: str) -> None:
        found = attributes(path).get(ACCESS)
        if found is None:
            return
        entries = {tag: perm for tag, perm, _ in struct.iter_unpack("<HHI", found[4:])}
        right = entries[OWNER] << 6 | entries[MASK] << 3 | entries[OTHER]
        equal(mode_of(path), right, f"the mode of {what}, of which the ACL is {entries}")

    def work(number: int) -> None:
        rng = random.Random(number)
        turn = 0
        while time.monotonic() < end:
            turn += 1
            mask = rng.choice(groups)
            below = parent / f"{number}-{turn}"
            if number == 0:
                os.setxattr(path, ACCESS, named(6, 7, mask))
                os.setxattr(parent, DEFAULT, named(7, mask, 7))
            elif number == 1:
                path.chmod(0o600 | mask << 3)
            elif number == 2:
                try:
                    os.removexattr(rng.choice((path, parent)), rng.choice((ACCESS, DEFAULT)))
                except OSError as error:
                    check(error.errno in (errno.ENODATA, errno.EACCES), f"removing gives {error}")
            else:
                below.mkdir() if turn % 2 else below.touch()
                agrees(below, "a new object")
                below.rmdir() if turn % 2 else below.unlink()

    children(5, work)
    agrees(path, "the file")
    place.cycle()
    agrees(path, "the file after a remount")
