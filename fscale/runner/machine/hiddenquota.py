# SPDX-License-Identifier: GPL-2.0-only
"""Estimates a hidden CPU quota: a process spins on each CPU, and CPUs are idle nevertheless."""

import os
import time
from collections.abc import Sequence

from fscale.runner.cell.accounting import cpu_times

SECONDS = 0.4  # four default periods of the kernel
_MAX_IDLE = 0.1
"""Share of idle time that is not a sign of a quota, because /proc/stat counts in hundredths of a
second and a fork takes some time."""


def measure(cpus: Sequence[int], seconds: float = SECONDS) -> float | None:
    """Estimate a CPU quota, in CPUs, by spinning for `seconds`; None if no CPU was idle.

    Other load takes CPU time too, but leaves none of it idle.
    """
    before, started = cpu_times(), time.monotonic()
    used = sum(_wait(pid) for pid in [_spin(cpu, started + seconds) for cpu in cpus])
    wall, after = time.monotonic() - started, cpu_times()
    idle = sum(
        after[cpu].idle + after[cpu].iowait - before[cpu].idle - before[cpu].iowait
        for cpu in cpus
        if cpu in before and cpu in after
    )
    return used / wall if idle > _MAX_IDLE * wall * len(cpus) else None


def _spin(cpu: int, end: float) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            os.sched_setaffinity(0, {cpu})
            while time.monotonic() < end:
                pass
        finally:
            os._exit(0)
    return pid


def _wait(pid: int) -> float:
    """Wait for a child and return its CPU seconds."""
    _, _, usage = os.wait4(pid, 0)
    return usage.ru_utime + usage.ru_stime
