# SPDX-License-Identifier: GPL-2.0-only
"""Checks what this machine has of what cells need, without changing the machine."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fscale.model import catalogue
from fscale.model.config import FileSystem, Medium, Suite, resolve_size
from fscale.model.errors import FscaleError, MissingTool
from fscale.model.load import Load
from fscale.model.results import CellKey, Machine, Mounted
from fscale.runner import guard
from fscale.runner.machine import kernelsettings
from fscale.runner.profilers import Profiler, kallsyms
from fscale.runner.request import Request
from fscale.runner.selection import Selection
from fscale.runner.storage import aged, blockqueue, disk, filesystem, geometry, lazy, medium, named
from fscale.runner.storage.disk import CheckedDevice
from fscale.system import powers


@dataclass(frozen=True)
class Resources:
    """What this machine has and lacks of what cells need."""

    missing: Mapping[str, str]  # file system, medium or workload -> why it is missing
    devices: Mapping[str, CheckedDevice]  # medium -> block device of the user
    beside: Mapping[str, Sequence[CheckedDevice]]  # file system -> devices besides its medium
    queues: Mapping[str, dict[str, str]]  # medium -> settings of its block queue
    warnings: Sequence[str]

    def recorded(self, medium: str) -> dict[str, Any]:
        """What run.json records of this machine's part of a medium."""
        there: dict[str, Any] = {}
        if medium in self.devices:
            there["identity"] = self.devices[medium].identity.recorded()
        if medium in self.queues:
            there["queue"] = self.queues[medium]
        return there


def find_resources(
    request: Request, selection: Selection, machine: Machine, cells: Sequence[CellKey]
) -> Resources:
    """Check that this machine can measure cells of a selection, and with what.

    Raises:
        MissingTool: the user named something that is missing.
        FscaleError: a medium or a device must not be used, or something is insufficient.
    """
    filesystems, loads = selection.filesystems, selection.loads
    wanted = {cell.workload for cell in cells}
    check_workers(selection.suite, loads, wanted)
    check_users(selection.media, loads, wanted)
    in_memory = all(fs and fs.nodev for fs in filesystems.values())
    used = {} if in_memory else selection.media
    lacking = missing(request, filesystems, used, loads, wanted, machine)
    usable = {name: m for name, m in used.items() if name not in lacking}
    devices = check_media(request, machine, filesystems, usable)
    beside = check_named(request, filesystems, devices)
    check_aged(machine, filesystems, usable, devices, beside)
    kernelsettings.check({n: fs for n, fs in filesystems.items() if n not in lacking})
    return Resources(
        missing=lacking,
        devices=devices,
        beside=beside,
        queues={
            name: queue
            for name, m in usable.items()
            if m.path and (queue := blockqueue.read_queue(disk.find_node(Path(m.path))))
        },
        warnings=[
            *unfinished_work(selection.media, selection.existing),
            *hidden_symbols(selection.profilers),
        ],
    )


def unfinished_work(media: Mapping[str, Medium], there: Mounted | None) -> list[str]:
    """Return warnings about work that the kernel still does on a directory's file system."""
    if there is None or there.fstype not in filesystem.EXT or "noinit_itable" in there.options:
        return []
    for directory in (Path(m.path) for m in media.values() if m.kind == "dir" and m.path):
        with contextlib.suppress(OSError):
            node = geometry.node_below(directory)
            if node and (left := lazy.unwritten(node)):
                return [
                    f"{left} inode tables below {directory} are not initialised yet: ext4lazyinit "
                    "writes them while cells are measured; wait, or mount with noinit_itable"
                ]
    return []


def hidden_symbols(profilers: Mapping[str, Profiler]) -> list[str]:
    """Return a warning if the profiles will have addresses instead of names."""
    reason = kallsyms.why_hidden() if profilers else None
    return [f"profiles cannot name functions and locks: {reason}"] if reason else []


def check_workers(suite: Suite, loads: Mapping[str, Load], wanted: set[str]) -> None:
    """Check that all wanted loads can start the suite's numbers of workers on each CPU.

    Raises:
        FscaleError: one cannot.
    """
    most = max(suite.worker_counts)
    if most == 1:
        return
    if fixed := sorted(name for name in wanted if not loads[name].oversubscribes):
        raise FscaleError(
            f"workers_per_cpu = {most}: {', '.join(fixed)} cannot start that many "
            "workers on each CPU, because a load of this kind chooses its number of processes; "
            "leave it out, or measure it in a run without workers_per_cpu"
        )


def check_users(media: Mapping[str, Medium], loads: Mapping[str, Load], wanted: set[str]) -> None:
    """Check that the users of all wanted loads can enter the measured directories.

    Raises:
        FscaleError: one cannot.
    """
    for one in media.values():
        if one.kind == "dir" and one.path:
            for name in sorted(wanted):
                if (user := loads[name].user) and not loads[name].missing():
                    guard.check_user(Path(one.path), user, name)


def missing(
    request: Request,
    filesystems: Mapping[str, FileSystem | None],
    media: Mapping[str, Medium],
    loads: Mapping[str, Load],
    wanted: set[str],
    machine: Machine,
) -> dict[str, str]:
    """Return file systems, media and workloads that this machine cannot measure -> reason.

    Raises:
        MissingTool: the user named one of them, or all file systems or all media are among them.
        FscaleError: file systems cannot be mounted.
    """
    reasons: dict[str, str | None] = {}
    for name, fs in filesystems.items():
        reasons[name] = filesystem.missing(fs) if fs else None
        if fs and (reason := powers.no_mount()):
            raise FscaleError(
                f"{name} cannot be mounted: {reason}; measure an existing directory, which needs "
                f"no privileges: --dir DIRECTORY"
            )
    reasons |= {name: medium.missing(name, m) for name, m in media.items()}
    reasons |= too_small(machine, filesystems, media)
    reasons |= {name: loads[name].missing() for name in wanted}
    missing = {name: reason for name, reason in reasons.items() if reason}
    explicit = {catalogue.short_name(name) for name in request.explicit}
    for name, reason in missing.items():
        if name in explicit:
            raise MissingTool(f"{name}: {reason}")
    for group in (filesystems, media):
        if group and all(name in missing for name in group):
            raise MissingTool("; ".join(f"{name}: {missing[name]}" for name in group))
    return missing


def too_small(
    machine: Machine, filesystems: Mapping[str, FileSystem | None], media: Mapping[str, Medium]
) -> dict[str, str]:
    """Return the file systems that are too large for every medium -> reason.

    Only media sized as a share of memory are considered.
    """
    if not media or not all(isinstance(described.size, str) for described in media.values()):
        return {}
    most = max(medium.size_of(described, machine.usable_memory) for described in media.values())
    return {
        name: f"its mkfs needs {fs.min_size >> 20} MiB, but the medium, a share of memory, gives "
        f"it {most // fs.partitions >> 20} MiB"
        for name, fs in filesystems.items()
        if fs and not fs.nodev and fs.min_size and most // fs.partitions < fs.min_size
    }


def check_named(
    request: Request,
    filesystems: Mapping[str, FileSystem | None],
    media: Mapping[str, CheckedDevice],
) -> dict[str, list[CheckedDevice]]:
    """Return, per file system, the block devices that it names besides its medium.

    Raises:
        FscaleError: one of them must not be written to.
    """
    devices = {
        name: named.check(name, fs, list(media.values()), request.yes_format, request.by_id)
        for name, fs in filesystems.items()
        if fs
    }
    return {name: checked for name, checked in devices.items() if checked}


def check_aged(
    machine: Machine,
    filesystems: Mapping[str, FileSystem | None],
    media: Mapping[str, Medium],
    devices: Mapping[str, CheckedDevice],
    beside: Mapping[str, Sequence[CheckedDevice]],
) -> None:
    """Check that aged file systems fit all media, and that one image holds all of each.

    Raises:
        FscaleError: one does not.
    """
    for name, fs in filesystems.items():
        if not (fs and fs.aged):
            continue
        if name in beside:
            raise FscaleError(
                f"{name}: an image would hold the medium alone, not {beside[name][0].path}; leave "
                "that device or aged= out"
            )
        for where, described in media.items():
            size = devices[where].identity.size if where in devices else None
            most = size or medium.size_of(described, machine.usable_memory)
            aged.refuse_small(name, fs, most)


def check_media(
    request: Request,
    machine: Machine,
    filesystems: Mapping[str, FileSystem | None],
    media: Mapping[str, Medium],
) -> dict[str, CheckedDevice]:
    """Check the media and the memory that the run needs; return the checked block devices.

    Block devices that fscale makes itself are not among them.

    Raises:
        FscaleError: a medium must not be used, or memory is insufficient.
    """
    usable, memory = machine.usable_memory, 0
    devices = {}
    for name, described in media.items():
        checked = medium.check(name, described, usable, request.yes_format, request.by_id)
        if checked:
            devices[name] = checked
        if described.kind in ("loop", "brd", "null_blk") and not described.backing:
            size = medium.size_of(described, usable)
            if isinstance(described.size, str):
                guard.check_share(size, f"medium {name}", machine)
            memory += size
        if described.kind == "loop":
            guard.check_file_size(medium.size_of(described, usable), f"medium {name}")
    largest = 0
    for name, fs in filesystems.items():
        if fs and fs.nodev and fs.size is not None:
            size = resolve_size(fs.size, fs.max_size, usable)
            if isinstance(fs.size, str):
                guard.check_share(size, name, machine)
            largest = max(largest, size)
    if memory or largest:
        guard.check_memory(memory + largest, "the run")
    return devices
