# SPDX-License-Identifier: GPL-2.0-only
"""Who used the CPUs while a load ran: kernel threads, or other people's processes."""

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

from fscale.model.bench import CpuTimes
from fscale.system import namespaces, processes

_TICK = os.sysconf("SC_CLK_TCK")
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD in include/linux/sched.h
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


def snapshot(cgroup: Path | None) -> Snapshot:
    """Sum up all processes but our own: this one, its descendants and those of the cell's cgroup.

    A process counts with its reaped children (cutime, cstime). The sum over all processes
    therefore keeps the time of short-lived ones, such as a compiler's, whoever reaps them.
    """
    mine = set(processes.in_cgroup(cgroup)) if cgroup else set()
    kernel: dict[int, float] = {}
    others: dict[int, tuple[int, float]] = {}
    for pid in processes.pids():
        with contextlib.suppress(OSError):
            # The name may hold blanks and brackets.
            fields = (processes.PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
            own = (int(fields[11]) + int(fields[12])) / _TICK
            if int(fields[6]) & _KERNEL_THREAD:
                kernel[pid] = own
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
    return Snapshot(time.monotonic(), cpu_times(), kernel, total, visible)


def kernel_seconds(before: Snapshot, after: Snapshot) -> float:
    """CPU time of the kernel threads between two snapshots; those that ended are left out."""
    earlier = before.kernel_threads
    return sum(seconds - earlier.get(pid, 0.0) for pid, seconds in after.kernel_threads.items())


def between(before: Snapshot, after: Snapshot, cpus: list[int]) -> CpuTimes:
    """CPU times of some CPUs between two snapshots."""
    sums = dict.fromkeys(_NAMES, 0.0)
    for cpu in cpus:
        if cpu in before.cpus and cpu in after.cpus:
            for name in _NAMES:
                delta = getattr(after.cpus[cpu], name) - getattr(before.cpus[cpu], name)
                sums[name] += max(0.0, delta)  # iowait may run backwards
    return CpuTimes(**sums)


def disturbed(
    others_seconds: float | None,
    cpu: CpuTimes | None,
    seconds: float,
    before: Snapshot,
    after: Snapshot,
    limit: float,
) -> str | None:
    """Why a cell's figure is doubtful: others took more than `limit` CPUs; None when they did not.

    Kernel threads work for the file system (journal, write-back, loop device), so what is not the
    cell's own counts only as far as it was spent by processes of user space. Two views must agree:
    what those processes used anywhere, which holds the cell's own children that init has reaped
    (a daemon's), and what was used on the cell's CPUs without the cell and kernel threads. Where
    not all processes are seen (PID namespace, hidepid) only the second view counts.
    """
    wall = after.when - before.when
    sees_all = before.sees_all and after.sees_all
    processes_ = (after.other_processes - before.other_processes) / wall
    taken = processes_
    if others_seconds is not None and seconds:
        kernel = kernel_seconds(before, after) / wall
        on_cpus = others_seconds / seconds - kernel
        taken = min(processes_, on_cpus) if sees_all else on_cpus
    if taken > limit:
        # Kernel threads are hidden with the processes of others.
        who = "other processes" if sees_all else "others, or kernel threads for the cell,"
        return f"{who} took {taken:.2f} CPUs"
    stolen = cpu.steal / seconds if cpu and seconds else 0.0
    if stolen > limit:
        return f"the hypervisor took {stolen:.2f} CPUs (steal)"
    return None
