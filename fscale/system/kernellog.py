# SPDX-License-Identifier: GPL-2.0-only
"""Reads what the kernel logs while a command runs.

Only the kernel log says which mount option the kernel rejected.
"""

import os

_RECORD = 8192  # bytes; the kernel returns whole records, or EINVAL if they do not fit
_LINES = 3


class KernelLog:
    """The kernel log since the start of the `with` block; empty if it cannot be read."""

    def __enter__(self) -> "KernelLog":
        try:
            self._fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._fd, 0, os.SEEK_END)
        except OSError:  # this container has no /dev/kmsg, or this user may not read it
            self._fd = -1
        return self

    def __exit__(self, *exc: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    def about(self, *words: str) -> str:
        """Return ` (the kernel: ...)` with the first lines that contain a word, else nothing."""
        lines = [line for line in self._lines() if any(w.lower() in line.lower() for w in words)]
        return f" (the kernel: {'; '.join(lines[:_LINES])})" if lines else ""

    def _lines(self) -> list[str]:
        lines: list[str] = []
        while self._fd >= 0:
            try:
                record = os.read(self._fd, _RECORD)
            except BrokenPipeError:  # the record was overwritten before it was read
                continue
            except OSError:
                break
            # A record is `priority,number,time,flags;message`, followed by lines of keys.
            _, _, message = record.decode(errors="replace").partition(";")
            lines.append(message.partition("\n")[0].strip())
        return lines
