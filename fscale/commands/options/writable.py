# SPDX-License-Identifier: GPL-2.0-only
"""Checks where a command will write, while its command line is parsed and before it does anything.

The functions are callbacks of options. Each returns its path, and raises FscaleError if the path
certainly cannot be written.
"""

import itertools
import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path

import typer

from fscale.commands.options.given import is_given
from fscale.commands.options.helptext import NOTE
from fscale.model.errors import FscaleError

TERMINAL = Path("-")


def file_to_write(param: typer.CallbackParam, path: Path | None) -> Path | None:
    """Check the output file of an option; `-` is the terminal."""
    if path is not None and path != TERMINAL and (reason := _unwritable(path, file=True)):
        raise FscaleError(f"{param.opts[0]} {path}: {reason}; give another file")
    return path


def directory_to_write(param: typer.CallbackParam, path: Path | None) -> Path | None:
    """Check the output directory of an option; it and its parents need not exist yet."""
    if path is not None and (reason := _unwritable(path, file=False)):
        raise FscaleError(f"{param.opts[0]} {path}: {reason}; give another directory")
    return path


def results_directory(context: typer.Context, param: typer.CallbackParam, path: Path) -> Path:
    """Check the results directory; fill in the date and the suite of the default, and note it."""
    if not is_given(context, str(param.name)) and not context.resilient_parsing:
        suite = Path(str(context.params.get("suite"))).stem
        name = path.name.replace("DATE", time.strftime("%Y%m%d-%H%M%S")).replace("SUITE", suite)
        path = unused(path.with_name(name))
        context.meta[NOTE] = f"--output is {path}; give that to resume this run"
    directory_to_write(param, path)
    return path


def unused(path: Path) -> Path:
    """Return a path that nothing has; a name by the time may return when a clock is set back."""
    named = (path.with_name(f"{path.name}-{n}") for n in itertools.count(2))
    return path if not path.exists() else next(other for other in named if not other.exists())


def refuse_same(outputs: Mapping[str, Path | None]) -> None:
    """Refuse outputs (option -> path) of which two would overwrite each other.

    Raises:
        FscaleError: two options name the same path.
    """
    named: dict[Path, str] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        place = path if path == TERMINAL else path.resolve()
        if place in named:
            raise FscaleError(
                f"{named[place]} and {option} both name {path}; give each another path"
            )
        named[place] = option


def _unwritable(path: Path, *, file: bool) -> str | None:
    """Return why a path cannot be written; None if it probably can."""
    if "\0" in str(path):
        return "its name contains a NUL character"
    try:
        if path.is_symlink() and not path.exists():
            return "it is a link whose target does not exist"
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
        return "it is a link; name the file that it points to"  # as write_named says
    if stat.S_ISCHR(mode):
        return _refuses(path)
    # The space of the file is not checked: overwriting it frees the space of the old content.
    return None if os.access(path, os.W_OK) else "you may not write it"


def _no_directory(path: Path) -> str | None:
    if not path.is_dir():
        return "it is not a directory"
    return _full(path) if os.access(path, os.W_OK | os.X_OK) else "you may not write to it"


def _unmakeable(parent: Path, *, deep: bool) -> str | None:
    """Return why nothing can be created in `parent`; None if something can.

    With `deep`, missing parents would be created too.
    """
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
    # A file system that does not count blocks or inodes reports a total of 0.
    full = (room.f_blocks and not blocks) or (room.f_files and not room.f_ffree)
    return "its file system is full" if full else None


def _refuses(device: Path) -> str | None:
    """Return why a character device refuses even an empty write, as /dev/full does; else None."""
    fd = os.open(device, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        os.write(fd, b"")
    except OSError as error:
        return error.strerror
    finally:
        os.close(fd)
    return None
