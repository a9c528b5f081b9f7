# SPDX-License-Identifier: GPL-2.0-only
"""Where a command is to write: looked at while its command line is read, before anything is done.

The functions are callbacks of options. Each returns its path, and raises FscaleError where it is
certain already that nothing can be written there.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

import typer

from fscale.model.errors import FscaleError

TERMINAL = Path("-")


def file_to_write(param: typer.CallbackParam, path: Path | None) -> Path | None:
    """An option's file; `-` is the terminal."""
    if path is not None and path != TERMINAL and (reason := _unwritable(path, file=True)):
        raise FscaleError(f"{param.opts[0]} {path}: {reason}; give a file that you may write")
    return path


def directory_to_write(param: typer.CallbackParam, path: Path | None) -> Path | None:
    """An option's directory, which may not be there yet, nor its parents."""
    if path is not None and (reason := _unwritable(path, file=False)):
        raise FscaleError(f"{param.opts[0]} {path}: {reason}; give a directory that you may write")
    return path


def refuse_same(outputs: Mapping[str, Path | None]) -> None:
    """FscaleError where two outputs (option -> path) would be written over, or into, each other."""
    named: dict[Path, str] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        place = path if path == TERMINAL else path.resolve()
        if place in named:
            raise FscaleError(f"{named[place]} and {option} both name {path}; give each its own")
        named[place] = option


def _unwritable(path: Path, *, file: bool) -> str | None:
    """Why nothing can be written there; None where it may be."""
    if "\0" in str(path):
        return "a name has no NUL"
    try:
        if path.is_symlink() and not path.exists():
            return "it is a link to what does not exist"
        if not path.exists():
            return _unmakeable(path.absolute().parent, deep=not file)
        return _no_file(path) if file else _no_directory(path)
    except OSError as error:
        return error.strerror


def _no_file(path: Path) -> str | None:
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        return "it is a directory"
    if path.is_symlink() and not path.is_relative_to("/dev"):
        return "it is a link; name the file"  # as write_named says
    if stat.S_ISCHR(mode):
        return _refuses(path)
    # What replaces a file may have the room of the old one.
    return None if os.access(path, os.W_OK) else "you may not write it"


def _no_directory(path: Path) -> str | None:
    if not path.is_dir():
        return "it is not a directory"
    return _full(path) if os.access(path, os.W_OK | os.X_OK) else "you may not write to it"


def _unmakeable(parent: Path, *, deep: bool) -> str | None:
    """Why there can be nothing new in a directory, which itself may be new where it is `deep`."""
    while deep and not os.path.lexists(parent):
        parent = parent.parent
    if not parent.exists():
        return f"{parent} does not exist"
    if not parent.is_dir():
        return f"{parent} is not a directory"
    if not os.access(parent, os.W_OK | os.X_OK):
        return f"you may not write to {parent}"
    return _full(parent)


def _full(path: Path) -> str | None:
    room = os.statvfs(path)
    blocks = room.f_bfree if os.geteuid() == 0 else room.f_bavail
    # A file system that counts no blocks or no inodes has 0 of them in all.
    full = (room.f_blocks and not blocks) or (room.f_files and not room.f_ffree)
    return "its file system is full" if full else None


def _refuses(device: Path) -> str | None:
    """Why a character device takes not even nothing: /dev/full is out of space."""
    fd = os.open(device, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        os.write(fd, b"")
    except OSError as error:
        return error.strerror
    finally:
        os.close(fd)
    return None
