# SPDX-License-Identifier: GPL-2.0-only
"""A mount namespace of our own: what is mounted in it vanishes with the last process in it."""

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

from apps.base import AppError

_CLONE_NEWNS = 0x00020000
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_PLACES = ("/run/lock", "/var/tmp", "/mnt", "/tmp")  # exist, and every user may enter them


def _check(result: int, what: str) -> None:
    if result:
        raise AppError(f"{what}: {os.strerror(ctypes.get_errno())}")


def private_tree(dirs: Sequence[Path], busy: Sequence[Path]) -> tuple[Path, list[Path]]:
    """Make a tmpfs that every user can enter, with `dirs` bound into it.

    A daemon that runs as a user of its own reaches them there wherever they really are, and its
    logs are neither on the file system under test nor on a disk. Only this process and its
    children see it; it covers a directory that holds none of `busy`. Needs root. Returns the
    tmpfs and the bound directories. Raises AppError.
    """
    libc = ctypes.CDLL(None, use_errno=True)

    def mount(source: str, target: str, kind: str, flags: int, data: str) -> None:
        result = libc.mount(
            source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode()
        )
        _check(result, f"mount of {source} on {target}")

    held = [path.resolve() for path in (*dirs, *busy)]
    for place in _PLACES:
        if Path(place).is_dir() and not any(path.is_relative_to(place) for path in held):
            break
    else:
        raise AppError(f"nothing can be mounted on any of {', '.join(_PLACES)}")
    _check(libc.unshare(_CLONE_NEWNS), "a mount namespace")
    mount("none", "/", "", _MS_REC | _MS_PRIVATE, "")
    mount("fscale", place, "tmpfs", 0, "mode=0711,size=25%")
    bound = []
    for number, path in enumerate(dirs):
        target = Path(place) / f"fs{number}"
        target.mkdir()
        mount(str(path), str(target), "", _MS_BIND, "")
        target.chmod(0o711)
        bound.append(target)
    return Path(place), bound
