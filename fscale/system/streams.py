# SPDX-License-Identifier: GPL-2.0-only
"""Standard output and standard error that tolerate closed pipes and other locales."""

import errno
import io
import os
import select
import stat
import sys
from typing import Any, TextIO


class _Stream(io.FileIO):
    """A standard stream. Once its reader has gone, output is dropped and the command continues.

    The reader is that of a pipe, or a terminal that was closed (EIO).

    The exit code then still shows the result: `compare | head` of a regression is 1, `show | head`
    is 0. Any other write error is raised once, with the stream's name; later output is dropped, so
    that the interpreter does not fail again while it exits.
    """

    def __init__(self, fd: int, title: str) -> None:
        super().__init__(fd, "w", closefd=False)
        self._title = title

    def write(self, data: Any) -> int:
        """See FileIO."""
        try:
            while (written := super().write(data)) is None:  # the caller made it non-blocking
                select.select([], [self.fileno()], [])
            return written
        except OSError as error:
            device = stat.S_ISCHR(os.fstat(self.fileno()).st_mode)
            gone = error.errno == errno.EPIPE or (error.errno == errno.EIO and device)
            null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
            os.dup2(null, self.fileno())
            os.close(null)
            if not gone and self.fileno() != 2:
                raise OSError(error.errno, error.strerror, self._title) from None
            return memoryview(data).nbytes


def take_over() -> None:
    """Replace the standard streams of this process by the tolerant ones.

    A character that the locale lacks is written as a Python escape sequence. A closed stream
    becomes /dev/null, so that no file opened later gets its descriptor.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # uses the lowest free descriptor
    sys.stdout = _replaced(sys.stdout, 1, "standard output")
    sys.stderr = _replaced(sys.stderr, 2, "standard error")


def _replaced(stream: TextIO | None, fd: int, title: str) -> TextIO:
    if stream is None:
        return io.TextIOWrapper(_buffered(fd, title), encoding="utf-8", errors="backslashreplace")
    if type(stream) is not io.TextIOWrapper or stream.fileno() != fd:
        return stream  # the stream is captured, as in tests
    stream.flush()
    return io.TextIOWrapper(
        _buffered(fd, title),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _buffered(fd: int, title: str) -> io.BufferedWriter:
    return io.BufferedWriter(_Stream(fd, title))
