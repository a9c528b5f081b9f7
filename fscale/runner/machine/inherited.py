# SPDX-License-Identifier: GPL-2.0-only
"""Reads what this process inherited from its caller that changes figures: nice, limits, cgroups.

Loads inherit it, too, and it is not of the machine: another shell may give other figures.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from fscale.model.perfstat import cpu_list
from fscale.model.results import Machine
from fscale.system import cgroups, environment
from fscale.system.executor import Executor
from fscale.system.sysfs import text

_SELF = Path("/proc/self")
_PRELOADS = Path("/etc/ld.so.preload")
_POLICIES = {
    os.SCHED_FIFO: "SCHED_FIFO",
    os.SCHED_RR: "SCHED_RR",
    os.SCHED_BATCH: "SCHED_BATCH",
    os.SCHED_IDLE: "SCHED_IDLE",
}
# A container has the first, and what it measures is right for containers; each way to log in has
# the others, which change few figures.
_QUIET = ("seccomp", *environment.soft_limits())
_NODES = Path("/sys/devices/system/node/has_memory")


def read() -> dict[str, str]:
    """Return what differs from the state of a plain shell, and limits that have no plain value."""
    policy = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK
    status = dict(
        line.split(":", 1) for line in (text(_SELF / "status") or "").splitlines() if ":" in line
    )
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    found = {
        "nice": str(nice) if nice else None,
        "scheduling": None if policy == os.SCHED_OTHER else _POLICIES.get(policy, str(policy)),
        "io_priority": _io_priority(),
        "timer_slack": _unless(text(_SELF / "timerslack_ns"), "50000"),
        "memory_policy": _memory_policy(text(_SELF / "numa_maps")),
        "memory_nodes": _memory_nodes(status.get("Mems_allowed_list", "")),
        "personality": _unless(text(_SELF / "personality"), "00000000"),
        "transparent_hugepages": _unless(status.get("THP_enabled", "").strip() or None, "1"),
        "seccomp": _unless(status.get("Seccomp", "").strip() or None, "0"),
        "preloads": " ".join((text(_PRELOADS) or "").split()) or None,
        **{f"{name} limit": str(most) for name, most in environment.resource_limits().items()},
        "stack size": environment.odd_stack(),
        **{name: str(most) for name, most in environment.soft_limits().items()},
        **cgroups.settings(),
    }
    return {name: value for name, value in found.items() if value is not None}


def _unless(value: str | None, plain: str) -> str | None:
    return None if value == plain else value


def _io_priority() -> str | None:
    """Return the I/O class and priority, such as `idle`; None if the caller set none."""
    said = Executor().run(["ionice", "-p", str(os.getpid())]).strip()
    return None if said.startswith("none") else said


def _memory_nodes(allowed: str) -> str | None:
    """Return the NUMA nodes whose memory this process may use; None if all."""
    usable, every = cpu_list(allowed.strip()), cpu_list(text(_NODES) or "")
    return None if set(every) <= set(usable) else allowed.strip()


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
