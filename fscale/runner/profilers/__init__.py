# SPDX-License-Identifier: GPL-2.0-only
"""The tools that look into the kernel while a cell runs, each in a repetition of its own."""

from collections.abc import Callable, Iterable

from fscale.model.errors import FscaleError
from fscale.runner.profilers.base import Profiler, ProfilerError
from fscale.runner.profilers.counts import Counts
from fscale.runner.profilers.cpu import CacheToCache, Cpu, Hardware
from fscale.runner.profilers.kernelstat import LockStat, PerfLock
from fscale.runner.profilers.locks import Locks
from fscale.runner.profilers.offcpu import OffCpu

__all__ = ["PROFILERS", "Profiler", "ProfilerError", "create", "parse_names", "usable"]

PROFILERS: dict[str, Callable[[], Profiler]] = {
    "locks": Locks,
    "cpu": Cpu,
    "offcpu": OffCpu,
    "counts": Counts,
    "hardware": Hardware,
    "c2c": CacheToCache,
    "lockstat": LockStat,
    "perf-lock": PerfLock,
}


def parse_names(text: str) -> list[str]:
    """The profilers of `locks,cpu,...`; "all" is every one. FscaleError on an unknown name."""
    names = list(dict.fromkeys(n for part in text.split(",") if (n := part.strip())))
    if names == ["all"]:
        return list(PROFILERS)
    for name in names:
        if name not in PROFILERS:
            raise FscaleError(
                f"there is no profiler {name!r}; there are {', '.join(PROFILERS)}, all"
            )
    return names


def create(name: str) -> Profiler:
    """A new profiler; one object serves a whole run (it learns about the kernel once)."""
    return PROFILERS[name]()


def usable(names: Iterable[str]) -> tuple[list[Profiler], dict[str, str]]:
    """The profilers of `names` that this machine can do, and why it cannot do the others."""
    profilers, skipped = [], {}
    for name in names:
        profiler = create(name)
        reason = profiler.unavailable()
        if reason is None:
            profilers.append(profiler)
        else:
            skipped[name] = reason
    return profilers, skipped
