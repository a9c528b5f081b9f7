# SPDX-License-Identifier: GPL-2.0-only
"""A private mount namespace: its mounts disappear with the last process in it."""

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

from fscale.apps.base import AppError

_CLONE_NEWNS = 0x00020000
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_PLACES = ("/run/lock", "/var/tmp", "/mnt", "/tmp")  # exist, and every user may enter them
_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result:
        raise AppError(f"{what}: {os.strerror(ctypes.get_errno())}")


def _mount(source: str, target: str, kind: str, flags: int, data: str) -> None:
    result = _libc.mount(
        source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode()
    )
    _check(result, f"mount of {source} on {target}")


def private_mounts() -> None:
    """Enter a private mount namespace for this process and its children. Needs root.

    Raises AppError.
    """
    _check(_libc.unshare(_CLONE_NEWNS), "a mount namespace")
    # Propagation is changed at a mount's root, and in a chroot "/" need not be one: the mount that
    # holds it cannot be named there. So this is done from the namespace's own root, where setns(2)
    # goes, and the root and the working directory are as before then.
    root, here = (os.open(name, os.O_PATH | os.O_DIRECTORY) for name in ("/", "."))
    process = os.pidfd_open(os.getpid())
    try:
        _check(_libc.setns(process, _CLONE_NEWNS), "the root of a mount namespace")
        _mount("none", "/", "", _MS_REC | _MS_PRIVATE, "")
    finally:
        os.fchdir(root)
        os.chroot(".")
        os.fchdir(here)
        for descriptor in (root, here, process):
            os.close(descriptor)


def private_tree(dirs: Sequence[Path], busy: Sequence[Path]) -> tuple[Path, list[Path]]:
    """Make a tmpfs that every user can enter, with `dirs` bound into it.

    A daemon with its own user can reach the directories there, wherever they really are, and its
    logs are neither on the file system under test nor on a disk. Only this process and its children
    see it; it is mounted on a directory that contains none of `busy`. Needs root. Returns the tmpfs
    and the bound directories. Raises AppError.
    """
    held = [path.resolve() for path in (*dirs, *busy)]
    for place in _PLACES:
        if Path(place).is_dir() and not any(path.is_relative_to(place) for path in held):
            break
    else:
        raise AppError(
            f"cannot mount a tmpfs on any of {', '.join(_PLACES)}: each has a directory in use"
        )
    private_mounts()
    _mount("fscale", place, "tmpfs", 0, "mode=0711,size=25%")
    bound = []
    for number, path in enumerate(dirs):
        target = Path(place) / f"fs{number}"
        target.mkdir()
        _mount(str(path), str(target), "", _MS_BIND, "")
        target.chmod(0o711)
        bound.append(target)
    return Path(place), bound
