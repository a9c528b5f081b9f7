# SPDX-License-Identifier: GPL-2.0-only
"""The common part of all bpftrace programs: which threads are workers, and for how long."""

from dataclasses import dataclass
from pathlib import Path

from fscale.model.load import COMM
from fscale.runner.profilers.base import ProfilerError
from fscale.runner.profilers.btf import VMLINUX
from fscale.runner.profilers.context import Context
from fscale.system import namespaces

# PF_KTHREAD of include/linux/sched.h: the flag's value is the same in 5.x and 6.x kernels.
PF_KTHREAD = 0x00200000
# EXIT_DEAD and EXIT_ZOMBIE: the state of a thread in its last sched:sched_switch.
GONE = 0x30


@dataclass(frozen=True)
class Workers:
    """Parts of a bpftrace program that distinguish workers from other threads.

    `probes` sum up `@active`, the nanoseconds of the workers' windows. `current` and `previous` are
    conditions that the running thread, or the one that sched:sched_switch switches out, is a worker
    in its window. `kernel` is the condition for kernel threads. `clear` belongs into END.
    """

    probes: str
    current: str
    previous: str
    kernel: str
    clear: str


KTHREAD = f"(curtask->flags & {PF_KTHREAD})"


def workers(context: Context) -> Workers:
    """Identify workers by name if the load names them, else by the cell's cgroup.

    Raises:
        ProfilerError: the load is an application, and there is no cgroup v2 to identify it by.
    """
    if context.named:
        return _by_name(machine_pid(context))
    return _by_cgroup(application(context), len(context.cpus))


def machine_pid(context: Context) -> int | None:
    """Return the load's process by the number that BPF programs see; None if it is not known.

    They see numbers of the initial PID namespace, which a container does not.
    """
    return None if namespaces.initial("pid") is False else context.pid


def application(context: Context) -> Path:
    """Return the cgroup of all threads, one of which marks the window by its name.

    Raises:
        ProfilerError: the cell has no cgroup.
    """
    if context.cgroup is None or context.pid is None:
        raise ProfilerError(
            f"the threads of {context.key.workload} are identified by their cgroup, but this "
            "machine has no writable cgroup v2: mount -t cgroup2 none /sys/fs/cgroup/unified"
        )
    return context.cgroup


def _by_name(pid: int | None) -> Workers:
    """Identify workers by the name COMM, which they have while they execute operations.

    They change it with prctl, which fires task:task_rename. With `pid` only the children of that
    process and their threads count, if the kernel has BTF.
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


def _by_cgroup(cgroup: Path, cores: int) -> Workers:
    """Count all threads of the cell's cgroup while one of them, the load's own, is named COMM.

    An application has any number of threads, which do not mark when they work. So `@active` is the
    time of the CPUs under test. The load must not make cgroups below its own.
    """
    here = f'cgroup == cgroupid("{cgroup}")'
    probes = f"""
tracepoint:task:task_rename {{
	if (!strncmp(args->newcomm, "{COMM}", 16)) {{
		if ({here}) {{
			@open = nsecs;
			@opener = (uint64)args->pid;
		}}
	}} else if (@open && (uint64)args->pid == @opener) {{
		@active = sum((nsecs - @open) * {cores});
		@open = (uint64)0;
	}}
}}
tracepoint:sched:sched_process_exit /@open && (uint64)args->pid == @opener/ {{
	@active = sum((nsecs - @open) * {cores});
	@open = (uint64)0;
}}
"""
    return Workers(
        probes,
        f"@open && {here}",
        f"@open && !(args->prev_state & {GONE}) && {here}",
        f"@open && {KTHREAD}",
        "clear(@open); clear(@opener);",
    )
