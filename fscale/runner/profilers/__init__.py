# SPDX-License-Identifier: GPL-2.0-only
"""Profilers, which observe the kernel during a cell, each in repetitions of its own."""

import subprocess
from collections.abc import Callable, Iterable

from fscale.model.errors import FscaleError
from fscale.runner.profilers.base import Profiler, ProfilerError
from fscale.runner.profilers.counts import Counts
from fscale.runner.profilers.cpu import CacheToCache, CpuProfiler, Hardware
from fscale.runner.profilers.kernelstat import LockStat, PerfLock
from fscale.runner.profilers.locks import Locks
from fscale.runner.profilers.offcpu import OffCpu

__all__ = ["PROFILERS", "Profiler", "ProfilerError", "create", "parse_names", "usable"]

PROFILERS: dict[str, Callable[[], Profiler]] = {
    "locks": Locks,
    "cpu": CpuProfiler,
    "offcpu": OffCpu,
    "counts": Counts,
    "hardware": Hardware,
    "c2c": CacheToCache,
    "lockstat": LockStat,
    "perf-lock": PerfLock,
}


def parse_names(text: str) -> list[str]:
    """Parse names of profilers, `locks,cpu,...`; "all" means every one.

    Raises:
        FscaleError: a name is unknown.
    """
    names = list(dict.fromkeys(n for part in text.split(",") if (n := part.strip())))
    if names == ["all"]:
        return list(PROFILERS)
    for name in names:
        if name not in PROFILERS:
            raise FscaleError(
                f"there is no profiler {name!r}; give one or more of {', '.join(PROFILERS)}, or all"
            )
    return names


def create(name: str) -> Profiler:
    """Make a profiler; one object serves a whole run, so that it examines the kernel once."""
    return PROFILERS[name]()


def usable(names: Iterable[str]) -> tuple[list[Profiler], dict[str, str]]:
    """Return the profilers that work on this machine, and name -> reason for the others.

    Each is tried: a tool that is installed may not fit the kernel, or be denied what it needs.
    """
    profilers, skipped = [], {}
    for name in names:
        profiler = create(name)
        try:
            reason = profiler.unavailable()
            if reason is None:
                profiler.try_out()
        except (FscaleError, OSError, ValueError, subprocess.TimeoutExpired) as error:
            reason = f"it was tried and failed: {error}"
        if reason is None:
            profilers.append(profiler)
        else:
            skipped[name] = reason
    return profilers, skipped
