# SPDX-License-Identifier: GPL-2.0-only
"""Reads what a process prints while it runs, up to a limit."""

import threading
from typing import IO

from fscale.model.files import printable

MOST_TEXT = 64 << 10
_PIECE = 1 << 16


class Tail:
    """The last 64 KiB of a pipe, which is read to its end in a thread."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._end = b""
        # A join of the thread that a signal interrupts marks it as ended in Python 3.11.
        self._ended = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while piece := self._pipe.read1(_PIECE):  # type: ignore[attr-defined]
            self._end = (self._end + piece)[-MOST_TEXT:]
        self._ended.set()

    def text(self) -> str:
        """Wait for the end of the pipe, and return the text without control characters."""
        self._ended.wait()
        return printable(self._end.decode(errors="replace")).strip()


class Head:
    """The first bytes of a pipe, read in a thread, so that a signal cannot lose any of them."""

    def __init__(self, pipe: IO[bytes], most: int) -> None:
        self._pipe = pipe
        self._most = most
        self._content = b""
        self._ended = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with self._pipe:
            self._content = self._pipe.read(self._most + 1)
        self._ended.set()

    def content(self) -> bytes:
        """Wait for the end, and return at most one byte more than wanted; the pipe is closed."""
        self._ended.wait()
        return self._content
