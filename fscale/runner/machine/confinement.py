# SPDX-License-Identifier: GPL-2.0-only
"""Finds which limits a container, or the cgroups of this process, impose on a run."""

from collections.abc import Mapping
from pathlib import Path

from fscale.model.load import Outcome
from fscale.model.results import Confinement, Machine
from fscale.runner.machine import hiddenquota
from fscale.system import cgroups, mountinfo, namespaces, powers
from fscale.system.cgroups import Chain, Throttled
from fscale.system.sysfs import text

MAX_THROTTLED = 0.01
"""Share of a cell's CPU time that a quota may take before the cell is invalid. It is not 0, because
a worker that never sleeps can exhaust a quota of one CPU just before each period ends."""


_NEAR = 0.8
"""Share of an estimated hidden quota above which it may have throttled a cell."""


def look_for_hidden_quota(machine: Machine) -> None:
    """If ancestor cgroups are hidden, spin for some tenths of a second to detect a quota.

    The result is stored in `machine.confinement.cpus_found`, in CPUs.
    """
    confinement, groups = machine.confinement, cgroups.chain("cpu")
    if confinement and machine.cpu_order and not (groups and groups.whole):
        cpus = hiddenquota.measure(machine.cpu_order)
        if cpus is not None and (confinement.cpus is None or cpus < _NEAR * confinement.cpus):
            confinement.cpus_found = round(cpus, 2)


def read(root: Path = Path("/")) -> Confinement:
    """Read the present limits; `root` is the directory with /proc and /sys."""
    cpu, memory = cgroups.chain("cpu", root), cgroups.chain("memory", root)
    cpus, most, swap = (
        cgroups.cpu_quota(cpu),
        cgroups.memory_limit(memory),
        cgroups.swap_limit(memory),
    )
    return Confinement.model_validate(
        {
            "cgroups": cgroups.versions(root),
            "cpus": round(cpus.value, 4) if cpus else None,
            "memory_bytes": int(most.value) if most else None,
            "swap_bytes": int(swap.value) if swap else None,
            "cpuset": _cpuset(cgroups.chain("cpuset", root)),
            "namespaces": namespaces.read(root / "proc"),
            "denied": powers.denied_actions(),
            "hidden": _hidden(root, cpu, memory),
        }
    )


def _cpuset(groups: Chain | None) -> str | None:
    if groups is None:
        return None
    group = groups.groups[0]
    return text(group / "cpuset.cpus.effective") or text(group / "cpuset.effective_cpus")


def _hidden(root: Path, cpu: Chain | None, memory: Chain | None) -> list[str]:
    hidden = []
    if cpu is None or memory is None:
        hidden.append("CPU quota, throttling and memory limit: no cgroup can be read")
    elif not (cpu.whole and memory.whole):
        hidden.append(
            "CPU quota, throttling and memory limit of ancestor cgroups: they may limit this run "
            "without being reported"
        )
    if not namespaces.all_processes_visible(root / "proc"):
        hidden.append(
            "processes of others (PID namespace or hidepid): their load is detected only on the "
            "CPUs under test, where it cannot be distinguished from kernel threads"
        )
        if _faked(root):
            hidden.append("CPU times of others: /proc/stat shows this container only (lxcfs)")
    return hidden


def _faked(root: Path) -> bool:
    """Return whether /proc/stat shows this container alone."""
    return any(
        line.target == "/proc/stat" and "lxcfs" in f"{line.fstype} {line.source}"
        for line in mountinfo.read(root / "proc")
    )


def warnings(machine: Machine) -> list[str]:
    """Return warnings about limits that affect figures, or hide what affects them."""
    confinement = machine.confinement
    if confinement is None:
        return []
    sentences = [f"hidden from this run: {what}" for what in confinement.hidden]
    if confinement.cpus is not None and confinement.cpus < len(machine.cpu_order):
        sentences.append(
            f"this cgroup may use {confinement.cpus:.2f} CPUs in all ({quota_file()}): cells on "
            f"more CPUs are throttled and become invalid"
        )
    if confinement.cpus_found is not None:
        sentences.append(
            f"a hidden CPU quota leaves about {confinement.cpus_found:.2f} CPUs in all: cells that "
            f"use more than {_NEAR:.0%} of it are invalid"
        )
    if machine.usable_memory < machine.memory_bytes:
        sentences.append(
            f"this cgroup may use {machine.usable_memory >> 20} MiB of the machine's "
            f"{machine.memory_bytes >> 20} MiB: sizes that are a share of memory refer to that"
        )
    if reason := confinement.denied.get("drop caches"):
        sentences.append(f"caches are not dropped before each cell: {reason}")
    return sentences


def quota_file() -> Path | None:
    """Return the file that sets the smallest CPU quota; None without a quota."""
    quota = cgroups.cpu_quota(cgroups.chain("cpu"))
    return quota.file if quota else None


class Quotas:
    """Measures how much a CPU quota throttles the cgroups of this process."""

    def __init__(self, groups: Chain | None = None, hidden: float | None = None) -> None:
        """Begin to measure; `hidden` is the estimate of a hidden quota in CPUs, or None."""
        self._hidden = hidden
        self._groups = groups or cgroups.chain("cpu")
        self._before = self._now()

    def _now(self) -> Mapping[Path, Throttled]:
        return cgroups.throttled(self._groups)

    def judge(self, outcome: Outcome, cpus: int, wall: float) -> None:
        """Record how long they were throttled since this object was made, `wall` seconds ago.

        An outcome on `cpus` CPUs becomes invalid if they lost more than MAX_THROTTLED of their
        time, or if it used nearly as much as a hidden quota allows.
        """
        if self._hidden is not None and outcome.status == "ok" and outcome.seconds:
            used = (outcome.own_cpu_seconds or 0) / outcome.seconds
            if used > _NEAR * self._hidden:
                outcome.status = "invalid"
                outcome.reason = (
                    f"the cell used {used:.2f} CPUs, and a hidden CPU quota allows about "
                    f"{self._hidden:.2f}, so it may have been throttled; measure outside the "
                    "container, or fewer cores"
                )
        after = self._now()
        deltas = [
            (Throttled(after[group].times - old.times, after[group].seconds - old.seconds), group)
            for group, old in self._before.items()
            if group in after
        ]
        if not deltas:
            return
        counted, group = max(deltas, key=lambda delta: delta[0].seconds)
        outcome.throttled_seconds = round(counted.seconds, 6)
        if outcome.status == "ok" and counted.seconds > MAX_THROTTLED * cpus * wall:
            outcome.status = "invalid"
            outcome.reason = (
                f"a CPU quota throttled the cell's cgroup {counted.times} times in {wall:.2f} s, "
                f"for {counted.seconds:.2f} s summed over CPUs (cpu.stat of {group}); raise the "
                f"quota, or measure fewer cores"
            )
