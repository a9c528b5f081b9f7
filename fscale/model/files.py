# SPDX-License-Identifier: GPL-2.0-only
"""Safe access to the files of a results directory, which may come from a stranger.

Links below the directory are never followed, reads are bounded, and a write creates a new file and
renames it over the old one.
"""

import contextlib
import errno
import json
import os
import re
import shutil
import stat
import time
import tomllib
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

MAX_BYTES = 16 << 20
MAX_UNPACKED = 256 << 20  # an on-CPU profile has up to 200,000 samples of about 1 KiB
MAX_RATIO = 100  # unpacked to packed size; profiles have 5 to 15

_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Folder:
    """A directory that the user named, and files in it by their names relative to it.

    The path of the directory itself may contain links, because the user chose it.

    Raises:
        OSError: in all methods, if a file is missing, is a link, or is not of the expected kind;
            its `strerror` is a text for the user.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, name: str, most: int = MAX_BYTES) -> bytes:
        """Return the content of a regular file of at most `most` bytes."""
        with self._parent(name) as (directory, last):
            # Without O_NONBLOCK, opening a FIFO that nobody writes to would block forever.
            fd = _open(last, os.O_RDONLY | os.O_NONBLOCK, directory)
            with os.fdopen(fd, "rb") as file:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    raise OSError(errno.EINVAL, "it is not a regular file", name)
                content = file.read(most + 1)
        if len(content) > most:
            raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MiB", name)
        return content

    def exists(self, name: str) -> bool:
        """Return whether something of that name exists; a link counts, whatever its target."""
        try:
            with self._parent(name) as (directory, last):
                os.stat(last, dir_fd=directory, follow_symlinks=False)
        except OSError:
            return False
        return True

    def names(self, directory: str, suffix: str) -> list[str]:
        """Return the sorted names in a directory that end with `suffix`; none without it."""
        try:
            with self._parent(f"{directory}/.") as (fd, _):
                return sorted(p.name for p in os.scandir(fd) if p.name.endswith(suffix))
        except FileNotFoundError:
            return []

    def write(self, name: str, content: str | bytes, *, sync: bool = False) -> Path:
        """Write a file, creating its parent directories, and return its path.

        A reader sees either the old or the new content; with `sync`, also after a crash.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with self._parent(name, make=True) as (directory, last):
            temporary = f".{last}.tmp"
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=directory)
            fd = _open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, directory)
            try:
                with os.fdopen(fd, "wb") as file:
                    file.write(content.encode() if isinstance(content, str) else content)
                    if sync:
                        file.flush()
                        os.fsync(fd)
                os.rename(temporary, last, src_dir_fd=directory, dst_dir_fd=directory)
            except OSError as error:
                os.unlink(temporary, dir_fd=directory)
                raise OSError(error.errno, error.strerror, str(self.path / name)) from None
            if sync:
                os.fsync(directory)
        return self.path / name

    def fresh(self, name: str) -> Path:
        """Create an empty directory, removing whatever has that name, and return its path."""
        self.path.mkdir(parents=True, exist_ok=True)
        with self._parent(name, make=True) as (directory, last):
            with contextlib.suppress(FileNotFoundError):
                there = os.stat(last, dir_fd=directory, follow_symlinks=False)
                if stat.S_ISDIR(there.st_mode):
                    shutil.rmtree(last, dir_fd=directory)
                else:
                    os.unlink(last, dir_fd=directory)
            os.mkdir(last, 0o755, dir_fd=directory)
        return self.path / name

    @contextlib.contextmanager
    def _parent(self, name: str, make: bool = False) -> Iterator[tuple[int, str]]:
        """Yield a descriptor of the directory of `name`, and the last part of `name`."""
        *parents, last = name.split("/")
        if not last or PurePosixPath(name).is_absolute() or ".." in (*parents, last):
            raise OSError(errno.EPERM, "it leads out of the results directory", name)
        fd = os.open(self.path, _DIRECTORY)
        try:
            for part in parents:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, 0o755, dir_fd=fd)
                inner = _open(part, _DIRECTORY, fd)
                os.close(fd)
                fd = inner
            yield fd, last
        finally:
            os.close(fd)


def _open(name: str, flags: int, directory: int) -> int:
    try:
        return os.open(name, flags | _FLAGS, 0o644, dir_fd=directory)
    except ValueError:  # a NUL, or a surrogate
        raise OSError(errno.EINVAL, "it is not a valid file name", name) from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            there = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if stat.S_ISLNK(there.st_mode):
                why = "it is a link; links in a results directory are not followed"
                raise OSError(errno.ELOOP, why, name) from None
        raise


def remove_old(directory: Path, days: float) -> None:
    """Remove the files and directories in a directory that did not change for so many days.

    Hidden ones stay: they are locks, or are being made.
    """
    oldest = time.time() - days * 86400
    for path in directory.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another process removes it
            if path.name.startswith(".") or path.stat().st_mtime >= oldest:
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()


def write_named(path: Path, content: str | bytes) -> None:
    """Write a file that the user named; text is encoded as UTF-8.

    Links below /dev, such as `/dev/stdout`, are followed.

    Raises:
        OSError: the last part of the path is a link, or the file cannot be written.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    if not path.is_relative_to("/dev"):
        flags |= os.O_NOFOLLOW
    try:
        fd = os.open(path, flags, 0o644)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(
                error.errno, "it is a link; name the file that it points to", str(path)
            ) from None
        raise
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode(errors="replace"))
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def unpack(packed: bytes) -> bytes:
    """Return the content of a gzip file.

    Raises:
        ValueError: it is damaged, or larger than any file that fscale writes.
    """
    most = min(MAX_UNPACKED, MAX_RATIO * len(packed) + (1 << 20))
    unpacker = zlib.decompressobj(wbits=31)
    try:
        content = unpacker.decompress(packed, most + 1)
    except zlib.error as error:
        raise ValueError(f"it is damaged: {error}") from None
    if len(content) > most:
        raise ValueError(f"it unpacks to more than {most >> 20} MiB")
    if not unpacker.eof:
        raise ValueError("it is truncated")
    return content


def parse_json(text: bytes) -> Any:
    """Parse JSON text.

    Raises:
        ValueError: it is not JSON, or nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML text.

    Raises:
        ValueError: it is not TOML, nested too deeply, or has a number that is too long.
    """
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def is_text(name: str) -> bool:
    """Return whether a name can be written as UTF-8, as results are.

    The bytes of a name that is not UTF-8 are surrogates.
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def strip_escapes(text: str) -> str:
    """Remove terminal escapes and carriage returns, as a serial console prints them."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1bc|\r", "", text)


def printable(text: str) -> str:
    """Replace control and other unprintable characters by `?`, except newlines and tabs."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)
