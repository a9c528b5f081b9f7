# SPDX-License-Identifier: GPL-2.0-only
"""What of a run its figures depend on, by key, and what follows where two runs differ in it.

One table answers both questions: may a call go on with what an earlier one began, and do the
figures of two runs mean the same? docs/reference/comparison-outputs.md says it in words.
"""

import functools
import json
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from fscale.model.results import Machine, Run
from fscale.model.store import BENCH

Then = Literal["refuse", "note", "ignore"]


@dataclass(frozen=True)
class Rule:
    """What follows from a difference in facts whose whole key matches a pattern."""

    keys: str
    on_resume: Then
    """where a call goes on with what is in its results directory"""
    on_compare: Then
    """where the figures of two runs are set against each other; what is refused may be allowed"""


# The first that matches. What is judged is never refused: kernels, their builds, modules.
TABLE = (
    Rule(r"suite\.(warmup|min_window|max_stock|latency|windows|window_ops)", "refuse", "refuse"),
    Rule(r"suite\.order", "refuse", "note"),
    Rule(r"suite\..*", "refuse", "ignore"),
    Rule(r"filesystems\..*\.geometry\..*", "ignore", "refuse"),
    Rule(r"filesystems\..*\.effective\.mount_options", "ignore", "note"),
    Rule(
        r"filesystems\..*\.(kernel|mkfs|mount_options|size|max_size|partitions|settings)",
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
    # The digest of the microbenchmark refuses for them.
    Rule(r"workloads\..*", "ignore", "refuse"),
    Rule(r"machine\.(debug|model\..*)", "refuse", "refuse"),
    Rule(r"machine\.(kernel|build|cpu_order|guest)", "refuse", "ignore"),
    Rule(
        r"machine\.(cpu_model|virtualization|mitigations|cpus|memory_bytes|taint)",
        "ignore",
        "note",
    ),
    Rule(r"machine\..*", "refuse", "note"),
    Rule(r"(fscale-bench|fscale-sim|mkfs of ).*", "refuse", "note"),
    Rule(r"(module|kernel build) .*", "refuse", "ignore"),
    Rule(r"revision", "refuse", "note"),
    Rule(r"seed", "refuse", "ignore"),
)

# A part of these that is not there is off; of all else an older fscale may not have known it.
_ABSENT_IS_NONE = ("suite.", "filesystems.", "media.")
_SAYS_WHERE_FROM = ("BOOT_IMAGE=", "initrd=")
_TOOLS = (BENCH, "fscale-sim", "mkfs of ", "module ", "kernel build ")
_WORKLOAD = ("operation", "setup", "options")


@functools.cache
def find_rule(key: str) -> Rule:
    """The rule of a fact; KeyError where the table has none."""
    for one in TABLE:
        if re.fullmatch(one.keys, key, re.DOTALL):
            return one
    raise KeyError(key)


@dataclass(frozen=True)
class Difference:
    """A fact that two runs do not share; of mount options only those that the other has not."""

    key: str
    base: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.key}: {format_value(self.base)} and {format_value(self.new)}"

    @property
    def refused(self) -> bool:
        """Whether the figures then mean two things."""
        return find_rule(self.key).on_compare == "refuse"

    def allowed(self, keys: Iterable[str]) -> bool:
        """Whether the user expects it: by its key, or by the front part of that."""
        return any(self.key == key or self.key.startswith(f"{key}.") for key in keys)


def compare_values(key: str, base: Any, new: Any) -> Difference | None:
    """How two values of a fact differ; the order of mount options means nothing."""
    if key.endswith("mount_options") and isinstance(base, list) and isinstance(new, list):
        base, new = [o for o in base if o not in new], [o for o in new if o not in base]
    return Difference(key, base, new) if base != new else None


def format_value(value: Any) -> str:
    """A value in a sentence."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return f"`{shlex.join(value)}`" if value else "none"
    return value if isinstance(value, str) else json.dumps(value)


def collect_facts(run: Run) -> dict[str, Any]:
    """All facts of a run by key; what it does not record is left out."""
    found = {f"suite.{key}": value for key, value in run.suite.items()}
    for name, described in run.filesystems.items():
        found |= {f"filesystems.{name}.{key}": value for key, value in described.items()}
        # A run from before there were any settings set nothing.
        if "kernel" in described:
            found.setdefault(f"filesystems.{name}.settings", {})
    for name, medium in run.media.items():
        found |= {f"media.{name}.{key}": value for key, value in _medium(medium).items()}
    for workload in run.workloads:
        described = {key: workload[key] for key in _WORKLOAD if key in workload}
        # A run from before an option means what one does in which it is off.
        if options := workload.get("options"):
            described["options"] = [o for o in options if o.get("default") != 0]
        found |= {f"workloads.{workload['id']}.{key}": v for key, v in described.items()}
    found |= {f"machine.{key}": value for key, value in _machine(run.machine).items()}
    found |= {k: run.versions[k] for k in sorted(run.versions) if k.startswith(_TOOLS)}
    return found | {"revision": run.revision, "seed": run.seed}


def _medium(recorded: dict[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in recorded.items() if key != "queue"}
    # Of what is no device it says where an image lies, which no figure depends on.
    if recorded.get("kind") != "device" and "path" in found:
        found["place"] = found.pop("path")
    queue = recorded.get("queue")
    return found | {f"queue.{k}": v for k, v in queue.items()} if isinstance(queue, dict) else found


def _machine(machine: Machine) -> dict[str, Any]:
    found = {
        name: getattr(machine, name)
        for name in (
            *("hostname", "cpu_model", "virtualization", "governor", "mitigations"),
            *("kernel", "cpu_order"),
        )
    }
    found["cpus"] = len(machine.cpu_order)
    if machine.memory_bytes:
        found["memory_bytes"] = machine.memory_bytes
    found["kernel_cmdline"] = " ".join(
        word for word in machine.kernel_cmdline.split() if not word.startswith(_SAYS_WHERE_FROM)
    )
    if build := machine.build:
        found |= {"build": f"{build.version} ({build.id})", "debug": build.debug}
        found["taint"] = build.taint
    if machine.confinement:
        found |= machine.confinement.limits
    if machine.tuning:
        found |= machine.tuning.flat
    guest = dict(machine.guest or {})
    # A figure of another simulated machine is another figure.
    found |= {f"model.{name}": value for name, value in guest.pop("model", {}).items()}
    found["guest"] = _lasting(guest) or None
    return found


def _lasting(value: Any) -> Any:
    """Without how often a guest had to be booted, which says nothing about what is measured."""
    if isinstance(value, dict):
        return {name: _lasting(part) for name, part in value.items() if name != "stood_still"}
    return value


def list_changes(old: Run, new: Run) -> list[str]:
    """Why a call cannot go on with the run of an earlier one, as `KEY: OLD -> NEW`.

    A tool that only one of the two has is no difference: no cell was measured without it.
    """
    ours, theirs = collect_facts(old), collect_facts(new)
    found = []
    for key in ours | theirs:
        known = key in ours and key in theirs
        if find_rule(key).on_resume != "refuse" or not (known or key.startswith(_ABSENT_IS_NONE)):
            continue
        if one := compare_values(key, ours.get(key), theirs.get(key)):
            found.append(f"{key}: {format_value(one.base)} -> {format_value(one.new)}")
    return found
