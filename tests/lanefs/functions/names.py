# SPDX-License-Identifier: GPL-2.0-only
"""Names, links, renames, special files."""

import ctypes
import errno
import itertools
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.lanefs.functions.harness import Place, Skipped, check, equal, fails, libc, run, test

NOREPLACE, EXCHANGE, WHITEOUT = 1, 2, 4


def renameat2(old: Path, new: Path, flags: int) -> None:
    """renameat2(2)."""
    result = libc.renameat2(-100, os.fsencode(old), -100, os.fsencode(new), ctypes.c_uint(flags))
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _content(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@test
def rename_onto_a_file_replaces_it(place: Place) -> None:
    """The old file lives on for who has it open."""
    a = _content(place.directory / "a", "new")
    b = _content(place.directory / "b", "old")
    with b.open() as still:
        inode = a.stat().st_ino
        a.rename(b)
        equal(still.read(), "old", "the replaced file, open")
        equal(os.fstat(still.fileno()).st_nlink, 0, "links of the replaced file")
    equal(b.read_text(), "new", "the target")
    equal(b.stat().st_ino, inode, "the target's inode")
    equal(os.listdir(place.directory), ["b"], "the directory")


@test
def rename_between_links_of_one_file_does_nothing(place: Place) -> None:
    """POSIX: both names stay."""
    a = _content(place.directory / "a", "x")
    (place.directory / "b").hardlink_to(a)
    a.rename(place.directory / "b")
    equal(sorted(os.listdir(place.directory)), ["a", "b"], "the directory")
    equal(a.stat().st_nlink, 2, "links")


@test
def rename_of_wrong_kinds_is_refused(place: Place) -> None:
    """Files and directories do not replace each other; a full directory is not replaced."""
    here = place.directory
    _content(here / "file", "x")
    for name in ("empty", "full", "full/below", "moved"):
        (here / name).mkdir()
    for source, target, code in (
        ("file", "empty", errno.EISDIR),
        ("moved", "file", errno.ENOTDIR),
        ("moved", "full", errno.ENOTEMPTY),
        ("full", "full/below/inside", errno.EINVAL),
        ("full/below", "full", errno.ENOTEMPTY),
        ("none", "other", errno.ENOENT),
        ("file", "none/other", errno.ENOENT),
        ("file", "file/other", errno.ENOTDIR),
    ):
        with fails(code, f"rename {source} to {target}"):
            (here / source).rename(here / target)
    (here / "moved").rename(here / "empty")
    equal(sorted(os.listdir(here)), ["empty", "file", "full"], "the directory")


@test
def rename_of_a_directory_moves_its_parent_link(place: Place) -> None:
    """'..' and the link counts of both parents follow; across many directories."""
    here = place.directory
    parents = [here / f"parent{n}" for n in range(16)]
    for parent in parents:
        parent.mkdir()
    moved = parents[0] / "moved"
    (moved / "below").mkdir(parents=True)
    for old, new in itertools.pairwise(parents):
        (old / "moved").rename(new / "moved")
        equal(os.stat(new / "moved" / "..").st_ino, new.stat().st_ino, "'..'")
        if old.stat().st_nlink != 1:
            equal(old.stat().st_nlink, 2, "links of the old parent")
            equal(new.stat().st_nlink, 3, "links of the new parent")
    os.rename(parents[-1] / "moved" / "below", here / "below")
    equal(os.listdir(parents[-1] / "moved"), [], "what was moved out")


@test
def rename_without_replacing(place: Place) -> None:
    """RENAME_NOREPLACE."""
    a = _content(place.directory / "a", "a")
    b = _content(place.directory / "b", "b")
    with fails(errno.EEXIST, "rename with NOREPLACE onto a file"):
        renameat2(a, b, NOREPLACE)
    equal(b.read_text(), "b", "the target")
    renameat2(a, place.directory / "c", NOREPLACE)
    check(not a.exists(), "the old name is still there")
    equal((place.directory / "c").read_text(), "a", "the new name")


@test
def rename_that_exchanges(place: Place) -> None:
    """RENAME_EXCHANGE, of a file and a directory too; link counts and '..' follow."""
    here = place.directory
    for name in ("one", "two", "one/d"):
        (here / name).mkdir()
    f = _content(here / "two" / "f", "x")
    try:
        renameat2(here / "one" / "d", f, EXCHANGE)
    except OSError as error:
        if error.errno == errno.EINVAL:
            raise Skipped("no RENAME_EXCHANGE") from None
        raise
    equal((here / "one" / "d").read_text(), "x", "the file")
    check((here / "two" / "f").is_dir(), "two/f is no directory")
    equal(os.stat(here / "two/f/..").st_ino, (here / "two").stat().st_ino, "'..'")
    if (here / "one").stat().st_nlink != 1:
        equal((here / "one").stat().st_nlink, 2, "links of one/")
        equal((here / "two").stat().st_nlink, 3, "links of two/")
    (here / "sub").mkdir()
    with fails(errno.EINVAL, "exchange of a directory with one below it"):
        (here / "sub" / "x").mkdir()
        renameat2(here / "sub", here / "sub" / "x", EXCHANGE)


@test
def rename_that_leaves_a_whiteout(place: Place) -> None:
    """RENAME_WHITEOUT: the old name is a character device 0:0, also of a directory's."""
    here = place.directory
    for name in ("one", "two", "one/d"):
        (here / name).mkdir()
    _content(here / "one" / "f", "x")
    _content(here / "two" / "old", "y")
    try:
        renameat2(here / "one" / "f", here / "two" / "old", WHITEOUT)
    except OSError as error:
        if error.errno == errno.EINVAL:
            raise Skipped("no RENAME_WHITEOUT") from None
        raise
    renameat2(here / "one" / "d", here / "two" / "d", WHITEOUT)
    for n in range(40):
        _content(here / f"f{n}", f"{n}")
        renameat2(here / f"f{n}", here / "two" / f"f{n}", WHITEOUT | NOREPLACE)
    with fails(errno.EEXIST, "a whiteout's rename onto a file, with NOREPLACE"):
        renameat2(here / "two" / "old", here / "two" / "f1", WHITEOUT | NOREPLACE)
    with fails(errno.EINVAL, "a whiteout and an exchange at once"):
        renameat2(here / "two" / "old", here / "two" / "f1", WHITEOUT | EXCHANGE)
    place.cycle()
    for path in (here / "one" / "f", here / "one" / "d", *(here / f"f{n}" for n in range(40))):
        found = path.lstat()
        check(stat.S_ISCHR(found.st_mode), f"{path.name} is no character device")
        equal((found.st_rdev, found.st_nlink), (0, 1), f"device number and links of {path.name}")
    equal((here / "two" / "old").read_text(), "x", "the file that was moved onto another")
    check((here / "two" / "d").is_dir(), "two/d is no directory")
    equal(
        [(here / "two" / f"f{n}").read_text() for n in range(40)],
        [f"{n}" for n in range(40)],
        "the files that were moved",
    )
    if (here / "one").stat().st_nlink != 1:
        equal((here / "one").stat().st_nlink, 2, "links of one/")
        equal((here / "two").stat().st_nlink, 3, "links of two/")
    (here / "one" / "f").unlink()
    _content(here / "one" / "f", "again")


@test
def an_overlay_can_lie_above(place: Place) -> None:
    """overlayfs with its upper directory here: files are copied up, removed, renamed."""
    place.own()
    here = place.directory
    for name in ("lower", "upper", "work", "merged", "lower/d"):
        (here / name).mkdir()
    for n in range(10):
        _content(here / "lower" / f"f{n}", f"{n}")
    subprocess.run(["modprobe", "-q", "overlay"], check=False)
    options = f"lowerdir={here}/lower,upperdir={here}/upper,workdir={here}/work"
    argv = ["mount", "-t", "overlay", "-o", options, "overlay", str(here / "merged")]
    if subprocess.run(argv, capture_output=True, check=False).returncode != 0:
        raise Skipped("no overlayfs")
    try:
        merged = here / "merged"
        (merged / "f0").unlink()
        (merged / "f1").rename(merged / "d" / "moved")
        _content(merged / "f2", "changed")
        (merged / "d" / "new").mkdir()
        right = ["d", *(f"f{n}" for n in range(2, 10))]
        equal(sorted(os.listdir(merged)), right, "the merged directory")
        equal((merged / "d" / "moved").read_text(), "1", "the file that was moved")
    finally:
        run("umount", str(here / "merged"))
    check(stat.S_ISCHR((here / "upper" / "f0").lstat().st_mode), "upper/f0 is no whiteout")
    equal((here / "lower" / "f2").read_text(), "2", "the lower file")


@test
def hard_links_share_one_inode(place: Place) -> None:
    """Across directories; the last unlink frees it."""
    here = place.directory
    first = _content(here / "first", "x")
    for n in range(50):
        (here / f"d{n}").mkdir()
        (here / f"d{n}" / "link").hardlink_to(first)
    equal(first.stat().st_nlink, 51, "links")
    (here / "d7" / "link").write_text("changed")
    equal(first.read_text(), "changed", "the bytes through another name")
    equal((here / "d49" / "link").stat().st_ino, first.stat().st_ino, "the inode")
    first.unlink()
    for n in range(49):
        (here / f"d{n}" / "link").unlink()
    equal((here / "d49" / "link").read_text(), "changed", "the last link")
    equal((here / "d49" / "link").stat().st_nlink, 1, "links")
    with fails(errno.EPERM, "link to a directory"):
        os.link(here / "d0", here / "d0link")
    with fails(errno.EEXIST, "link onto a name"):
        os.link(here / "d49" / "link", here / "d49" / "link")


@test
def symlinks_hold_any_target(place: Place) -> None:
    """Of every length that the kernel takes, around the length that fits in an inode."""
    here = place.directory
    for length in (1, 59, 60, 126, 127, 128, 129, 255, 1000, 3000, 4031, 4032, 4033, 4095):
        target = ("x" * 99 + "/") * 50
        link = here / f"link{length}"
        link.symlink_to(target[:length])
        equal(os.readlink(link), target[:length], f"a target of {length} bytes")
        equal(link.lstat().st_size, length, "st_size")
    with fails(errno.ENAMETOOLONG, "a target of 4096 bytes"):
        (here / "long").symlink_to("y" * 4096)
    (here / "self").symlink_to("self")
    with fails(errno.ELOOP, "open of a link to itself"):
        os.open(here / "self", os.O_RDONLY)
    _content(here / "file", "through")
    (here / "good").symlink_to("file")
    equal((here / "good").read_text(), "through", "reading through a link")


@test
def the_longest_symlinks_are_kept(place: Place) -> None:
    """Of targets around what a block takes, over a remount."""
    place.own()
    targets = {length: ("x" * 99 + "/") * 40 + "y" * (length - 4000) for length in (4032, 4095)}
    for length, target in targets.items():
        (place.directory / f"{length}").symlink_to(target)
    place.cycle()
    for length, target in targets.items():
        equal(os.readlink(place.directory / f"{length}"), target, f"a target of {length} bytes")


@test
def names_may_be_any_bytes_up_to_255(place: Place) -> None:
    """All but '/' and NUL."""
    here = os.fsencode(place.directory)
    made = {bytes([n]) for n in range(1, 256) if n not in (ord("/"), ord("."))}
    made |= {b"...", b" ", b"\xff" * 255, b"x" * 254, b"-rf", b"\n"}
    for name in made:
        os.close(os.open(here + b"/" + name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    equal(set(os.listdir(here)), made, "the names")
    for name in made:
        os.stat(here + b"/" + name)
    for call in (os.mkdir, os.stat, os.unlink, os.rmdir):
        with fails(errno.ENAMETOOLONG, f"{call.__name__} of a name of 256 bytes"):
            call(here + b"/" + b"x" * 256)
    with fails(errno.EEXIST, "mkdir of '.'"):
        os.mkdir(here + b"/.")
    equal(os.pathconf(here, "PC_NAME_MAX"), 255, "NAME_MAX")


@test
def exclusive_creation_and_removal(place: Place) -> None:
    """The errors of open, mkdir, unlink and rmdir."""
    here = place.directory
    f = _content(here / "f", "x")
    (here / "d" / "below").mkdir(parents=True)
    for code, what, call in (
        (errno.EEXIST, "O_EXCL of a file", lambda: os.open(f, os.O_CREAT | os.O_EXCL)),
        (errno.EEXIST, "mkdir of a file", lambda: os.mkdir(f)),
        (errno.EEXIST, "symlink onto a file", lambda: os.symlink("x", f)),
        (errno.EISDIR, "unlink of a directory", lambda: os.unlink(here / "d")),
        (errno.ENOTDIR, "rmdir of a file", lambda: os.rmdir(f)),
        (errno.ENOTEMPTY, "rmdir of a full directory", lambda: os.rmdir(here / "d")),
        (errno.EINVAL, "rmdir of '.'", lambda: os.rmdir(f"{here}/d/below/.")),
        (errno.ENOENT, "unlink of nothing", lambda: os.unlink(here / "none")),
        (errno.EISDIR, "open of a directory to write", lambda: os.open(here / "d", os.O_WRONLY)),
        (errno.ENOTDIR, "a file in a path", lambda: os.stat(f"{f}/x")),
    ):
        with fails(code, what):
            call()
    (here / "d" / "below").rmdir()
    (here / "d").rmdir()
    equal(os.listdir(here), ["f"], "the directory")


@test
def special_files_keep_their_kind_and_number(place: Place) -> None:
    """FIFO, socket, character and block device."""
    here = place.directory
    device = os.makedev(4000, 1 << 19)
    for name, kind in (
        ("fifo", stat.S_IFIFO),
        ("socket", stat.S_IFSOCK),
        ("char", stat.S_IFCHR),
        ("block", stat.S_IFBLK),
    ):
        os.mknod(here / name, kind | 0o640, device)
        found = (here / name).lstat()
        equal(stat.S_IFMT(found.st_mode), kind, f"the kind of {name}")
        if name in ("char", "block"):
            equal(found.st_rdev, device, f"the number of {name}")
    reader = os.open(here / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(here / "fifo", os.O_WRONLY)
    os.write(writer, b"through")
    equal(os.read(reader, 10), b"through", "the FIFO")
    os.close(reader)
    os.close(writer)


@test
def a_removed_directory_takes_no_names(place: Place) -> None:
    """Also while it is somebody's working directory."""
    gone = place.directory / "gone"
    gone.mkdir()
    fd = os.open(gone, os.O_RDONLY)
    gone.rmdir()
    with fails(errno.ENOENT, "creation in a removed directory"):
        os.open("x", os.O_CREAT | os.O_WRONLY, dir_fd=fd)
    with fails(errno.ENOENT, "mkdir in a removed directory"):
        os.mkdir("x", dir_fd=fd)
    equal(os.fstat(fd).st_nlink, 0, "links of a removed directory")
    os.close(fd)


@test
def attributes_change_as_asked(place: Place) -> None:
    """Mode, owner, times; the set-group-ID bit of a directory is inherited."""
    here = place.directory
    f = _content(here / "f", "x")
    os.chmod(f, 0o4751)
    equal(stat.S_IMODE(f.stat().st_mode), 0o4751, "the mode")
    os.chown(f, 1000, 2000)
    found = f.stat()
    equal((found.st_uid, found.st_gid), (1000, 2000), "the owner")
    os.utime(f, ns=(-1_500_000_000, 4_000_000_000_123_456_789))
    found = f.stat()
    equal(found.st_atime_ns, -1_500_000_000, "a time before 1970")
    equal(found.st_mtime_ns, 4_000_000_000_123_456_789, "a time after 2038, in nanoseconds")
    (here / "d").mkdir()
    os.chown(here / "d", 0, 77)
    os.chmod(here / "d", 0o2755)
    _content(here / "d" / "f", "x")
    (here / "d" / "sub").mkdir()
    equal((here / "d" / "f").stat().st_gid, 77, "the inherited group")
    equal((here / "d" / "sub").stat().st_mode & 0o2000, 0o2000, "the inherited bit")


@test
def changes_move_the_times(place: Place) -> None:
    """Which operation updates mtime and ctime of what."""
    here = place.directory
    d = here / "d"
    d.mkdir()
    f = _content(d / "f", "x")
    old = 1_000_000_000

    def moved(path: Path) -> bool:
        return path.stat().st_mtime_ns > 2 * old

    for what, change, file_moves, directory_moves in (
        ("write", lambda: f.write_text("yy"), True, False),
        ("truncate", lambda: os.truncate(f, 1), True, False),
        ("chmod", lambda: f.chmod(0o600), False, False),
        ("link", lambda: os.link(f, d / "g"), False, True),
        ("unlink", lambda: (d / "g").unlink(), False, True),
        ("mkdir", lambda: (d / "s").mkdir(), False, True),
        ("rename", lambda: (d / "s").rename(d / "t"), False, True),
        ("rmdir", lambda: (d / "t").rmdir(), False, True),
        ("symlink", lambda: (d / "l").symlink_to("x"), False, True),
        ("read", lambda: f.read_text(), False, False),
    ):
        for path in (f, d):
            os.utime(path, ns=(old, old))
        ctime = f.stat().st_ctime_ns
        change()
        equal(moved(f), file_moves, f"{what} changes the file's mtime")
        equal(moved(d), directory_moves, f"{what} changes the directory's mtime")
        check(f.stat().st_ctime_ns >= ctime, "ctime goes back")


@test
def each_change_that_is_looked_at_has_a_ctime_of_its_own(place: Place) -> None:
    """Since 6.13: also where they follow each other within a tick. For NFS, and backups."""
    release = tuple(int(word) for word in os.uname().release.split(".")[:2])
    if release < (6, 13):
        raise Skipped("times are those of ticks before 6.13")
    d = place.directory / "d"
    d.mkdir()
    f = _content(d / "f", "x")
    names = [d / str(number) for number in range(50)]
    changes: tuple[tuple[str, Path, Callable[[Path], object]], ...] = (
        ("link", f, lambda name: os.link(f, name)),
        ("unlink", f, lambda name: name.unlink()),
        ("create", d, lambda name: name.touch()),
        ("chmod", f, lambda _: f.chmod(0o600)),
        ("write", f, lambda _: os.write(fd, b"y")),
        ("truncate", f, lambda name: os.truncate(f, 1000 + int(name.name))),
        ("setxattr", f, lambda name: os.setxattr(f, "user.x", name.name.encode())),
    )
    fd = os.open(f, os.O_WRONLY)
    for what, path, change in changes:
        for name in names:
            before = path.stat().st_ctime_ns
            change(name)
            check(path.stat().st_ctime_ns > before, f"{what} leaves the ctime that was seen")
    os.close(fd)


@test
def permissions_bind_other_users(place: Place) -> None:
    """As user 65534."""
    if os.geteuid() != 0:
        raise Skipped("needs root")
    here = place.directory
    secret = _content(here / "secret", "x")
    secret.chmod(0o600)
    (here / "closed").mkdir(mode=0o700)
    os.seteuid(65534)
    try:
        if not os.access(here, os.X_OK, effective_ids=True):
            raise Skipped("no way to the directory for other users")
        for what, call in (
            ("read of another's file", lambda: os.open(secret, os.O_RDONLY)),
            ("creation in another's directory", lambda: os.mkdir(here / "x")),
            ("unlink in another's directory", lambda: os.unlink(secret)),
            ("a closed directory", lambda: os.listdir(here / "closed")),
        ):
            with fails(errno.EACCES, what):
                call()
        with fails(errno.EPERM, "chmod of another's file"):
            os.chmod(secret, 0o666)
    finally:
        os.seteuid(0)
