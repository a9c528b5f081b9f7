# SPDX-License-Identifier: GPL-2.0-only
"""What the cells of two runs are, and whether their figures mean the same.

docs/compare.md has the table: what is refused, what is only said, and what is no difference.
"""

import hashlib
import json
import math
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fscale.model.errors import FscaleError
from fscale.model.mount import group
from fscale.model.results import Cell, Machine, Run
from fscale.model.store import BENCH

SUITE = ("warmup", "min_window", "max_stock", "latency", "windows", "window_ops")
FILESYSTEM = ("kernel", "mkfs", "mount_options", "size", "max_size", "partitions")
MEDIUM = ("kind", "size", "max_size", "backing", "direct_io", "latency_ns", "queue_depth")
WORKLOAD = ("operation", "setup", "options")
MACHINE = ("hostname", "cpu_model", "virtualization", "governor", "mitigations")
SETTINGS = "settings"
TOLERANCE = 0.05
"""Memory is a little more or less with each kernel, and sizes that are a share of it follow."""

_SAYS_WHERE_FROM = ("BOOT_IMAGE=", "initrd=")


@dataclass(frozen=True)
class Difference:
    """Something that the two sides do not share; `refused` where figures then mean two things."""

    key: str
    base: Any
    new: Any
    refused: bool = False

    def __str__(self) -> str:
        return f"{self.key}: {_text(self.base)} and {_text(self.new)}"

    def allowed(self, keys: Iterable[str]) -> bool:
        """Whether the user expects it: by its key, or by the front part of that."""
        return any(self.key == key or self.key.startswith(f"{key}.") for key in keys)


def facts(run: Run, workload: str, filesystem: str, medium: str) -> dict[str, Any]:
    """What the figures of a point mean, by key; what the run does not record is left out."""
    found: dict[str, Any] = {f"suite.{k}": run.suite[k] for k in SUITE if k in run.suite}
    described = next((w for w in run.workloads if w["id"] == workload), {})
    place = run.media.get(medium, {})
    at = ("path",) if place.get("kind") == "device" else ()
    for what, record, keys in (
        (f"filesystems.{filesystem}", run.filesystems.get(filesystem, {}), FILESYSTEM),
        (f"media.{medium}", place, (*MEDIUM, *at)),
        (f"workloads.{workload}", described, WORKLOAD),
    ):
        found |= {f"{what}.{key}": record[key] for key in keys if key in record}
    # Absent where nothing is set, as in a run from before there was this.
    if settings := run.filesystems.get(filesystem, {}).get(SETTINGS):
        found[f"filesystems.{filesystem}.{SETTINGS}"] = settings
    # A run from before an option means what one does in which it is off.
    if options := found.get(f"workloads.{workload}.options"):
        found[f"workloads.{workload}.options"] = [o for o in options if o.get("default") != 0]
    if run.machine.build:
        found["machine.debug"] = run.machine.build.debug
    # A figure of another simulated machine is another figure; what is free is what is judged.
    model = (run.machine.guest or {}).get("model", {})
    return found | {f"machine.model.{name}": value for name, value in model.items()}


def digest(run: Run, workload: str, filesystem: str, medium: str) -> str:
    """Of the facts: what has another digest is no part of the same history."""
    text = json.dumps(facts(run, workload, filesystem, medium), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def refuse_other_kind(base: Machine, new: Machine) -> None:
    """FscaleError where the sides were measured on different kinds of machine.

    Virtualised, emulated, counted and simulated figures have nothing in common but the unit.
    """
    if base.kind != new.kind:
        raise FscaleError(
            f"BASE was measured {_kind(base)} and NEW {_kind(new)}: such figures never mix; "
            "measure both in the same way"
        )


def _kind(machine: Machine) -> str:
    return "on the machine itself" if machine.guest is None else f"in a guest ({machine.kind})"


def notes(
    base: Run,
    new: Run,
    base_cells: Sequence[Cell],
    new_cells: Sequence[Cell],
    allow: Sequence[str],
) -> list[str]:
    """What differs between two runs, a sentence each.

    Raises:
        FscaleError: something differs that makes the figures mean different things, and `allow`
            does not name it.
    """
    defined = list(_defined(base, new, base_cells, new_cells))
    told = {difference.key for difference in defined}
    found = [
        *defined,
        *(d for d in _mounts(base_cells, new_cells) if d.key.replace(".effective", "") not in told),
        *_geometry(base_cells, new_cells),
        *_noted(base, new),
    ]
    if refused := [d for d in found if d.refused and not d.allowed(allow)]:
        raise FscaleError(
            f"the figures of the two sides mean different things: {'; '.join(map(str, refused))}. "
            "Measure one side again as the other was; where the difference is what you want to "
            f"judge, add {' '.join(_allowing(refused))}"
        )
    said = [f"the sides differ in {difference}" for difference in found]
    if base.machine.kind == "simulated":
        said.insert(0, "both sides are simulated: counts an operation say more than rates")
    return said


def _allowing(refused: Iterable[Difference]) -> list[str]:
    """The options that allow differences, as they are typed into a shell."""
    return [f"--allow-different {shlex.quote(difference.key)}" for difference in refused]


def _defined(
    base: Run, new: Run, base_cells: Sequence[Cell], new_cells: Sequence[Cell]
) -> Iterator[Difference]:
    ours, theirs = _facts(base, base_cells), _facts(new, new_cells)
    for one, other in ((ours, theirs), (theirs, ours)):
        for key in [key for key in one if key.endswith(f".{SETTINGS}")]:
            if key.removesuffix(SETTINGS) + "kernel" in other:
                other.setdefault(key, {})
    for key in sorted(ours.keys() & theirs.keys()):
        if ours[key] != theirs[key] and any(_apart(key, ours[key], theirs[key])):
            yield Difference(key, *_apart(key, ours[key], theirs[key]), refused=True)
    if base.suite.get("order") != new.suite.get("order"):
        yield Difference("suite.order", base.suite.get("order"), new.suite.get("order"))


def _apart(key: str, one: Any, other: Any) -> tuple[Any, Any]:
    """Two facts; of mount options, whose order means nothing, those that the other has not."""
    if not key.endswith(".mount_options"):
        return one, other
    return [o for o in one if o not in other], [o for o in other if o not in one]


def _mounts(base_cells: Sequence[Cell], new_cells: Sequence[Cell]) -> Iterator[Difference]:
    """How equal points were mounted, beside what was asked for: defaults differ between kernels."""
    sides = [
        {(c.key.filesystem, c.key.medium): c.mount for c in cells if c.mount and c.status == "ok"}
        for cells in (base_cells, new_cells)
    ]
    for place in sorted(sides[0].keys() & sides[1].keys()):
        ours, theirs = sides[0][place], sides[1][place]
        key = f"filesystems.{place[0]}.effective.mount_options"
        # A size that is a share of memory is judged as such.
        one, other = ([o for o in m.options if group(o) != "size"] for m in (ours, theirs))
        if set(one) != set(other):
            yield Difference(key, *_apart(key, one, other))
        devices = (_device(ours.source), _device(theirs.source))
        if devices[0] != devices[1]:
            yield Difference(f"media.{place[1]}.source", *devices)


def _device(source: str) -> str:
    """What is mounted; a loop device's number says nothing."""
    return re.sub(r"^/dev/loop\d+", "/dev/loop", source)


def _facts(run: Run, cells: Iterable[Cell]) -> dict[str, Any]:
    """Of all points that were measured."""
    points = {(c.key.workload, c.key.filesystem, c.key.medium) for c in cells}
    return {key: value for point in points for key, value in facts(run, *point).items()}


def _geometry(base_cells: Sequence[Cell], new_cells: Sequence[Cell]) -> Iterator[Difference]:
    """What mkfs chose for equal points, each key of a file system once."""
    sides = [
        {(c.key.filesystem, c.key.medium, c.key.cores): c.geometry for c in cells if c.geometry}
        for cells in (base_cells, new_cells)
    ]
    found: dict[str, Difference] = {}
    for place in sorted(sides[0].keys() & sides[1].keys()):
        ours, theirs = sides[0][place], sides[1][place]
        for name in sorted(ours.keys() & theirs.keys()):
            key = f"filesystems.{place[0]}.geometry.{name}"
            if not _alike(ours[name], theirs[name]):
                found.setdefault(key, Difference(key, ours[name], theirs[name], refused=True))
    yield from found.values()


def _alike(one: Any, other: Any) -> bool:
    try:
        return math.isclose(float(one), float(other), rel_tol=TOLERANCE)
    except (TypeError, ValueError):
        return bool(one == other)


def _noted(base: Run, new: Run) -> Iterator[Difference]:
    for name in sorted(base.versions.keys() & new.versions.keys()):
        if name.startswith((BENCH, "mkfs of ")) and base.versions[name] != new.versions[name]:
            yield Difference(name, base.versions[name], new.versions[name])
    if base.revision != new.revision:
        yield Difference("revision", base.revision, new.revision)
    ours, theirs = ({**_machine(run.machine), **_queues(run)} for run in (base, new))
    for key in sorted(ours.keys() & theirs.keys()):
        same = _alike if key == "machine.memory_bytes" else lambda a, b: bool(a == b)
        if not same(ours[key], theirs[key]):
            yield Difference(key, ours[key], theirs[key])


def _queues(run: Run) -> dict[str, Any]:
    """How requests to the devices were queued, where the run recorded it."""
    return {
        f"media.{name}.queue.{setting}": value
        for name, medium in run.media.items()
        if isinstance(medium.get("queue"), dict)
        for setting, value in medium["queue"].items()
    }


def _machine(machine: Machine) -> dict[str, Any]:
    """What of a machine moves its figures without changing what they mean."""
    found: dict[str, Any] = {f"machine.{name}": getattr(machine, name) for name in MACHINE}
    found["machine.cpus"] = len(machine.cpu_order)
    if machine.memory_bytes:
        found["machine.memory_bytes"] = machine.memory_bytes
    found["machine.kernel_cmdline"] = " ".join(
        word for word in machine.kernel_cmdline.split() if not word.startswith(_SAYS_WHERE_FROM)
    )
    if machine.build:
        found["machine.taint"] = machine.build.taint
    if machine.confinement:
        found |= {f"machine.{name}": limit for name, limit in machine.confinement.limits.items()}
    if machine.tuning:
        found |= {f"machine.{k}": v for k, v in machine.tuning.flat.items()}
    return found


def _text(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return f"`{shlex.join(value)}`" if value else "none"
    return value if isinstance(value, str) else json.dumps(value)
