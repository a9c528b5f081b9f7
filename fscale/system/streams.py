# SPDX-License-Identifier: GPL-2.0-only
"""Standard output and standard error, whatever is at their other ends."""

import errno
import io
import os
import sys
from typing import Any, TextIO


class _Stream(io.FileIO):
    """A standard stream. What nobody reads any more is dropped, and the command goes on.

    Its exit code is then that of its result: `compare | head` of a regression is 1, `show | head`
    is 0. Another failure is raised once, with the stream's name; afterwards all is dropped, so
    that nothing fails again while the interpreter ends.
    """

    def __init__(self, fd: int, title: str) -> None:
        super().__init__(fd, "w", closefd=False)
        self._title = title

    def write(self, data: Any) -> int:
        """See FileIO."""
        try:
            return super().write(data)
        except OSError as error:
            null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
            os.dup2(null, self.fileno())
            os.close(null)
            if error.errno != errno.EPIPE and self.fileno() != 2:
                raise OSError(error.errno, error.strerror, self._title) from None
            return memoryview(data).nbytes


def take_over() -> None:
    """Replace the standard streams of this process by such as are described above.

    A character that the locale does not have is written as an escape sequence of Python. A stream
    that is closed becomes /dev/null, lest a file that is opened later gets its number.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    sys.stdout = _replaced(sys.stdout, 1, "standard output")
    sys.stderr = _replaced(sys.stderr, 2, "standard error")


def _replaced(stream: TextIO | None, fd: int, title: str) -> TextIO:
    if stream is None:
        return io.TextIOWrapper(_buffered(fd, title), encoding="utf-8", errors="backslashreplace")
    if type(stream) is not io.TextIOWrapper or stream.fileno() != fd:
        return stream  # somebody captures it
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
