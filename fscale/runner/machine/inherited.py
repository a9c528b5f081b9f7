# SPDX-License-Identifier: GPL-2.0-only
"""Reads what this process inherited from its caller that changes figures: nice, limits, preloads.

Loads inherit it, too, and it is not of the machine: another shell may give other figures.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from fscale.model.results import Machine
from fscale.system import environment
from fscale.system.sysfs import text

_SELF = Path("/proc/self")
_PRELOADS = Path("/etc/ld.so.preload")
_POLICIES = {
    os.SCHED_FIFO: "SCHED_FIFO",
    os.SCHED_RR: "SCHED_RR",
    os.SCHED_BATCH: "SCHED_BATCH",
    os.SCHED_IDLE: "SCHED_IDLE",
}
_QUIET = ("seccomp",)  # a container has it, and what it measures is right for containers


def read() -> dict[str, str]:
    """Return what differs from the state of a plain shell, by name."""
    policy = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK
    status = dict(
        line.split(":", 1) for line in (text(_SELF / "status") or "").splitlines() if ":" in line
    )
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    found = {
        "nice": str(nice) if nice else None,
        "scheduling": None if policy == os.SCHED_OTHER else _POLICIES.get(policy, str(policy)),
        "memory_policy": _memory_policy(text(_SELF / "numa_maps")),
        "personality": _unless(text(_SELF / "personality"), "00000000"),
        "transparent_hugepages": _unless(status.get("THP_enabled", "").strip() or None, "1"),
        "seccomp": _unless(status.get("Seccomp", "").strip() or None, "0"),
        "preloads": " ".join((text(_PRELOADS) or "").split()) or None,
        **{f"{name} limit": str(most) for name, most in environment.resource_limits().items()},
    }
    return {name: value for name, value in found.items() if value is not None}


def _unless(value: str | None, plain: str) -> str | None:
    return None if value == plain else value


def _memory_policy(maps: str | None) -> str | None:
    """Return the NUMA policy of the first mapping, such as `bind:0`; None for the default."""
    words = (maps or "").split(maxsplit=2)
    return _unless(words[1], "default") if len(words) > 1 else None


def warnings(machine: Machine, variables: Mapping[str, str]) -> list[str]:
    """Return warnings about what the caller's shell changes, or would change."""
    told = [f"{name} {value}" for name, value in machine.inherited.items() if name not in _QUIET]
    found = []
    if told:
        found.append(
            f"the caller of this run passed on {', '.join(told)}: loads inherit it, so compare "
            f"only with runs that were started likewise"
        )
    if names := environment.influential(variables):
        found.append(
            f"{', '.join(names)}: loads and tools get no such variable of the caller; name it in "
            f"the command of a load that needs it (env NAME=VALUE ...)"
        )
    return found
