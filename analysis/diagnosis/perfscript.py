# SPDX-License-Identifier: GPL-2.0-only
"""Parses `perf script -F comm,tid,time,period,event,ip,sym --show-task-events`."""

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

from fscale.analysis.diagnosis.stacks import clean

KERNEL = 1 << 63  # kernel addresses have the highest bit set

# The bounds on repetitions limit the time for input that is not from perf script.
_WHEN = r"(?P<tid>\d{1,10})\s{1,64}(?P<time>\d{1,12}\.\d{1,12}):\s{1,64}"
_COMM = re.compile(
    r".{0,80}?\s" + _WHEN + r"PERF_RECORD_COMM[^:]{0,64}:\s*(?P<comm>.*):\d+/\d+\s*$"
)
_FORK = re.compile(
    r"(?P<time>\d{1,12}\.\d{1,12}):\s{1,64}"
    r"PERF_RECORD_FORK\((?P<pid>\d+):(?P<tid>\d+)\):\((?P<parent>\d+):\d+\)"
)
_EXIT = re.compile(r".{0,80}?\s" + _WHEN + "PERF_RECORD_EXIT")
_SAMPLE = re.compile(
    r"\s{0,64}(?P<comm>\S.{0,63}?)\s{1,64}"
    + _WHEN
    + r"(?P<period>\d{1,18})\s{1,64}(?P<event>\S{1,200}):"
)
_FRAME = re.compile(r"^\s+(?P<ip>[0-9a-f]+)\s+(?P<symbol>\S(?:.*\S)?)\s*$")

Stack = tuple[str, ...]


@dataclass
class StackSamples:
    """On-CPU samples; periods are in the event's unit (cpu-clock: nanoseconds)."""

    workers: Counter[Stack] = field(default_factory=Counter)  # kernel frames, leaf first
    user: Counter[Stack] = field(default_factory=Counter)  # samples in user space
    others: Counter[str] = field(default_factory=Counter)  # by comm
    other_stacks: Counter[tuple[str, Stack]] = field(default_factory=Counter)
    active_ns: int = 0  # sum of the times during which workers had their name
    count: int = 0

    @property
    def total(self) -> int:
        """Periods of all worker samples."""
        return self.workers.total() + self.user.total()


class _Workers(Protocol):
    """Determines from task events, line by line, which threads are workers in their windows."""

    def event(self, line: str) -> None:
        """Process a line with a task event."""

    def works(self, tid: str, comm: str, time: float) -> bool:
        """Whether the thread that was sampled at `time` (seconds) is a worker."""

    def active(self) -> float:
        """The sum of the workers' windows in seconds, after all lines were processed."""


def parse(output: str, comm: str, parent: int | None = None) -> StackSamples:
    """Fold the samples of threads named `comm`; the others are kept by name.

    With `parent`, only children of that process and their threads are workers, if the output has
    fork events of it.

    Lines that are not a sample, a frame or a task event are skipped; a frame without a symbol is
    kept as its address.
    """
    return _fold(output, _Named(output, comm, parent))


def parse_tree(output: str, comm: str, root: int, cores: int) -> StackSamples:
    """As `parse`, for process `root` and all that descend from it, while `root` is named `comm`.

    The windows are those of `cores` CPUs.
    """
    return _fold(output, _Tree(output, comm, root, cores))


def _fold(output: str, workers: _Workers) -> StackSamples:
    samples = StackSamples()
    current: tuple[bool, str, int] | None = None
    frames: list[str] = []
    kernel: list[str] = []

    def finish() -> None:
        if current is None:
            return
        ours, name, period = current
        if ours:
            if kernel:
                samples.workers[tuple(kernel)] += period
            else:
                samples.user[tuple(frames)] += period
            samples.count += 1
        else:
            samples.others[name] += period
            samples.other_stacks[name, tuple(kernel)] += period

    seen: dict[str, tuple[str, bool] | None] = {}  # most lines are frames that came before
    for line in output.splitlines():
        if current is not None:
            if line not in seen:
                seen[line] = _frame(line)
            if found := seen[line]:
                frame, in_kernel = found
                frames.append(frame)
                if in_kernel:
                    kernel.append(frame)
                continue
        if not line.strip():
            finish()
            current = None
            continue
        finish()
        current = None
        if "PERF_RECORD_" in line:
            workers.event(line)
        elif match := _SAMPLE.match(line):
            ours = workers.works(match["tid"], match["comm"], float(match["time"]))
            current, frames, kernel = (ours, match["comm"], int(match["period"])), [], []
    finish()
    samples.active_ns = round(workers.active() * 1e9)
    return samples


def _frame(line: str) -> tuple[str, bool] | None:
    """A frame's name, and whether it is in the kernel; None if the line is not a frame."""
    match = _FRAME.match(line)
    if match is None:
        return None
    ip, symbol = match["ip"], match["symbol"]
    in_kernel = len(ip) <= 16 and int(ip, 16) >= KERNEL
    return f"0x{ip}" if symbol == "[unknown]" else clean(symbol), in_kernel


def _forks(output: str) -> list[re.Match[str]]:
    lines = (line for line in output.splitlines() if "PERF_RECORD_FORK" in line)
    return [match for line in lines if (match := _FORK.search(line))]


class _Named:
    """Threads with the workers' name, from the time they take it until they lose it."""

    def __init__(self, output: str, comm: str, parent: int | None) -> None:
        self._comm = comm
        # The parent that perf reports of a thread is the thread's own process.
        forks = _forks(output)
        children = {m["pid"] for m in forks if int(m["parent"]) == parent}
        self._children = {m["tid"] for m in forks if m["pid"] in children}
        self._since: dict[str, float] = {}
        self._last = 0.0
        self._active = 0.0

    def event(self, line: str) -> None:
        match = _COMM.match(line) or _EXIT.match(line)
        if match is None:
            return
        tid, time = match["tid"], float(match["time"])
        if tid in self._since:
            self._active += max(0.0, time - self._since.pop(tid))
        if match.groupdict().get("comm") == self._comm and time > 0 and self._ours(tid):
            self._since[tid] = time
        self._last = max(self._last, time)

    def works(self, tid: str, comm: str, time: float) -> bool:
        self._last = time
        return comm == self._comm and self._ours(tid)

    def active(self) -> float:
        # Add workers that still have their name: the file is truncated.
        return self._active + sum(max(0.0, self._last - start) for start in self._since.values())

    def _ours(self, tid: str) -> bool:
        return not self._children or tid in self._children


class _Tree:
    """A process and its descendants, while the process itself has the workers' name."""

    def __init__(self, output: str, comm: str, root: int, cores: int) -> None:
        self._comm = comm
        self._root = str(root)
        self._cores = cores
        self._members = {self._root}
        self._since: float | None = None
        self._last = 0.0
        self._active = 0.0
        # perf first lists the existing processes, in no particular order.
        there = [m for m in _forks(output) if float(m["time"]) == 0]
        found = -1
        while len(self._members) > found:
            found = len(self._members)
            self._members |= {m["tid"] for m in there if m["parent"] in self._members}

    def event(self, line: str) -> None:
        if match := _FORK.search(line):
            if float(match["time"]) > 0:
                self._born(match["tid"], match["parent"])
            return
        match = _COMM.match(line) or _EXIT.match(line)
        if match is None or match["tid"] != self._root:
            return
        self._last = max(self._last, float(match["time"]))
        if self._since is not None:
            self._active += self._last - self._since
        self._since = self._last if match.groupdict().get("comm") == self._comm else None

    def _born(self, tid: str, parent: str) -> None:
        if parent in self._members:
            self._members.add(tid)
        else:
            self._members.discard(tid)  # the pid of an exited process was reused

    def works(self, tid: str, comm: str, time: float) -> bool:
        self._last = max(self._last, time)
        return self._since is not None and tid in self._members

    def active(self) -> float:
        rest = self._last - self._since if self._since is not None else 0.0
        return (self._active + rest) * self._cores
