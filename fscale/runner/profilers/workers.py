# SPDX-License-Identifier: GPL-2.0-only
"""The part that all bpftrace programs share: which threads are workers, and for how long."""

from dataclasses import dataclass
from pathlib import Path

from fscale.model.load import COMM
from fscale.runner.profilers.base import ProfilerError
from fscale.runner.profilers.btf import VMLINUX
from fscale.runner.profilers.context import Context

# PF_KTHREAD of include/linux/sched.h: the flag's value is the same in 5.x and 6.x kernels.
PF_KTHREAD = 0x00200000
# EXIT_DEAD and EXIT_ZOMBIE, by which sched:sched_switch reports a thread's last switch.
GONE = 0x30


@dataclass(frozen=True)
class Workers:
    """Parts of a bpftrace program that tell workers from other threads.

    `probes` add up `@active`, nanoseconds of the workers' windows. `current` and `previous` are
    conditions: the thread that runs, and in sched:sched_switch the one that leaves, is a worker in
    its window. `kernel` is the one for kernel threads. `clear` belongs into END.
    """

    probes: str
    current: str
    previous: str
    kernel: str
    clear: str


KTHREAD = f"(curtask->flags & {PF_KTHREAD})"


def workers(context: Context) -> Workers:
    """By name where the load's workers bear one, else everything in the cell's cgroup.

    Raises ProfilerError where there is no cgroup v2 to tell an application by.
    """
    if context.named:
        return _by_name(context.pid)
    return _by_cgroup(*application(context), len(context.cpus))


def application(context: Context) -> tuple[int, Path]:
    """The process whose name tells the window, and the cgroup of all threads; or ProfilerError."""
    if context.cgroup is None or context.pid is None:
        raise ProfilerError(
            f"the threads of {context.key.workload} are known by their cgroup, and this machine "
            "has no writable cgroup v2: mount -t cgroup2 none /sys/fs/cgroup/unified"
        )
    return context.pid, context.cgroup


def _by_name(pid: int | None) -> Workers:
    """Workers bear the name COMM while their gate is open.

    They change it by prctl, which fires task:task_rename. With `pid` only that process's children
    count (the kernel must have BTF).
    """
    ours = f" && curtask->real_parent->tgid == {pid}" if pid and VMLINUX.is_file() else ""
    probes = f"""
tracepoint:task:task_rename {{
	if (!strncmp(args->newcomm, "{COMM}", 16){ours}) {{
		@on[args->pid] = nsecs;
	}} else if (@on[args->pid]) {{
		@active = sum(nsecs - @on[args->pid]);
		delete(@on[args->pid]);
	}}
}}
tracepoint:sched:sched_process_exit /@on[args->pid]/ {{
	@active = sum(nsecs - @on[args->pid]);
	delete(@on[args->pid]);
}}
"""
    return Workers(probes, "@on[tid]", "@on[args->prev_pid]", KTHREAD, "clear(@on);")


def _by_cgroup(pid: int, cgroup: Path, cores: int) -> Workers:
    """All threads of the cell's cgroup, while the load's own process bears the name COMM.

    A program of somebody else's has no workers that say when they work, and any number of them. So
    `@active` is the time of the CPUs under test. The load starts no cgroups below its own.
    """
    here = f'cgroup == cgroupid("{cgroup}")'
    probes = f"""
tracepoint:task:task_rename /args->pid == {pid}/ {{
	if (!strncmp(args->newcomm, "{COMM}", 16)) {{
		@open = nsecs;
	}} else if (@open) {{
		@active = sum((nsecs - @open) * {cores});
		@open = (uint64)0;
	}}
}}
tracepoint:sched:sched_process_exit /args->pid == {pid} && @open/ {{
	@active = sum((nsecs - @open) * {cores});
	@open = (uint64)0;
}}
"""
    return Workers(
        probes,
        f"@open && {here}",
        f"@open && !(args->prev_state & {GONE}) && {here}",
        f"@open && {KTHREAD}",
        "clear(@open);",
    )
