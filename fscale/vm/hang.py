# SPDX-License-Identifier: GPL-2.0-only
"""Detects a guest that stalls during its boot: its console is silent and its CPUs are idle."""

import contextlib
import time
from pathlib import Path

# Ten good boots with 6.1, beside a load of ten, were silent and idle for 1.5 s at most.
STILL_SECONDS = 20.0
# An idle kernel still wakes up now and then.
IDLE_CPUS = 0.1


def scheduled_seconds(thread: Path) -> tuple[float, float]:
    """CPU seconds that a thread (`/proc/PID/task/TID`) ran, and that it waited for a CPU.

    Source: schedstat in Documentation/scheduler/sched-stats.rst. Raises OSError.
    """
    had, waited, _ = (thread / "schedstat").read_text().split()
    return int(had) / 1e9, int(waited) / 1e9


def wanted_seconds(pid: int) -> float:
    """CPU seconds that the threads of a process ran or waited for; inf if that is not known.

    A guest that waits for CPU time on a busy machine has not stalled.
    """
    total = 0.0
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                total += sum(scheduled_seconds(thread))
    except OSError:
        return float("inf")
    return total


class Watch:
    """Monitors a guest from its start until its first heartbeat."""

    def __init__(self, pid: int, console: Path) -> None:
        self._pid = pid
        self._console = console
        self._restart(self._console_size(), wanted_seconds(pid))

    def _console_size(self) -> int:
        return self._console.stat().st_size if self._console.exists() else 0

    def _restart(self, size: int, wants: float) -> None:
        self._since = time.monotonic()
        self._before = size
        self._wanted = wants

    def still(self) -> bool:
        """Whether the console was silent and less than IDLE_CPUS were used for STILL_SECONDS."""
        size, wants = self._console_size(), wanted_seconds(self._pid)
        moved = wants - self._wanted > IDLE_CPUS * STILL_SECONDS
        if size != self._before or moved or wants == float("inf"):
            self._restart(size, wants)
            return False
        return time.monotonic() - self._since >= STILL_SECONDS
