# SPDX-License-Identifier: GPL-2.0-only
"""Settings of the machine that move its figures: turbo, C-states, NUMA balancing, huge pages."""

import re
from pathlib import Path

from fscale.model.results import Tuning
from fscale.system.sysfs import text


def _chosen(path: Path) -> str | None:
    """What stands in brackets: `always [madvise] never` -> `madvise`."""
    found = re.search(r"\[(\w+)\]", text(path) or "")
    return found[1] if found else None


def _turbo(cpus: Path) -> bool | None:
    off = text(cpus / "intel_pstate" / "no_turbo")
    if off is not None:
        return off == "0"
    boost = text(cpus / "cpufreq" / "boost")
    return None if boost is None else boost == "1"


def _idle_states(cpus: Path) -> dict[str, bool]:
    states: dict[str, bool] = {}
    for path in sorted(cpus.glob("cpu[0-9]*/cpuidle/state*")):
        name = text(path / "name")
        if name is not None:
            states[name] = states.get(name, True) and text(path / "disable") != "1"
    return states


def read(root: Path = Path("/")) -> Tuning:
    """The settings as they are; `root` is where /proc and /sys are."""
    cpus = root / "sys/devices/system/cpu"
    huge = root / "sys/kernel/mm/transparent_hugepage"
    idle = cpus / "cpuidle"
    governor = text(idle / "current_governor") or text(idle / "current_governor_ro")
    return Tuning(
        turbo=_turbo(cpus),
        idle_driver=text(idle / "current_driver"),
        idle_governor=governor,
        idle_states=_idle_states(cpus),
        numa_balancing=text(root / "proc/sys/kernel/numa_balancing"),
        huge_pages=_chosen(huge / "enabled"),
        shmem_huge_pages=_chosen(huge / "shmem_enabled"),
    )
