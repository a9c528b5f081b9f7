# SPDX-License-Identifier: GPL-2.0-only
"""What a container, or the control groups of this process, leave a run of the machine."""

from collections.abc import Mapping
from pathlib import Path

from fscale.model.load import Outcome
from fscale.model.results import Confinement, Machine
from fscale.runner.machine import hiddenquota
from fscale.system import cgroups, mountinfo, namespaces, powers
from fscale.system.cgroups import Chain, Throttled
from fscale.system.sysfs import text

MOST_THROTTLED = 0.01
"""Share of a cell's CPU time that a quota may take from it unpunished: a worker that never sleeps
uses up a quota of one CPU within each period, and waits for its end."""


_NEAR = 0.8
"""Share of a hidden quota, as found, above which it may have stopped a cell."""


def look_for_hidden_quota(machine: Machine) -> None:
    """Where quotas above are hidden, try for some tenths of a second whether one stops us."""
    found, groups = machine.confinement, cgroups.chain("cpu")
    if found and machine.cpu_order and not (groups and groups.whole):
        cpus = hiddenquota.measure(machine.cpu_order)
        if cpus is not None and (found.cpus is None or cpus < _NEAR * found.cpus):
            found.cpus_found = round(cpus, 2)


def read(root: Path = Path("/")) -> Confinement:
    """As it is now; `root` is where /proc and /sys are."""
    cpu, memory = cgroups.chain("cpu", root), cgroups.chain("memory", root)
    cpus, most, swap = cgroups.cpus(cpu), cgroups.memory(memory), cgroups.swap(memory)
    return Confinement.model_validate(
        {
            "cgroups": cgroups.versions(root),
            "cpus": round(cpus.value, 4) if cpus else None,
            "memory_bytes": int(most.value) if most else None,
            "swap_bytes": int(swap.value) if swap else None,
            "cpuset": _cpuset(cgroups.chain("cpuset", root)),
            "namespaces": namespaces.read(root / "proc"),
            "denied": powers.denied(),
            "hidden": _hidden(root, cpu, memory),
        }
    )


def _cpuset(groups: Chain | None) -> str | None:
    if groups is None:
        return None
    own = groups.groups[0]
    return text(own / "cpuset.cpus.effective") or text(own / "cpuset.effective_cpus")


def _hidden(root: Path, cpu: Chain | None, memory: Chain | None) -> list[str]:
    found = []
    if cpu is None or memory is None:
        found.append("CPU quota, throttling and memory limit: no control group can be read here")
    elif not (cpu.whole and memory.whole):
        found.append(
            "CPU quota, throttling and memory limit of the control groups above the topmost that "
            "is seen here: they may bound this run, unsaid"
        )
    if not namespaces.all_processes_visible(root / "proc"):
        found.append(
            "processes of others (PID namespace, or hidepid): a neighbour shows only on the CPUs "
            "under test, where kernel threads cannot be told from it"
        )
        if _faked(root):
            found.append("CPU times of others: /proc/stat is that of a container (lxcfs)")
    return found


def _faked(root: Path) -> bool:
    """Whether /proc/stat tells of this container alone."""
    return any(
        line.target == "/proc/stat" and "lxcfs" in f"{line.fstype} {line.source}"
        for line in mountinfo.read(root / "proc")
    )


def warnings(machine: Machine) -> list[str]:
    """What of the confinement moves figures, or keeps us from seeing what moves them."""
    found = machine.confinement
    if found is None:
        return []
    said = [f"cannot be seen here: {what}" for what in found.hidden]
    if found.cpus is not None and found.cpus < len(machine.cpu_order):
        said.append(
            f"this control group may use {found.cpus:.2f} CPUs in all ({quota_file()}): cells on "
            f"more will be throttled, and what is throttled is invalid"
        )
    if found.cpus_found is not None:
        said.append(
            f"a CPU quota that cannot be seen here leaves about {found.cpus_found:.2f} CPUs in "
            f"all: cells that use as much are invalid"
        )
    if machine.usable_memory < machine.memory_bytes:
        said.append(
            f"this control group may use {machine.usable_memory >> 20} MiB of the machine's "
            f"{machine.memory_bytes >> 20} MiB: file systems in memory are sized by that"
        )
    if reason := found.denied.get("drop caches"):
        said.append(f"caches are not dropped before a cell: {reason}")
    return said


def quota_file() -> Path | None:
    """The file with the smallest CPU quota; None without one."""
    quota = cgroups.cpus(cgroups.chain("cpu"))
    return quota.file if quota else None


class Quotas:
    """Watches whether a CPU quota stops the groups of this process."""

    def __init__(self, groups: Chain | None = None, hidden: float | None = None) -> None:
        """`hidden`: for how many CPUs' time a quota suffices that counts nothing here."""
        self._hidden = hidden
        self._groups = groups or cgroups.chain("cpu")
        self._before = self._now()

    def _now(self) -> Mapping[Path, Throttled]:
        return cgroups.throttled(self._groups)

    def judge(self, outcome: Outcome, cpus: int, wall: float) -> None:
        """Enter how long they were stopped since this object was made, `wall` seconds ago.

        An outcome on `cpus` CPUs that lost more than MOST_THROTTLED of their time is invalid.
        """
        if self._hidden is not None and outcome.status == "ok" and outcome.seconds:
            used = (outcome.own_cpu_seconds or 0) / outcome.seconds
            if used > _NEAR * self._hidden:
                outcome.status = "invalid"
                outcome.reason = (
                    f"the cell used {used:.2f} CPUs, and a CPU quota that cannot be seen here "
                    f"leaves it about {self._hidden:.2f}; measure outside of it"
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
        if outcome.status == "ok" and counted.seconds > MOST_THROTTLED * cpus * wall:
            outcome.status = "invalid"
            outcome.reason = (
                f"a CPU quota stopped the cell's group {counted.times} times in {wall:.2f} s, for "
                f"{counted.seconds:.2f} s summed over CPUs (cpu.stat of {group}); raise the quota, "
                f"or measure fewer cores"
            )
