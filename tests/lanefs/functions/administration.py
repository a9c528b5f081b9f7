# SPDX-License-Identifier: GPL-2.0-only
"""Labels, and mounts that leave a file system as a crash has left it."""

import contextlib
import errno
import fcntl
import hashlib
import os
import subprocess
from pathlib import Path

from tests.lanefs.blocks import read_layout
from tests.lanefs.device import kernel_messages
from tests.lanefs.functions.faulty import failing
from tests.lanefs.functions.harness import (
    Place,
    called,
    check,
    equal,
    fails,
    libc,
    long_test,
    opened,
    optional_elsewhere,
    run,
    test,
)
from tests.lanefs.functions.loop import fsck, loop_device, mounted
from tests.lanefs.functions.shutdown import LOG, NOW, shutdown
from tests.lanefs.functions.xattrs import as_nobody

_GETLABEL, _SETLABEL = 0x81009431, 0x41009432
_RDONLY = 1
# System calls and commands of linux/mount.h.
_FSOPEN, _FSCONFIG = 430, 431
_SET_FLAG, _SET_STRING, _CREATE = 0, 1, 6
_LENGTH = {"lanefs": 32, "ext4": 16, "xfs": 12, "btrfs": 255}


def _label(place: Place, path: Path) -> bytes:
    with opened(path) as fd:
        with optional_elsewhere(place, "labels"):
            found = fcntl.ioctl(fd, _GETLABEL, bytes(256))
        equal(found.rstrip(b"\0"), found.partition(b"\0")[0], "a label, and zeros")
        return found.partition(b"\0")[0]


def _set_label(place: Place, path: Path, label: bytes) -> None:
    with opened(path) as fd, optional_elsewhere(place, "setting labels"):
        fcntl.ioctl(fd, _SETLABEL, label.ljust(256, b"\0"))


def _digest(path: Path) -> str:
    """Of what a sparse file holds, and where."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        end, hole = os.fstat(file.fileno()).st_size, 0
        while hole < end:
            try:
                data = os.lseek(file.fileno(), hole, os.SEEK_DATA)
            except OSError:
                break
            hole = os.lseek(file.fileno(), data, os.SEEK_HOLE)
            digest.update(b"%d %d:" % (data, hole) + os.pread(file.fileno(), hole - data, data))
    return digest.hexdigest()


def _refused(*argv: str) -> str:
    """What a command says that must fail."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    check(done.returncode != 0, f"{' '.join(argv)} succeeds")
    return done.stderr


@long_test
def a_label_is_kept(place: Place) -> None:
    """Over remounts, and over what is as good as a crash; of any length that fits."""
    longest = _LENGTH.get(place.filesystem, 16)
    with loop_device(place, 320) as (device, _):
        with mounted(place, device) as mount:
            _label(place, mount)
            for label in (b"", b"x", "größer".encode(), b"l" * longest, b"name"):
                _set_label(place, mount, label)
                equal(_label(place, mount), label, "the label that was set")
            fd = os.open(mount, os.O_RDONLY)
            with fails(errno.EINVAL, "a label that is too long"):
                fcntl.ioctl(fd, _SETLABEL, (b"l" * (longest + 1)).ljust(256, b"\0"))
            os.close(fd)

            def try_it() -> None:
                equal(_label(place, mount), b"name", "the label for all to read")
                with fails(errno.EPERM, "a label set without privileges"):
                    _set_label(place, mount, b"mine")

            as_nobody(try_it)
        fsck(place, device)
        with mounted(place, device, "ro") as mount:
            equal(_label(place, mount), b"name", "after a mount")
            with fails(errno.EROFS, "a label set on a read-only mount"):
                _set_label(place, mount, b"other")
        with mounted(place, device) as mount:
            (mount / "f").write_text("x")
            os.sync()
            _set_label(place, mount, b"before the crash")
            shutdown(place, mount, NOW)
        with mounted(place, device) as mount:
            # ext4 has it in its journal only.
            if place.filesystem == "lanefs":
                equal(_label(place, mount), b"before the crash", "after a crash")
            equal((mount / "f").read_text(), "x", "what was synced")
        fsck(place, device)


@test
def a_label_is_what_block_0_has(place: Place) -> None:
    """Where it or one of its copies cannot be written; a mount then finds the same label."""
    place.own_lanefs("others have their superblocks elsewhere")
    with failing(place, 64) as disk:
        copy = read_layout(Path(disk.path)).base
        for block, label in ((copy, b"new"), (0, b"old")):
            with mounted(place, disk.path) as mount:
                _set_label(place, mount, b"old")
                disk.fail([block])
                with fails(errno.EIO, f"a label set without block {block}"):
                    _set_label(place, mount, b"new")
                equal(_label(place, mount), label, f"the label without block {block}")
                disk.mend()
            with mounted(place, disk.path) as mount:
                equal(_label(place, mount), label, "after a mount")


def _refused_with_messages(kind: str, device: str) -> list[str]:
    """What a mount that gives EROFS tells mount(8), which else prints words of its own."""
    context = called(libc.syscall(_FSOPEN, kind.encode(), 0), "fsopen")
    try:
        for command, key, value in (
            (_SET_STRING, b"source", device.encode()),
            (_SET_FLAG, b"ro", None),
        ):
            called(libc.syscall(_FSCONFIG, context, command, key, value, 0), "fsconfig")
        with fails(errno.EROFS, "a mount that cannot recover"):
            called(libc.syscall(_FSCONFIG, context, _CREATE, None, None, 0), "fsconfig")
        said = []
        with contextlib.suppress(OSError):
            while message := os.read(context, 4096):
                said.append(message.decode())
        return said
    finally:
        os.close(context)


@test
def a_protected_device_that_needs_recovery_is_refused_in_the_words_of_mount(place: Place) -> None:
    """With EROFS and no text of ours, which would take their place; the kernel's log has it."""
    place.own_lanefs("others recover, or refuse, in their own way")
    with loop_device(place, 100) as (device, _):
        with mounted(place, device) as mount:
            (mount / "f").touch()
            shutdown(place, mount, LOG)
        run("blockdev", "--setro", device)
        try:
            with kernel_messages() as messages:
                equal(_refused_with_messages("lanefs", device), [], "what mount(8) is told")
                said = messages()
        finally:
            run("blockdev", "--setrw", device)
        check("mount -o ro,norecovery skips it" in said, f"the log of the kernel: {said}")


@long_test
def norecovery_leaves_the_device_as_it_is(place: Place) -> None:
    """Read-only, to the end of the mount, also of a read-only device; the next mount recovers."""
    with loop_device(place, 320) as (device, backing):
        point = place.directory / "m"
        with mounted(place, device) as mount:
            (mount / "old").write_text("old")
            run("sync", "-f", str(mount))
            (mount / "new").write_text("new")
            shutdown(place, mount, LOG)
        mount_it = ("mount", "-t", place.filesystem)
        digest = _digest(backing)
        if place.filesystem == "lanefs":
            said = _refused(*mount_it, "-o", "norecovery", device, str(point))
            equal(_digest(backing), digest, f"the device after a refused mount ({said})")
        run("blockdev", "--setro", device)
        try:
            _refused(*mount_it, "-o", "ro", device, str(point))
            with fails(errno.EROFS, "a mount that cannot recover"):
                argv = (device, str(point), place.filesystem)
                called(libc.mount(*(word.encode() for word in argv), _RDONLY, None), "mount")
            for device_writable in (False, True):
                if device_writable:
                    run("blockdev", "--setrw", device)
                with mounted(place, device, "ro", "norecovery") as mount:
                    os.listdir(mount)
                    with fails(errno.EROFS, "a creation"):
                        (mount / "n").touch()
                    (line,) = (
                        line
                        for line in Path("/proc/mounts").read_text().splitlines()
                        if line.split()[1] == str(mount)
                    )
                    check("norecovery" in line.split()[3].split(","), f"options: {line}")
                    if place.filesystem == "lanefs":
                        _refused("mount", "-o", "remount,rw", str(mount))
                        run("mount", "-o", "remount,ro,norecovery", str(mount))
                equal(_digest(backing), digest, "the device after a mount that wrote nothing")
        finally:
            run("blockdev", "--setrw", device)
        with mounted(place, device) as mount:
            equal((mount / "old").read_text(), "old", "what was synced")
            check((mount / "new").exists(), "what the log had is not there")
        fsck(place, device)
        with mounted(place, device, "ro", "norecovery") as mount:
            equal((mount / "old").read_text(), "old", "with nothing to recover")
