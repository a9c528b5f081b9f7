# SPDX-License-Identifier: GPL-2.0-only
"""The facts of a run that its figures depend on, by key, and the effect of a difference in one.

One table decides both whether a run can be resumed and whether the figures of two runs can be
compared. docs/reference/comparison-outputs.md explains it.
"""

import functools
import hashlib
import json
import math
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from fscale.model import crew
from fscale.model.results import UNKNOWN, Machine, Run
from fscale.model.store import BENCH

Then = Literal["refuse", "note", "ignore"]
TOLERANCE = 0.05
"""The memory size differs a little between kernels, and so do sizes that are a share of it."""


@dataclass(frozen=True)
class Rule:
    """The effect of a difference in facts whose whole key matches the pattern `keys`."""

    keys: str
    on_resume: Then
    """when a call resumes the run in its results directory"""
    on_compare: Then
    """when the figures of two runs are compared; the user can allow what is refused"""


# The first match applies. What a comparison judges is never refused: kernels, their builds,
# modules.
TABLE = (
    Rule(
        r"suite\.(warmup|min_window|max_stock|latency|windows|window_ops|precision)",
        "refuse",
        "refuse",
    ),
    Rule(r"suite\.(workers_per_cpu|placement|keep_free)", "refuse", "refuse"),
    Rule(r"suite\.order", "refuse", "note"),
    Rule(r"suite\.remeasure", "ignore", "ignore"),
    Rule(r"suite\..*", "refuse", "ignore"),
    Rule(r"filesystems\..*\.geometry\..*", "ignore", "refuse"),
    Rule(r"filesystems\..*\.effective\.mount_options", "ignore", "note"),
    Rule(
        r"filesystems\..*\.(kernel|mkfs|mount_options|size|max_size|partitions|settings|aged)",
        "refuse",
        "refuse",
    ),
    Rule(r"filesystems\..*", "refuse", "ignore"),
    Rule(r"media\..*\.queue\..*", "refuse", "note"),
    Rule(r"media\..*\.source", "ignore", "note"),
    Rule(
        r"media\..*\.(kind|size|max_size|backing|direct_io|latency_ns|queue_depth|path)",
        "refuse",
        "refuse",
    ),
    Rule(r"media\..*", "refuse", "ignore"),
    Rule(r"workloads\..*\.definition", "refuse", "refuse"),
    Rule(r"loads\..*", "refuse", "refuse"),
    # On resume, the digest of the microbenchmark covers the workloads.
    Rule(r"workloads\..*", "ignore", "refuse"),
    Rule(r"machine\.hosts", "ignore", "refuse"),
    Rule(r"machine\.(debug|model\..*)", "refuse", "refuse"),
    Rule(r"machine\.(kernel|build|cpu_order|guest)", "refuse", "ignore"),
    Rule(
        r"machine\.(cpu_model|virtualization|mitigations|cpus|cores|max_mhz|memory_bytes|taint)",
        "ignore",
        "note",
    ),
    Rule(r"machine\.inherited\.most .*", "ignore", "note"),
    Rule(r"machine\..*", "refuse", "note"),
    Rule(
        r"(fscale-bench|fscale-age|fscale-sim|qemu program|mkfs of |program of |libc).*",
        "refuse",
        "note",
    ),
    Rule(r"(module|kernel build|kernel image).*", "refuse", "ignore"),
    Rule(r"revision", "refuse", "note"),
    Rule(r"seed", "refuse", "ignore"),
)

# If one of these is absent, it is off. Other absent facts may be unknown to an older fscale.
_ABSENT_IS_NONE = ("suite.", "filesystems.", "media.", "machine.inherited.")
_NOT_TOLD: tuple[Any, ...] = (None, 0, "", {}, UNKNOWN)
"""facts of the machine that the files of an imported run do not tell"""
_SAYS_WHERE_FROM = ("BOOT_IMAGE=", "initrd=", "root=", "resume=")
_TOOLS = (
    *(BENCH, "fscale-age", "fscale-sim", "qemu program", "mkfs of ", "program of ", "libc"),
    *("module ", "kernel build ", "kernel image"),
)
_WORKLOAD = ("operation", "setup", "options")


@functools.cache
def find_rule(key: str) -> Rule:
    """Find the rule of a fact.

    Raises:
        KeyError: the table has no rule for the key.
    """
    for one in TABLE:
        if re.fullmatch(one.keys, key, re.DOTALL):
            return one
    raise KeyError(key)


@dataclass(frozen=True)
class Difference:
    """A fact in which two runs differ. Options that both have are left out."""

    key: str
    base: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.key}: {format_value(self.base)} and {format_value(self.new)}"

    @property
    def refused(self) -> bool:
        """Whether this difference makes the figures incomparable."""
        return find_rule(self.key).on_compare == "refuse"

    def allowed(self, keys: Iterable[str]) -> bool:
        """Return whether the user allowed it, by its key or by a prefix of its key."""
        return any(self.key == key or self.key.startswith(f"{key}.") for key in keys)


def compare_values(key: str, base: Any, new: Any) -> Difference | None:
    """Compare two values of a fact; None if they are equal.

    Options may be in any order, and sizes of memory may differ a little.
    """
    if key == "machine.memory_bytes" and nearly_equal(base, new):
        return None
    listed = key.endswith("mount_options") or key.startswith("loads.")
    if listed and isinstance(base, list) and isinstance(new, list):
        base, new = [o for o in base if o not in new], [o for o in new if o not in base]
    return Difference(key, base, new) if base != new else None


def nearly_equal(one: Any, other: Any) -> bool:
    """Whether two facts are equal; numbers within TOLERANCE count as equal."""
    try:
        return math.isclose(float(one), float(other), rel_tol=TOLERANCE)
    except (TypeError, ValueError):
        return bool(one == other)


def format_value(value: Any) -> str:
    """Format a value for use in a sentence."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return f"`{shlex.join(value)}`" if value else "none"
    return value if isinstance(value, str) else json.dumps(value)


def collect_facts(run: Run) -> dict[str, Any]:
    """Return all facts that a run records, by key."""
    facts = {f"suite.{key}": value for key, value in {**run.suite, **crew.chosen(run)}.items()}
    for name, described in run.filesystems.items():
        facts |= {f"filesystems.{name}.{key}": value for key, value in described.items()}
        # A run from before settings existed has set nothing.
        if "kernel" in described:
            facts.setdefault(f"filesystems.{name}.settings", {})
    for name, medium in run.media.items():
        facts |= {f"media.{name}.{key}": value for key, value in _medium(medium).items()}
    for workload in run.workloads:
        described = {key: workload[key] for key in _WORKLOAD if key in workload}
        # A run that predates an option compares equal to one in which the option is off.
        if options := workload.get("options"):
            described["options"] = [o for o in options if o.get("default") != 0]
        if definition := workload.get("definition"):
            text = json.dumps(definition, sort_keys=True)
            described["definition"] = hashlib.sha256(text.encode()).hexdigest()[:12]
        facts |= {f"workloads.{workload['id']}.{key}": v for key, v in described.items()}
    facts |= {f"loads.{workload}": options for workload, options in run.loads.items()}
    facts |= {
        f"machine.{key}": value
        for key, value in _machine(run.machine).items()
        if not run.imported or value not in _NOT_TOLD
    }
    facts |= {k: run.versions[k] for k in sorted(run.versions) if k.startswith(_TOOLS)}
    # A package has no revision.
    return facts | {"revision": run.revision or run.fscale_version, "seed": run.seed}


def _medium(recorded: dict[str, Any]) -> dict[str, Any]:
    facts = {key: value for key, value in recorded.items() if key != "queue"}
    # Except for a device, the path says where an image lies; no figure depends on that.
    if recorded.get("kind") != "device" and "path" in facts:
        facts["place"] = facts.pop("path")
    queue = recorded.get("queue")
    return facts | {f"queue.{k}": v for k, v in queue.items()} if isinstance(queue, dict) else facts


def _machine(machine: Machine) -> dict[str, Any]:
    facts = {
        name: getattr(machine, name)
        for name in (
            *("cpu_model", "virtualization", "governor", "mitigations"),
            *("kernel", "cpu_order", "cores", "max_mhz"),
        )
    }
    facts["hostname"] = machine.host
    facts["cpus"] = len(machine.cpu_order)
    if machine.memory_bytes:
        facts["memory_bytes"] = machine.memory_bytes
    facts["kernel_cmdline"] = " ".join(
        word for word in machine.kernel_cmdline.split() if not word.startswith(_SAYS_WHERE_FROM)
    )
    if build := machine.build:
        facts |= {"build": f"{build.version} ({build.id})", "debug": build.debug}
        facts["taint"] = build.taint
    if machine.confinement:
        facts |= machine.confinement.limits
    if machine.tuning:
        facts |= machine.tuning.flat
    facts |= {f"inherited.{name}": value for name, value in machine.inherited.items()}
    guest = dict(machine.guest or {})
    # Figures depend on the model of the simulated machine.
    facts |= {f"model.{name}": value for name, value in guest.pop("model", {}).items()}
    facts["guest"] = _lasting(guest) or None
    return facts


def _lasting(value: Any) -> Any:
    """Drop the number of boots that hung, which does not affect what is measured."""
    if isinstance(value, dict):
        return {name: _lasting(part) for name, part in value.items() if name != "stood_still"}
    return value


def list_changes(old: Run, new: Run) -> list[str]:
    """List the differences that prevent `new` from resuming `old`, as `KEY: OLD -> NEW`.

    A tool that only one of the two runs has is not a difference: no cell was measured without it.
    """
    ours, theirs = collect_facts(old), collect_facts(new)
    changes = []
    for key in ours | theirs:
        known = key in ours and key in theirs
        if find_rule(key).on_resume != "refuse" or not (known or key.startswith(_ABSENT_IS_NONE)):
            continue
        if one := compare_values(key, ours.get(key), theirs.get(key)):
            changes.append(f"{key}: {format_value(one.base)} -> {format_value(one.new)}")
    return changes


_ONE_MACHINE = tuple(
    f"machine.{name}"
    for name in (
        *("cpu_model", "cpus", "cores", "max_mhz", "memory_bytes", "mitigations"),
        "virtualization",
    )
)
"""facts that differ only between machines, so that a call that resumes a run need not look"""


def list_other_machine(planned: Run, here: Run) -> list[str]:
    """List the differences that prevent this machine from measuring cells of a run, likewise.

    Machines may have different names.
    """
    named = here.machine.model_copy(update={"hostname": planned.machine.hostname})
    ours, theirs = collect_facts(planned), collect_facts(here)
    different = [
        one for key in _ONE_MACHINE if (one := compare_values(key, ours.get(key), theirs.get(key)))
    ]
    return list_changes(planned, here.model_copy(update={"machine": named})) + [
        f"{one.key}: {format_value(one.base)} -> {format_value(one.new)}" for one in different
    ]
