# SPDX-License-Identifier: GPL-2.0-only
"""Reads the properties of the machine, warns about them, and takes CPUs offline."""

import json
import os
import platform
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import NoReturn, get_args

from fscale.model.errors import FscaleError
from fscale.model.perfstat import cpu_list
from fscale.model.results import Cpu, CpuControl, CpuType, Machine
from fscale.model.topology import cpu_order, machine_layout
from fscale.model.words import ranges
from fscale.runner.machine import affinity, confinement, inherited, kernel, tuning
from fscale.runner.machine.changes import CpuOffline, NotUndone, insist
from fscale.runner.machine.journal import Journal
from fscale.system import cgroups, powers
from fscale.system.executor import Executor
from fscale.system.powers import CPUS
from fscale.system.sysfs import text

DEVICES = Path("/sys/devices")
_TYPES: tuple[CpuType, ...] = get_args(CpuType)

# Seconds for which taking a CPU offline is retried if the kernel refuses; the second value applies
# after a CPU was refused once.
PATIENCE = 10.0
PATIENCE_AFTERWARDS = 1.0

_TIME_ZONES = 86400
"""by how many seconds the files of an archive may be of the future"""


def _lscpu(*arguments: str) -> list[dict[str, object]]:
    out = Executor().run(["lscpu", "--json", *arguments])
    rows: list[dict[str, object]] = next(iter(json.loads(out).values()))
    return rows


def topology() -> list[Cpu]:
    """Return the online CPUs as lscpu shows them, with what distinguishes fast and slow cores."""
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
    # Not from lscpu, whose JSON is invalid if it knows no frequency.
    khz = int(text(place / "cpufreq" / "cpuinfo_max_freq") or 0)
    # If the core of a CPU is unknown, as in some virtual machines, count it as a core of its own.
    return Cpu(
        cpu=cpu,
        core=number("core", cpu),
        socket=number("socket", 0),
        node=number("node", 0),
        type=types.get(cpu),
        l3=_l3(place),
        capacity=int(text(place / "cpu_capacity") or 0) or None,
        max_mhz=khz / 1000 if khz else None,
    )


def _l3(place: Path) -> int | None:
    """Return the lowest CPU that shares a CPU's L3 cache; None if sysfs shows no such cache."""
    for cache in place.glob("cache/index[0-9]*"):
        if text(cache / "level") == "3" and (shared := text(cache / "shared_cpu_list")):
            return min(cpu_list(shared))
    return None


def read_machine() -> Machine:
    """Read the properties of the machine.

    The CPUs to use are those allowed by the affinity (taskset) and the cpuset of this process.
    """
    lscpu = {str(row["field"]).rstrip(":"): str(row["data"]) for row in _flat(_lscpu())}
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
        cpu_model=lscpu.get("Model name", "unknown"),
        memory_bytes=memory,
        topology=cpus,
        cpu_order=cpu_order(cpus, allowed & {cpu.cpu for cpu in cpus}),
        governor=",".join(sorted(g for g in governors if g)) or None,
        tuning=tuning.read(),
        confinement=confinement.read(),
        inherited=inherited.read(),
        mitigations={path.name: text(path) or "" for path in vulnerabilities},
        virtualization=lscpu.get("Hypervisor vendor") or lscpu.get("Virtualization type"),
        boots=_boots(),
        guest=json.loads(os.environ["FSCALE_GUEST"]) if "FSCALE_GUEST" in os.environ else None,
    )


def _boots() -> list[str] | None:
    boot = text(Path("/proc/sys/kernel/random/boot_id"))
    return [boot] if boot else None


def _flat(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    # Since util-linux 2.37 lscpu nests its rows.
    flat = []
    for row in rows:
        flat.append(row)
        children = row.get("children")
        if isinstance(children, list):
            flat += _flat(children)
    return flat


def denied(machine: Machine) -> list[int]:
    """Return the online CPUs that the affinity or the cpuset of this process excludes."""
    ours = {*machine.cpu_order, *machine.kept_free}
    return sorted({cpu.cpu for cpu in machine.topology} - ours)


def why_denied(machine: Machine) -> str:
    """Say what excludes the CPUs of `denied`, and how to use isolated ones; empty without any."""
    others = denied(machine)
    isolated = {*cpu_list((machine.tuning and machine.tuning.isolated_cpus) or "")}
    why = []
    if kept := sorted(isolated.intersection(others)):
        usable = ranges(sorted({*machine.cpu_order, *machine.kept_free, *kept}))
        why.append(
            f"the kernel isolates CPUs {ranges(kept)} (isolcpus=), which only processes that ask "
            f"for them may use: taskset -c {usable} fscale ..."
        )
    if rest := sorted({*others} - isolated):
        why.append(
            f"the affinity (taskset) or the cpuset of this process excludes CPUs {ranges(rest)}"
        )
    return ", and ".join(why)


def warnings(machine: Machine) -> list[str]:
    """Return warnings about what makes figures of this machine unreliable."""
    problems = []
    if others := denied(machine):
        problems.append(
            f"CPUs {ranges(others)} are not used, because {why_denied(machine)}; so all CPUs stay "
            f"online, and what runs on those shares caches and kernel locks with the cells"
        )
    problems += confinement.warnings(machine)
    problems += inherited.warnings(machine, os.environ)
    if apart := _apart(machine):
        problems.append(
            f"CPUs {ranges(apart)} are excluded from load balancing or from the tick (isolcpus, "
            f"nohz_full): they behave differently from the others, and the threads of an "
            f"application do not spread over them"
        )
    if own_cgroup() is None:
        problems.append(
            "this process cannot make a cgroup (v2): the CPU time of an application cannot be "
            "distinguished from that of other processes"
        )
    if machine.governor and machine.governor != "performance":
        problems.append(f"CPU frequency governor is {machine.governor}, not performance")
    if machine.build and machine.build.debug:
        problems.append(
            f"the kernel was built with {', '.join(machine.build.debug)}, which makes it slower: "
            f"do not compare its figures with those of other builds"
        )
    if machine.virtualization:
        problems.append(f"runs in a virtual machine ({machine.virtualization}): CPUs may be shared")
    if machine.guest:
        problems.append(f"measured in a guest ({machine.guest['label']})")
        if stood := machine.guest.get("stood_still"):
            problems.append(f"{stood} boots of the guest hung; it was booted again")
    if text(CPUS / "smt" / "active") == "1":
        problems.append("SMT is on: core counts beyond the physical cores add hardware threads")
    there = machine_layout(machine)
    if there.kinds:
        groups = [
            f"{end - begin} (CPUs {ranges(sorted(machine.cpu_order[begin:end]))})"
            for begin, end in pairwise((0, *there.kinds))
        ]
        problems.append(
            f"the cores are unequal: {groups[0]} are fast, {', then '.join(groups[1:])} slower; "
            f"linear scaling refers to the fast ones"
        )
    swaps = (text(Path("/proc/swaps")) or "").splitlines()[1:]
    if swaps:
        problems.append("swap is on: file systems in memory may be swapped out")
    problems += clock_warning()
    load = os.getloadavg()[0]
    if load > 0.5:
        problems.append(f"the load average was {load:.1f} at the start")
    return problems


def clock_warning() -> list[str]:
    """Return a warning if nobody set the clock of this machine; else none."""
    clock = time.time()
    if clock > Path(__file__).stat().st_mtime - _TIME_ZONES:
        return []
    return [
        f"the clock says {datetime.fromtimestamp(clock, UTC):%Y-%m-%d}, which is before fscale was "
        f"installed: a history puts this run before others"
    ]


def turbo_warning(machine: Machine, counts: list[int]) -> list[str]:
    """Return a warning if turbo is on and affects a curve over `counts`; else none."""
    if len(counts) < 2 or not (machine.tuning and machine.tuning.turbo):
        return []
    return [
        "turbo is on: one busy core may run faster than many; compare curves with the control "
        "cells, which show how the machine itself scales"
    ]


def _apart(machine: Machine) -> list[int]:
    """Return the usable CPUs that are isolated or without a tick."""
    tuning_ = machine.tuning
    lists = [tuning_.isolated_cpus, tuning_.nohz_full_cpus] if tuning_ else []
    apart = {cpu for text_ in lists if text_ for cpu in cpu_list(text_)}
    return sorted(apart & set(machine.cpu_order))


def own_cgroup() -> Path | None:
    """Return this process's v2 cgroup, if groups can be made below it; else None.

    Cells run in groups below it, so that its limits and those of its ancestors apply to them.
    """
    groups = cgroups.chain("")
    if groups is None or not os.access(groups.groups[0], os.W_OK):
        return None
    # Below a threaded group, or one with threaded controllers, a new group can have no processes.
    own = groups.groups[0]
    return own if text(own / "cgroup.type") in (None, "domain") else None


def choose_cpu_control(machine: Machine, measured_by: CpuControl | None = None) -> CpuControl:
    """Choose how a run is restricted to its CPUs: by hotplug if possible, else by affinity.

    `measured_by` is how the existing cells of a resumed run were restricted.

    Raises:
        FscaleError: the existing cells need hotplug, and this process cannot do it.
    """
    # If some CPUs are excluded from this run, it must not take CPUs offline.
    alone = powers.no_hotplug() is None and not denied(machine)
    if measured_by == "hotplug" and not alone:
        raise FscaleError(
            "the run contains cells that were measured with all other CPUs offline, and this "
            "process cannot take CPUs offline (that needs root, a writable /sys, and an affinity "
            "and cpuset with all CPUs); resume it as it began, or use another --output"
        )
    return "hotplug" if alone and measured_by != "affinity" else "affinity"


def _online() -> dict[int, bool]:
    """Return, for each CPU that can be taken offline, whether it is online."""
    return {int(p.parent.name[3:]): text(p) == "1" for p in CPUS.glob("cpu[0-9]*/online")}


class HotplugRefused(FscaleError):  # noqa: N818 - it says what happened
    """The kernel refuses to take a CPU offline, or to bring it back."""


class Cpus:
    """Keeps the CPUs under test online and takes the others offline, if hotplug is possible.

    From `settle` to its end, a run uses either hotplug or affinity, because figures measured with
    one are not comparable with figures measured with the other.
    """

    def __init__(
        self, machine: Machine, journal: Journal, measured_by: CpuControl | None = None
    ) -> None:
        """`measured_by` is how the existing cells of a resumed run were restricted."""
        self.order = machine.cpu_order
        self.warnings: list[str] = []
        self._journal = journal
        self._measured_by = measured_by
        self._off: dict[int, int] = {}
        self._bound: list[affinity.Affinity] = []
        """what lost its last online CPU in this run, the first first"""
        self._initial = _online()
        self._wanted = dict(self._initial)
        self._allowed = os.sched_getaffinity(0)
        self._selected: list[int] = []
        self._patience = PATIENCE
        self.control = choose_cpu_control(machine, measured_by)

    def settle(self, fewest: int) -> None:
        """Try to leave only `fewest` CPUs online; if the kernel refuses, fall back to affinity.

        Raises:
            HotplugRefused: the kernel refuses, and the run already has cells measured by hotplug.
        """
        if self.control != "hotplug" or fewest >= len(self.order) or self._journal.do.dry:
            return
        try:
            self.select(fewest)
        except HotplugRefused as error:
            if self._measured_by == "hotplug":
                raise HotplugRefused(
                    f"{error}, but it did so when the run began; try again later, or use another "
                    f"--output"
                ) from None
            for cpu in list(self._off):
                self._bring_back(cpu)
            self.control = "affinity"
            self.warnings = [
                f"{error}: all CPUs stay online in this run, also those that are not under test"
            ]
        self.all()

    def all(self) -> None:
        """Bring all CPUs online; raises the same errors as `select`."""
        self.select(len(self.order))

    def select(self, count: int) -> list[int]:
        """Leave the first `count` CPUs of the order online and return them.

        Raises:
            HotplugRefused: the kernel refuses to change a CPU for some seconds.
            FscaleError: another program has taken a CPU offline, or online.
        """
        wanted = self._selected = self.order[:count]
        self._wanted = dict(self._initial)
        if self.control == "hotplug":
            for cpu in wanted:
                self._bring_back(cpu)
            # On most machines CPU 0 has no such file and stays online.
            going = [cpu for cpu in self.order[count:] if (CPUS / f"cpu{cpu}" / "online").exists()]
            self._keep_affinity(going)
            for cpu in going:
                self._take_off(cpu)
                self._wanted[cpu] = False
        if changed := self.changed():
            raise FscaleError(f"{changed}; end the program that did it, then measure again")
        return wanted

    def changed(self) -> str | None:
        """Describe the CPUs that are not in the state that `select` left; None if all are.

        When a cpuset shrinks, the kernel moves workers to the CPUs that are left of it.
        """
        if self._journal.do.dry:
            return None
        if lost := self._allowed.intersection(self._selected) - os.sched_getaffinity(0):
            return f"CPUs {ranges(sorted(lost))} were taken from the cpuset or affinity of this run"
        now = _online()
        differ = [
            cpu for cpu in sorted(now | self._wanted) if now.get(cpu) != self._wanted.get(cpu)
        ]
        changes = [
            f"CPUs {ranges(cpus)} are {word}"
            for word, cpus in (
                ("online", [cpu for cpu in differ if now.get(cpu)]),
                ("offline", [cpu for cpu in differ if not now.get(cpu)]),
            )
            if cpus
        ]
        return f"{' and '.join(changes)}, which this run did not cause" if changes else None

    def _keep_affinity(self, going: list[int]) -> None:
        """Restore what is bound to CPUs that are back, and record what loses its last one now."""
        do = self._journal.do
        if do.dry:
            return
        online = {cpu for cpu, state in _online().items() if state} | {0}
        for kept in reversed(self._bound):
            kept.within(online).undo(do)
        bound = affinity.find(online, online.difference(going)).without(self._bound)
        if bound:
            self._journal.apply(bound)
            self._bound.append(bound)

    def _take_off(self, cpu: int) -> None:
        setting = CpuOffline(cpu=cpu)

        def attempt() -> None:
            if cpu in self._off:  # the kernel refused, or another program brought it back
                setting.apply(self._journal.do)
            else:
                self._off[cpu] = self._journal.next
                self._journal.apply(setting)

        if cpu in self._off and not setting.online:
            return
        try:
            if refused := insist(attempt, self._patience):
                self._warn(
                    f"the kernel refused to take CPU {cpu} offline ({refused.strerror}) and did it "
                    f"after some attempts"
                )
            self._patience = PATIENCE
        except OSError as error:
            # After one long wait, wait less before each of the other cells.
            self._patience = PATIENCE_AFTERWARDS
            self._refuse(f"the kernel refuses to take CPU {cpu} offline ({error.strerror})")

    def _bring_back(self, cpu: int) -> None:
        if cpu in self._off:
            try:
                self._journal.undo(self._off[cpu])
            except NotUndone as error:
                self._refuse(str(error))
            del self._off[cpu]

    def _refuse(self, text: str) -> NoReturn:
        self._warn(
            f"{text}: `fscale run` retries the affected cells at its end; to measure what is still "
            f"missing then, repeat the same command"
        )
        raise HotplugRefused(text) from None

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)
