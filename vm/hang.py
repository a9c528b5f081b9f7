# SPDX-License-Identifier: GPL-2.0-only
"""Whether a guest that boots stands still: its console is silent and its CPUs want nothing."""

import contextlib
import time
from pathlib import Path

# Ten good boots with 6.1, beside a load of ten, were silent and idle for 1.5 s at most.
STILL_SECONDS = 20.0
# A kernel without work wakes now and then.
IDLE_CPUS = 0.1


def scheduled(thread: Path) -> tuple[float, float]:
    """CPU seconds that a thread (`/proc/PID/task/TID`) had, and waited for.

    Source: schedstat in Documentation/scheduler/sched-stats.rst. Raises OSError.
    """
    had, waited, _ = (thread / "schedstat").read_text().split()
    return int(had) / 1e9, int(waited) / 1e9


def wanted(pid: int) -> float:
    """CPU seconds that the threads of a process had or waited for; inf when that is not known.

    A guest on a busy machine wants CPU time and does not get it: it does not stand still.
    """
    total = 0.0
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                total += sum(scheduled(thread))
    except OSError:
        return float("inf")
    return total


class Watch:
    """Looks at a guest again and again from its start until it says that it lives."""

    def __init__(self, pid: int, console: Path) -> None:
        self._pid = pid
        self._console = console
        self._restart(self._said(), wanted(pid))

    def _said(self) -> int:
        return self._console.stat().st_size if self._console.exists() else 0

    def _restart(self, said: int, wants: float) -> None:
        self._since = time.monotonic()
        self._before = said
        self._wanted = wants

    def still(self) -> bool:
        """Whether for STILL_SECONDS nothing was said and less than IDLE_CPUS were wanted."""
        said, wants = self._said(), wanted(self._pid)
        moved = wants - self._wanted > IDLE_CPUS * STILL_SECONDS
        if said != self._before or moved or wants == float("inf"):
            self._restart(said, wants)
            return False
        return time.monotonic() - self._since >= STILL_SECONDS
