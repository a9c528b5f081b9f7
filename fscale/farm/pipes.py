# SPDX-License-Identifier: GPL-2.0-only
"""Pipes of a process that runs: reads what it prints, up to a limit, and tells it to go on."""

import contextlib
import threading
from typing import IO

from fscale.model.files import printable, strip_escapes

MOST_TEXT = 64 << 10
BEAT_SECONDS = 10.0
_PIECE = 1 << 16


class Tail:
    """The last bytes of a pipe, which is read to its end in a thread."""

    def __init__(self, pipe: IO[bytes], most: int = MOST_TEXT) -> None:
        self._pipe = pipe
        self._most = most
        self._end = b""
        # A join of the thread that a signal interrupts marks it as ended in Python 3.11.
        self._ended = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while piece := self._pipe.read1(_PIECE):  # type: ignore[attr-defined]
            self._end = (self._end + piece)[-self._most :]
        self._ended.set()

    def text(self, seconds: float | None = None) -> str:
        """Wait for the end of the pipe, and return the text without control characters.

        `seconds`: the longest wait; another process may have the pipe, too.
        """
        self._ended.wait(seconds)
        return printable(strip_escapes(self._end.decode(errors="replace"))).strip()


class Heartbeat:
    """Writes an empty line to a pipe every ten seconds, in a thread, until `end`."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            self._write(b"\n")

    def _write(self, line: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._pipe.write(line)
            self._pipe.flush()

    def end(self, line: bytes = b"") -> None:
        """Write a last line, and close the pipe."""
        self._ended.set()
        self._thread.join()
        if line:
            self._write(line)
        with contextlib.suppress(BrokenPipeError):
            self._pipe.close()


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

    def content(self, seconds: float | None = None) -> bytes:
        """Wait for the end, and return at most one byte more than wanted; the pipe is closed.

        Raises:
            TimeoutError: the end did not come within `seconds`.
        """
        if not self._ended.wait(seconds):
            raise TimeoutError
        return self._content
