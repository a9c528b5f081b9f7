# SPDX-License-Identifier: GPL-2.0-only
"""Accounts for the CPU time that kernel threads and other processes used during a load."""

import contextlib
import os
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from fscale.model.bench import CpuTimes
from fscale.model.perfstat import cpu_list
from fscale.system import namespaces, processes
from fscale.system.powers import CPUS
from fscale.system.sysfs import text

_TICK = os.sysconf("SC_CLK_TCK")
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD in include/linux/sched.h
# Share of the CPU time of a cell's CPUs that others may use before the cell is marked as disturbed.
# The figure drops by about the same share, and `compare` judges changes of 5%
# (tests/validation/disturbed.py).
SHARE = 0.02
# Seconds of error of a sum of counters, which count user and system time in whole ticks.
RESOLUTION = 2 / _TICK
_NAMES = ("user", "system", "idle", "iowait", "irq", "softirq", "steal")


@dataclass(frozen=True)
class Snapshot:
    """CPU seconds since boot, at one moment. `when` is in seconds of CLOCK_MONOTONIC."""

    when: float
    cpus: dict[int, CpuTimes]
    kernel_threads: dict[int, float]
    other_processes: float
    sees_all: bool = True
    """whether all processes of the machine were visible"""
    ran_on: dict[int, int] = field(default_factory=dict)
    """kernel thread -> the CPU that it last ran on"""
    runner: float = 0.0
    """CPU seconds of this process"""


def cpu_times() -> dict[int, CpuTimes]:
    """Read /proc/stat for each online CPU. User time includes nice; it already includes guest."""
    times = {}
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name != "cpu":
            user, nice, system, idle, iowait, irq, softirq, steal = map(int, fields[:8])
            values = (user + nice, system, idle, iowait, irq, softirq, steal)
            seconds = dict(zip(_NAMES, (v / _TICK for v in values), strict=True))
            times[int(name[3:])] = CpuTimes(**seconds)
    return times


def _run_time(process: Path, threads: int) -> float:
    """Return the CPU seconds of a process's live threads, to the nanosecond; 0 if unknown."""
    files = [process / "schedstat"]
    if threads > 1:
        files = [task / "schedstat" for task in (process / "task").iterdir()]
    return sum(int((text(file) or "0").split()[0]) for file in files) / 1e9


def snapshot(*cgroups: Path | None) -> Snapshot:
    """Sum the CPU time of all processes except this one, its descendants and the loads' cgroups.

    A process counts with its reaped children (cutime, cstime), so the sum keeps the time of
    short-lived processes, such as a compiler's, whichever process reaps them.
    """
    mine = {pid for group in cgroups if group for pid in processes.in_cgroup(group)}
    kernel: dict[int, float] = {}
    ran_on: dict[int, int] = {}
    others: dict[int, tuple[int, float]] = {}
    for pid in processes.pids():
        place = processes.PROC / str(pid)
        with contextlib.suppress(OSError):
            # The name may contain blanks and brackets.
            fields = (place / "stat").read_text(errors="replace").rpartition(")")[2].split()
            used = (int(fields[11]) + int(fields[12])) / _TICK
            if pid not in mine:
                # Ticks of many nearly idle processes add up to errors of whole ticks, so schedstat
                # is used; but only the tick counters include threads that have ended.
                used = max(used, _run_time(place, int(fields[17])))
            if int(fields[6]) & _KERNEL_THREAD:
                kernel[pid] = used
                ran_on[pid] = int(fields[36])
            else:
                reaped = (int(fields[13]) + int(fields[14])) / _TICK
                others[pid] = (int(fields[1]), used + reaped)
    total = 0.0
    for pid, (_, seconds) in others.items():
        ancestor = pid
        while ancestor in others and ancestor != os.getpid():
            ancestor = others[ancestor][0]
        if ancestor != os.getpid() and pid not in mine:
            total += seconds
    visible = namespaces.all_processes_visible()
    return Snapshot(
        time.monotonic(), cpu_times(), kernel, total, visible, ran_on, time.process_time()
    )


def kernel_seconds(before: Snapshot, after: Snapshot, cpus: Collection[int] | None = None) -> float:
    """Return the CPU seconds of kernel threads between two snapshots, without ended threads.

    With `cpus`, only threads count that were on one of these CPUs in either snapshot.
    """
    earlier = before.kernel_threads
    return sum(
        seconds - earlier.get(pid, 0.0)
        for pid, seconds in after.kernel_threads.items()
        if cpus is None or {s.ran_on.get(pid) for s in (before, after)} & {*cpus, None}
    )


def between(before: Snapshot, after: Snapshot, cpus: list[int]) -> CpuTimes:
    """Return the CPU times of some CPUs between two snapshots, in seconds."""
    sums = dict.fromkeys(_NAMES, 0.0)
    for cpu in cpus:
        if cpu in before.cpus and cpu in after.cpus:
            for name in _NAMES:
                delta = getattr(after.cpus[cpu], name) - getattr(before.cpus[cpu], name)
                sums[name] += max(0.0, delta)  # iowait may decrease
    return CpuTimes(**sums)


def affected_cpus(cpus: Collection[int]) -> list[int]:
    """Return the CPUs whose load affects a cell on `cpus`: these and their SMT siblings."""
    found = set(cpus)
    for cpu in cpus:
        found |= set(cpu_list(text(CPUS / f"cpu{cpu}" / "topology" / "thread_siblings_list") or ""))
    return sorted(found)


def busy_seconds(before: Snapshot, after: Snapshot, cpus: Collection[int]) -> float:
    """Return the seconds that some CPUs were busy between two snapshots.

    They are computed from idle time, which a NO_HZ kernel measures well, while it samples busy
    time with the tick.
    """
    there = [cpu for cpu in cpus if cpu in before.cpus and cpu in after.cpus]
    times = between(before, after, there)
    whole = (after.when - before.when) * len(there)
    return max(0.0, whole - times.idle - times.iowait - times.steal)


def disturbance_limit(cores: int, seconds: float) -> float:
    """Return how many CPUs others may use on a cell's cores before it is marked as disturbed."""
    return max(SHARE * cores, RESOLUTION / seconds)


@dataclass(frozen=True)
class Others:
    """The number of CPUs that others took from a cell, on average over its time."""

    taken: float
    """by processes that do not belong to this run"""
    stolen: float
    """by the hypervisor"""
    sees_all: bool

    @property
    def most(self) -> float:
        """The larger of the two."""
        return max(0.0, self.taken, self.stolen)

    def disturb(self, limit: float) -> str | None:
        """Return why the figure is unreliable, if others took more than `limit` CPUs; else None."""
        if self.taken > limit:
            # Kernel threads are hidden with the processes of others.
            who = "other processes"
            if not self.sees_all:
                who += ", or kernel threads that work for the cell,"
            return f"{who} took {self.taken:.2f} CPUs"
        if self.stolen > limit:
            return f"the hypervisor took {self.stolen:.2f} CPUs (steal)"
        return None


def estimate_others(
    others_seconds: float | None,
    cpu: CpuTimes | None,
    seconds: float,
    before: Snapshot,
    after: Snapshot,
    cpus: Collection[int] | None = None,
) -> Others:
    """Estimate how many CPUs others took from a cell.

    `others_seconds` are the CPU seconds of everything except the cell on the CPUs that affect it
    (`cpus`, from `watched`), over `seconds` of its time.

    Kernel threads work for the file system (journal, write-back, loop device), so only processes
    of user space count. The result is the smaller of two estimates. The first is what these
    processes used anywhere; it includes children of the cell that init has reaped (a daemon's). The
    second is what was used on the cell's CPUs without the cell and the kernel threads that ran
    there. If not all processes are visible (PID namespace, hidepid), only the second is used.
    """
    wall = after.when - before.when
    sees_all = before.sees_all and after.sees_all
    taken = processes_ = (after.other_processes - before.other_processes) / wall
    if others_seconds is not None and seconds:
        kernel = kernel_seconds(before, after, cpus) / wall
        on_cpus = others_seconds / seconds - kernel
        taken = min(processes_, on_cpus) if sees_all else on_cpus
    return Others(taken, cpu.steal / seconds if cpu and seconds else 0.0, sees_all)
