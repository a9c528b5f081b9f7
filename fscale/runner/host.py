# SPDX-License-Identifier: GPL-2.0-only
"""The machine: its CPUs and their order, what it says about itself, and taking CPUs off."""

import contextlib
import json
import os
import platform
from pathlib import Path
from typing import Literal

from fscale.model.errors import FscaleError
from fscale.model.paths import is_root
from fscale.model.results import Cpu, Machine
from fscale.runner.machine.journal import Journal
from fscale.runner.machine.settings import CPUS, CpuOffline
from fscale.system.executor import Executor

Control = Literal["hotplug", "affinity"]


def _lscpu(*arguments: str) -> list[dict[str, object]]:
    out = Executor().run(["lscpu", "--json", *arguments])
    rows: list[dict[str, object]] = next(iter(json.loads(out).values()))
    return rows


def topology() -> list[Cpu]:
    """The online CPUs as lscpu sees them."""
    rows = _lscpu("--online", "--extended=CPU,CORE,SOCKET,NODE")

    def number(value: object) -> int:
        return int(str(value)) if value not in (None, "-") else 0

    return [
        Cpu(**{k: number(row.get(k)) for k in ("cpu", "core", "socket", "node")}) for row in rows
    ]


def cpu_order(cpus: list[Cpu]) -> list[int]:
    """The order in which CPUs join a measurement.

    The physical cores of socket 0, then those of socket 1 and so on; the second hardware threads
    of all cores come last, in the same order.
    """
    seen: dict[tuple[int, int], int] = {}
    ranked = []
    for cpu in sorted(cpus, key=lambda c: c.cpu):
        thread = seen.get((cpu.socket, cpu.core), 0)
        seen[cpu.socket, cpu.core] = thread + 1
        ranked.append((thread, cpu.socket, cpu.node, cpu.core, cpu.cpu))
    return [rank[-1] for rank in sorted(ranked)]


def core_counts(asked: list[int] | Literal["all", "powers"], available: int) -> list[int]:
    """The core counts of a suite on this machine; FscaleError when one is more than there are."""
    if asked == "all":
        return list(range(1, available + 1))
    if asked == "powers":
        counts = {1 << n for n in range(available.bit_length()) if 1 << n <= available}
        return sorted(counts | {available})
    for count in asked:
        if count < 1:
            raise FscaleError("a measurement needs at least 1 core")
        if count > available:
            raise FscaleError(
                f"{count} cores are asked for, but this machine has {available} online; "
                f"give --cores up to {available}"
            )
    return sorted(set(asked))


def _text(path: Path) -> str | None:
    with contextlib.suppress(OSError):
        return path.read_text().strip()
    return None


def read_machine() -> Machine:
    """What the machine says about itself."""
    said = {str(row["field"]).rstrip(":"): str(row["data"]) for row in _flat(_lscpu())}
    cpus = topology()
    governors = {_text(path) for path in CPUS.glob("cpu[0-9]*/cpufreq/scaling_governor")} - {None}
    vulnerabilities = sorted((CPUS / "vulnerabilities").glob("*"))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Machine(
        hostname=platform.node(),
        kernel=platform.release(),
        kernel_cmdline=_text(Path("/proc/cmdline")) or "",
        architecture=platform.machine(),
        cpu_model=said.get("Model name", "unknown"),
        memory_bytes=memory,
        topology=cpus,
        cpu_order=cpu_order(cpus),
        governor=",".join(sorted(g for g in governors if g)) or None,
        mitigations={path.name: _text(path) or "" for path in vulnerabilities},
        virtualization=said.get("Hypervisor vendor") or said.get("Virtualization type"),
        guest=json.loads(os.environ["FSCALE_GUEST"]) if "FSCALE_GUEST" in os.environ else None,
    )


def _flat(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    # lscpu nests its rows since util-linux 2.37.
    flat = []
    for row in rows:
        flat.append(row)
        children = row.get("children")
        if isinstance(children, list):
            flat += _flat(children)
    return flat


def warnings(machine: Machine) -> list[str]:
    """What makes figures from this machine doubtful."""
    found = []
    if machine.governor and machine.governor != "performance":
        found.append(f"CPU frequency governor is {machine.governor}, not performance")
    if machine.virtualization:
        found.append(f"runs in a virtual machine ({machine.virtualization}): CPUs may be shared")
    if machine.guest:
        found.append(f"measured in a guest ({machine.guest['label']})")
    if _text(CPUS / "smt" / "active") == "1":
        found.append("SMT is on: the counts beyond the physical cores add hardware threads")
    swaps = (_text(Path("/proc/swaps")) or "").splitlines()[1:]
    if swaps:
        found.append("swap is on: memory-backed file systems may be swapped out")
    load = os.getloadavg()[0]
    if load > 0.5:
        found.append(f"the load average was {load:.1f} at the start")
    return found


def hotplug_possible() -> bool:
    """Whether some CPU can be taken off by us."""
    return is_root() and any(os.access(path, os.W_OK) for path in CPUS.glob("cpu[0-9]*/online"))


def cgroup_root() -> Path | None:
    """Where cgroup v2 is mounted and we may make groups, if anywhere."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, rest = line.partition(" - ")
        root = Path(fields.split()[4])
        if rest.split()[0] == "cgroup2" and os.access(root, os.W_OK):
            return root
    return None


class Cpus:
    """Which CPUs are online: those under test and no others, where hotplug is possible."""

    def __init__(self, order: list[int], journal: Journal) -> None:
        self.order = order
        self._journal = journal
        self._off: dict[int, int] = {}
        self.control: Control = "hotplug" if hotplug_possible() else "affinity"

    def select(self, count: int) -> list[int]:
        """Leave the first `count` CPUs of the order online and return them.

        When the kernel refuses, all CPUs come back and `control` becomes "affinity".
        """
        wanted = self.order[:count]
        if self.control == "hotplug":
            for cpu in wanted:
                self._bring_back(cpu)
            try:
                for cpu in self.order[count:]:
                    # CPU 0 has no such file on most machines: it stays.
                    if cpu not in self._off and (CPUS / f"cpu{cpu}" / "online").exists():
                        self._off[cpu] = self._journal.next
                        self._journal.apply(CpuOffline(cpu=cpu))
            except OSError:
                self.control = "affinity"
                for cpu in list(self._off):
                    self._bring_back(cpu)
        return wanted

    def _bring_back(self, cpu: int) -> None:
        if cpu in self._off:
            self._journal.undo(self._off.pop(cpu))
