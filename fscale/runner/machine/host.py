# SPDX-License-Identifier: GPL-2.0-only
"""The machine: its CPUs and their order, what it says about itself, and taking CPUs off."""

import json
import os
import platform
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import NoReturn, get_args

from fscale.model.errors import FscaleError
from fscale.model.perfstat import cpu_list
from fscale.model.results import Control, Cpu, CpuType, Machine
from fscale.model.topology import cpu_order, machine_layout
from fscale.runner.machine import confinement, kernel, tuning
from fscale.runner.machine.journal import Journal
from fscale.runner.machine.settings import CpuOffline, NotUndone, insist
from fscale.system import cgroups, powers
from fscale.system.executor import Executor
from fscale.system.powers import CPUS
from fscale.system.sysfs import ranges, text

DEVICES = Path("/sys/devices")
_TYPES: tuple[CpuType, ...] = get_args(CpuType)

# Seconds that a CPU is asked for which the kernel does not take off.
PATIENCE = 10.0
PATIENCE_AFTERWARDS = 1.0


def _lscpu(*arguments: str) -> list[dict[str, object]]:
    out = Executor().run(["lscpu", "--json", *arguments])
    rows: list[dict[str, object]] = next(iter(json.loads(out).values()))
    return rows


def topology() -> list[Cpu]:
    """The online CPUs as lscpu sees them, and what tells fast cores from slow ones."""
    rows = _lscpu("--online", "--extended=CPU,CORE,SOCKET,NODE")
    types = {
        cpu: name
        for name in _TYPES
        for cpu in cpu_list(text(DEVICES / f"cpu_{name}" / "cpus") or "")
    }
    return [_cpu(row, types) for row in rows]


def _cpu(row: dict[str, object], types: Mapping[int, CpuType]) -> Cpu:
    def number(key: str, unknown: int) -> int:
        value = row.get(key)
        return int(str(value)) if value not in (None, "-") else unknown

    cpu = number("cpu", 0)
    place = CPUS / f"cpu{cpu}"
    # Not by lscpu: where it knows no frequency, its JSON is none.
    khz = int(text(place / "cpufreq" / "cpuinfo_max_freq") or 0)
    # A CPU whose core is unknown, as in some virtual machines, is a core of its own.
    return Cpu(
        cpu=cpu,
        core=number("core", cpu),
        socket=number("socket", 0),
        node=number("node", 0),
        type=types.get(cpu),
        capacity=int(text(place / "cpu_capacity") or 0) or None,
        max_mhz=khz / 1000 if khz else None,
    )


def read_machine() -> Machine:
    """What the machine says about itself.

    The CPUs to use are those that this process may run on: neither its affinity (taskset) nor its
    cpuset is overstepped.
    """
    said = {str(row["field"]).rstrip(":"): str(row["data"]) for row in _flat(_lscpu())}
    cpus = topology()
    allowed = os.sched_getaffinity(0)
    governors = {text(path) for path in CPUS.glob("cpu[0-9]*/cpufreq/scaling_governor")} - {None}
    vulnerabilities = sorted((CPUS / "vulnerabilities").glob("*"))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Machine(
        hostname=platform.node(),
        kernel=platform.release(),
        build=kernel.read(),
        kernel_cmdline=text(Path("/proc/cmdline")) or "",
        architecture=platform.machine(),
        cpu_model=said.get("Model name", "unknown"),
        memory_bytes=memory,
        topology=cpus,
        cpu_order=cpu_order(cpus, allowed & {cpu.cpu for cpu in cpus}),
        governor=",".join(sorted(g for g in governors if g)) or None,
        tuning=tuning.read(),
        confinement=confinement.read(),
        mitigations={path.name: text(path) or "" for path in vulnerabilities},
        virtualization=said.get("Hypervisor vendor") or said.get("Virtualization type"),
        boots=_boots(),
        guest=json.loads(os.environ["FSCALE_GUEST"]) if "FSCALE_GUEST" in os.environ else None,
    )


def _boots() -> list[str] | None:
    boot = text(Path("/proc/sys/kernel/random/boot_id"))
    return [boot] if boot else None


def _flat(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    # lscpu nests its rows since util-linux 2.37.
    flat = []
    for row in rows:
        flat.append(row)
        children = row.get("children")
        if isinstance(children, list):
            flat += _flat(children)
    return flat


def denied(machine: Machine) -> list[int]:
    """The online CPUs that the affinity or the cpuset of this process kept from use."""
    return sorted({cpu.cpu for cpu in machine.topology} - set(machine.cpu_order))


def warnings(machine: Machine) -> list[str]:
    """What makes figures from this machine doubtful."""
    found = []
    if others := denied(machine):
        found.append(
            f"CPUs {ranges(others)} are not used and all CPUs stay online: the "
            f"affinity (taskset) or the cpuset of this process does not allow them, so they are "
            f"others'; what runs there shares caches and the kernel's locks with the cells"
        )
    found += confinement.warnings(machine)
    if apart := _apart(machine):
        found.append(
            f"CPUs {ranges(apart)} are kept from the scheduler or its tick (isolcpus, nohz_full): "
            f"they are not like the others, and an application's threads do not spread over them"
        )
    if own_cgroup() is None:
        found.append(
            "no group of cgroup v2 can be made here: the CPU time of an application is not told "
            "from that of others"
        )
    if machine.governor and machine.governor != "performance":
        found.append(f"CPU frequency governor is {machine.governor}, not performance")
    if machine.build and machine.build.debug:
        found.append(
            f"the kernel has {', '.join(machine.build.debug)}: its figures are those of debugging"
        )
    if machine.virtualization:
        found.append(f"runs in a virtual machine ({machine.virtualization}): CPUs may be shared")
    if machine.guest:
        found.append(f"measured in a guest ({machine.guest['label']})")
        if stood := machine.guest.get("stood_still"):
            found.append(f"{stood} boots of the guest stood still; it was booted again")
    if text(CPUS / "smt" / "active") == "1":
        found.append("SMT is on: the counts beyond the physical cores add hardware threads")
    there = machine_layout(machine)
    if there.kinds:
        groups = [
            f"{end - begin} (CPUs {ranges(sorted(machine.cpu_order[begin:end]))})"
            for begin, end in pairwise((0, *there.kinds))
        ]
        found.append(
            f"the cores are unequal: {groups[0]} are fast, {', then '.join(groups[1:])} slower; "
            f"linear scaling is by the fast ones"
        )
    swaps = (text(Path("/proc/swaps")) or "").splitlines()[1:]
    if swaps:
        found.append("swap is on: memory-backed file systems may be swapped out")
    load = os.getloadavg()[0]
    if load > 0.5:
        found.append(f"the load average was {load:.1f} at the start")
    return found


def turbo_warning(machine: Machine, counts: list[int]) -> list[str]:
    """What turbo does to a curve; nothing where it is off or unknown, or there is no curve."""
    if len(counts) < 2 or not (machine.tuning and machine.tuning.turbo):
        return []
    return [
        "turbo is on: one busy core may run faster than many; read curves against the control, "
        "which shows what the machine itself gives"
    ]


def _apart(machine: Machine) -> list[int]:
    """The CPUs of the plan that are isolated or without a tick."""
    tuning_ = machine.tuning
    lists = [tuning_.isolated_cpus, tuning_.nohz_full_cpus] if tuning_ else []
    apart = {cpu for text_ in lists if text_ for cpu in cpu_list(text_)}
    return sorted(apart & set(machine.cpu_order))


def own_cgroup() -> Path | None:
    """Our own group of cgroup v2, where groups can be made below it; None where none can.

    A cell stays below it, so that no quota or limit of it, or of one above, is left.
    """
    groups = cgroups.chain("")
    if groups is None or not os.access(groups.groups[0], os.W_OK):
        return None
    # Below a threaded group, or one with threaded controllers, a new group cannot hold a process.
    own = groups.groups[0]
    return own if text(own / "cgroup.type") in (None, "domain") else None


def control(machine: Machine, measured_by: Control | None = None) -> Control:
    """How a run keeps to its CPUs; FscaleError where that cannot be as its finished cells did.

    `measured_by`: the control of the cells that a resumed run has already.
    """
    # CPUs that are not ours to use are not ours to take off.
    alone = powers.no_hotplug() is None and not denied(machine)
    if measured_by == "hotplug" and not alone:
        raise FscaleError(
            "the run contains cells that were measured with all other CPUs off line, and this "
            "process cannot take CPUs off (that needs root, a writable /sys, and an affinity and "
            "cpuset with all CPUs); resume it as it began, or use another --output"
        )
    return "hotplug" if alone and measured_by != "affinity" else "affinity"


def _online() -> dict[int, bool]:
    """Which of the CPUs that can be taken off are online."""
    return {int(p.parent.name[3:]): text(p) == "1" for p in CPUS.glob("cpu[0-9]*/online")}


class Refused(FscaleError):  # noqa: N818 - it says what happened
    """The kernel does not take a CPU off line, or does not bring it back."""


class Cpus:
    """Which CPUs are online: those under test and no others, where hotplug is possible.

    A run has one way to keep to its CPUs, from `settle` to its end: figures of both ways are not
    those of one machine.
    """

    def __init__(
        self, machine: Machine, journal: Journal, measured_by: Control | None = None
    ) -> None:
        """`measured_by`: the control of the cells that a resumed run has already."""
        self.order = machine.cpu_order
        self.warnings: list[str] = []
        self._journal = journal
        self._measured_by = measured_by
        self._off: dict[int, int] = {}
        self._found = _online()
        self._wanted = dict(self._found)
        self._patience = PATIENCE
        self.control = control(machine, measured_by)

    def settle(self, fewest: int) -> None:
        """Try to leave `fewest` CPUs online; where the kernel refuses, the run is by affinity.

        Raises Refused where cells of the run have been measured by hotplug already.
        """
        if self.control != "hotplug" or fewest >= len(self.order) or self._journal.do.dry:
            return
        try:
            self.select(fewest)
        except Refused as error:
            if self._measured_by == "hotplug":
                raise Refused(
                    f"{error}, as it did when the run began; try again later, or use another "
                    f"--output"
                ) from None
            for cpu in list(self._off):
                self._bring_back(cpu)
            self.control = "affinity"
            self.warnings = [
                f"{error}: in this run all CPUs stay online, also those not under test"
            ]
        self.all()

    def all(self) -> None:
        """Bring all CPUs back; raises as `select`."""
        self.select(len(self.order))

    def select(self, count: int) -> list[int]:
        """Leave the first `count` CPUs of the order online and return them.

        Raises Refused when the kernel refuses for some seconds, and FscaleError when a CPU is off
        line that somebody else has taken off.
        """
        wanted = self.order[:count]
        self._wanted = dict(self._found)
        if self.control == "hotplug":
            for cpu in wanted:
                self._bring_back(cpu)
            for cpu in self.order[count:]:
                # CPU 0 has no such file on most machines: it stays.
                if (CPUS / f"cpu{cpu}" / "online").exists():
                    self._take_off(cpu)
                    self._wanted[cpu] = False
        if changed := self.changed():
            raise FscaleError(f"{changed}: end the program that did it, then measure again")
        return wanted

    def changed(self) -> str | None:
        """Which CPUs are not as `select` left them, in words; None when all are."""
        if self._journal.do.dry:
            return None
        now = _online()
        differ = [
            cpu for cpu in sorted(now | self._wanted) if now.get(cpu) != self._wanted.get(cpu)
        ]
        said = [
            f"CPUs {ranges(cpus)} are {word}"
            for word, cpus in (
                ("online", [cpu for cpu in differ if now.get(cpu)]),
                ("off line", [cpu for cpu in differ if not now.get(cpu)]),
            )
            if cpus
        ]
        return f"{' and '.join(said)}, which this run did not do" if said else None

    def _take_off(self, cpu: int) -> None:
        setting = CpuOffline(cpu=cpu)

        def attempt() -> None:
            if cpu in self._off:  # it was refused, or somebody has brought it back
                setting.apply(self._journal.do)
            else:
                self._off[cpu] = self._journal.next
                self._journal.apply(setting)

        if cpu in self._off and not setting.online:
            return
        try:
            if refused := insist(attempt, self._patience):
                self._warn(
                    f"the kernel refused for a while to take CPU {cpu} off line "
                    f"({refused.strerror}), and did it then"
                )
            self._patience = PATIENCE
        except OSError as error:
            # Whoever has waited once does not wait as long before every other cell.
            self._patience = PATIENCE_AFTERWARDS
            self._refuse(f"the kernel refuses to take CPU {cpu} off line ({error.strerror})")

    def _bring_back(self, cpu: int) -> None:
        if cpu in self._off:
            try:
                self._journal.undo(self._off[cpu])
            except NotUndone as error:
                self._refuse(str(error))
            del self._off[cpu]

    def _refuse(self, text: str) -> NoReturn:
        self._warn(
            f"{text}: `fscale run` tries cells that need it again at its end; what is missing "
            f"then, the same command measures later"
        )
        raise Refused(text) from None

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)
