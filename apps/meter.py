# SPDX-License-Identifier: GPL-2.0-only
"""Marks the edges of the timed window: reads CPU times there, and notifies profilers."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fscale.model.bench import CpuTimes
from fscale.model.load import COMM

_COMM = Path("/proc/self/comm")
_STAT = Path("/proc/stat")
# Columns of /proc/stat (proc(5)); guest time is already in user, nice counts as user.
_COLUMNS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


@dataclass(frozen=True)
class Edge:
    """The counters at one moment."""

    clock: float  # CLOCK_MONOTONIC, seconds
    ticks: tuple[int, ...]  # one count a column of /proc/stat, summed over the CPUs
    cgroup: float | None  # CPU seconds of the cgroup


@dataclass(frozen=True)
class Usage:
    """CPU time between two edges, in seconds."""

    seconds: float
    cpu: (
        CpuTimes | None
    )  # of all processes on the CPUs; None for turns, which alternate with another side's
    own: float | None  # of the cgroup, if there is one; for turns, of the load's processes
    late: float = 0.0  # delay of reading these after the load's own edges

    @property
    def busy(self) -> float | None:
        """CPU time of all processes on the CPUs under test, without steal."""
        if self.cpu is None:
            return None
        return self.cpu.user + self.cpu.system + self.cpu.irq + self.cpu.softirq


class Meter:
    """Reads the counters of `cpus` and, if given, of the cgroup v2 directory `cgroup`."""

    def __init__(self, cpus: Sequence[int], cgroup: Path | None, stat: Path = _STAT) -> None:
        self._names = {f"cpu{cpu}" for cpu in cpus}
        self._cgroup = cgroup
        self._stat = stat

    def read(self) -> Edge:
        """The current counters."""
        sums = [0] * len(_COLUMNS)
        for line in self._stat.read_text().splitlines():
            name, *values = line.split()
            if name in self._names:
                for column in range(len(_COLUMNS)):
                    sums[column] += int(values[column])
        return Edge(time.monotonic(), tuple(sums), self._cgroup_seconds())

    def open(self) -> Edge:
        """Begin the timed window: this process takes the name that profilers wait for."""
        _COMM.write_text(COMM)
        return self.read()

    def close(self) -> Edge:
        """End the timed window."""
        edge = self.read()
        _COMM.write_text("fscale-app")
        return edge

    def _cgroup_seconds(self) -> float | None:
        if self._cgroup is None:
            return None
        for line in (self._cgroup / "cpu.stat").read_text().splitlines():
            name, value = line.split()
            if name == "usage_usec":
                return int(value) / 1e6
        return None


def between(start: Edge, end: Edge, window: tuple[int, int] | None = None) -> Usage:
    """The CPU time from `start` to `end`.

    `window` has the begin and end of the load itself, CLOCK_MONOTONIC in nanoseconds.
    """
    hertz = os.sysconf("SC_CLK_TCK")
    spent = [(b - a) / hertz for a, b in zip(start.ticks, end.ticks, strict=True)]
    by_name = dict(zip(_COLUMNS, spent, strict=True))
    nice = by_name.pop("nice")
    by_name["user"] += nice
    own = None
    if start.cgroup is not None and end.cgroup is not None:
        own = end.cgroup - start.cgroup
    late = 0.0
    if window is not None:
        late = max(0.0, start.clock - window[0] / 1e9, end.clock - window[1] / 1e9)
    return Usage(end.clock - start.clock, CpuTimes(**by_name), own, late)
