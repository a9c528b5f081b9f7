# SPDX-License-Identifier: GPL-2.0-only
"""What the kernel logs while a command runs: it alone knows which mount option it did not take."""

import os
from types import TracebackType

_RECORD = 8192  # bytes; the kernel gives whole records, or EINVAL
_LINES = 3


class KernelLog:
    """The kernel's log from the `with` on; empty where it may not be read."""

    def __enter__(self) -> "KernelLog":
        try:
            self._fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._fd, 0, os.SEEK_END)
        except OSError:  # not in this container, or not for this user
            self._fd = -1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    def about(self, *words: str) -> str:
        """` (the kernel: ...)` with the first lines that hold one of the words, else nothing."""
        lines = [line for line in self._lines() if any(w.lower() in line.lower() for w in words)]
        return f" (the kernel: {'; '.join(lines[:_LINES])})" if lines else ""

    def _lines(self) -> list[str]:
        found: list[str] = []
        while self._fd >= 0:
            try:
                record = os.read(self._fd, _RECORD)
            except BrokenPipeError:  # it was overwritten meanwhile
                continue
            except OSError:
                break
            # `priority,number,time,flags;message`, then lines of keys
            _, _, message = record.decode(errors="replace").partition(";")
            found.append(message.partition("\n")[0].strip())
        return found
