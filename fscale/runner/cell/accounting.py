# SPDX-License-Identifier: GPL-2.0-only
"""Who used the CPUs while a load ran: kernel threads, or other people's processes."""

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
# Others' share of the CPU time of a cell's CPUs above which the cell is marked: it takes about as
# much of the figure, and `compare` judges changes of 5% (tests/validation/disturbed.py).
SHARE = 0.02
# Seconds that the sum of many counters may be off: they are shown in ticks, user and system apart.
RESOLUTION = 2 / _TICK
_NAMES = ("user", "system", "idle", "iowait", "irq", "softirq", "steal")


@dataclass(frozen=True)
class Snapshot:
    """CPU seconds since boot, at one moment."""

    when: float
    cpus: dict[int, CpuTimes]
    kernel_threads: dict[int, float]
    other_processes: float
    sees_all: bool = True
    """whether the processes of the whole machine were there to be summed up"""
    ran_on: dict[int, int] = field(default_factory=dict)
    """of each kernel thread, the CPU that it was last on"""
    runner: float = 0.0
    """of this process"""


def cpu_times() -> dict[int, CpuTimes]:
    """/proc/stat for each online CPU; nice counts as user, guest is in user already."""
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
    """CPU seconds of the threads of a process that are there, to the nanosecond; 0 if unknown."""
    files = [process / "schedstat"]
    if threads > 1:
        files = [task / "schedstat" for task in (process / "task").iterdir()]
    return sum(int((text(file) or "0").split()[0]) for file in files) / 1e9


def snapshot(cgroup: Path | None) -> Snapshot:
    """Sum up all processes but our own: this one, its descendants and those of the cell's cgroup.

    A process counts with its reaped children (cutime, cstime). The sum over all processes
    therefore keeps the time of short-lived ones, such as a compiler's, whoever reaps them.
    """
    mine = set(processes.in_cgroup(cgroup)) if cgroup else set()
    kernel: dict[int, float] = {}
    ran_on: dict[int, int] = {}
    others: dict[int, tuple[int, float]] = {}
    for pid in processes.pids():
        place = processes.PROC / str(pid)
        with contextlib.suppress(OSError):
            # The name may hold blanks and brackets.
            fields = (place / "stat").read_text(errors="replace").rpartition(")")[2].split()
            own = (int(fields[11]) + int(fields[12])) / _TICK
            if pid not in mine:
                # In ticks, a hundred processes that hardly run make up a tick more or less; but
                # only they hold the time of threads that have ended.
                own = max(own, _run_time(place, int(fields[17])))
            if int(fields[6]) & _KERNEL_THREAD:
                kernel[pid] = own
                ran_on[pid] = int(fields[36])
            else:
                reaped = (int(fields[13]) + int(fields[14])) / _TICK
                others[pid] = (int(fields[1]), own + reaped)
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
    """CPU time of the kernel threads between two snapshots; those that ended are left out.

    With `cpus` only of the threads that were on one of them at the beginning or at the end.
    """
    earlier = before.kernel_threads
    return sum(
        seconds - earlier.get(pid, 0.0)
        for pid, seconds in after.kernel_threads.items()
        if cpus is None or {s.ran_on.get(pid) for s in (before, after)} & {*cpus, None}
    )


def between(before: Snapshot, after: Snapshot, cpus: list[int]) -> CpuTimes:
    """CPU times of some CPUs between two snapshots."""
    sums = dict.fromkeys(_NAMES, 0.0)
    for cpu in cpus:
        if cpu in before.cpus and cpu in after.cpus:
            for name in _NAMES:
                delta = getattr(after.cpus[cpu], name) - getattr(before.cpus[cpu], name)
                sums[name] += max(0.0, delta)  # iowait may run backwards
    return CpuTimes(**sums)


def watched(cpus: Collection[int]) -> list[int]:
    """The CPUs whose work a cell on `cpus` feels: these, and the other threads of their cores."""
    found = set(cpus)
    for cpu in cpus:
        found |= set(cpu_list(text(CPUS / f"cpu{cpu}" / "topology" / "thread_siblings_list") or ""))
    return sorted(found)


def busy(before: Snapshot, after: Snapshot, cpus: Collection[int]) -> float:
    """CPU seconds that some CPUs worked between two snapshots.

    By their idle time, which a kernel without a tick on idle CPUs (NO_HZ) knows well; what they
    did in the rest it samples with the tick.
    """
    there = [cpu for cpu in cpus if cpu in before.cpus and cpu in after.cpus]
    times = between(before, after, there)
    whole = (after.when - before.when) * len(there)
    return max(0.0, whole - times.idle - times.iowait - times.steal)


def limit(cores: int, seconds: float) -> float:
    """CPUs that others may take from a cell of so many cores and seconds before it is marked."""
    return max(SHARE * cores, RESOLUTION / seconds)


@dataclass(frozen=True)
class Others:
    """CPUs that a cell was without, on average over its time."""

    taken: float
    """by processes that are not of this run"""
    stolen: float
    """by the hypervisor"""
    sees_all: bool

    @property
    def most(self) -> float:
        """The larger of the two."""
        return max(0.0, self.taken, self.stolen)

    def disturb(self, limit: float) -> str | None:
        """Why a cell's figure is doubtful: more than `limit` CPUs; None when it is not."""
        if self.taken > limit:
            # Kernel threads are hidden with the processes of others.
            who = "other processes" if self.sees_all else "others, or kernel threads for the cell,"
            return f"{who} took {self.taken:.2f} CPUs"
        if self.stolen > limit:
            return f"the hypervisor took {self.stolen:.2f} CPUs (steal)"
        return None


def others(
    others_seconds: float | None,
    cpu: CpuTimes | None,
    seconds: float,
    before: Snapshot,
    after: Snapshot,
    cpus: Collection[int] | None = None,
) -> Others:
    """What others took from a cell that was given `others_seconds` of everything but itself, on
    the CPUs that it feels (`watched`: `cpus`), in `seconds` of its time.

    Kernel threads work for the file system (journal, write-back, loop device), so what is not the
    cell's own counts only as far as it was spent by processes of user space. Two views must agree:
    what those processes used anywhere, which holds the cell's own children that init has reaped
    (a daemon's), and what was used on the cell's CPUs without the cell and the kernel threads that
    ran there. Where not all processes are seen (PID namespace, hidepid) only the second view
    counts.
    """
    wall = after.when - before.when
    sees_all = before.sees_all and after.sees_all
    taken = processes_ = (after.other_processes - before.other_processes) / wall
    if others_seconds is not None and seconds:
        kernel = kernel_seconds(before, after, cpus) / wall
        on_cpus = others_seconds / seconds - kernel
        taken = min(processes_, on_cpus) if sees_all else on_cpus
    return Others(taken, cpu.steal / seconds if cpu and seconds else 0.0, sees_all)
