# SPDX-License-Identifier: GPL-2.0-only
"""Finds what a suite needs and what the machine lacks, without changing the machine."""

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from fscale.model import catalogue, variant
from fscale.model.config import FileSystem, Medium, Suite, resolve_size
from fscale.model.errors import FscaleError, MissingTool
from fscale.model.load import Load
from fscale.model.results import Machine, Mounted
from fscale.model.variant import Variant
from fscale.runner import guard, microbench
from fscale.runner.profilers import Profiler, kallsyms, parse_names, usable
from fscale.runner.request import Request
from fscale.runner.storage import filesystem, geometry, lazy, medium, mounted, named
from fscale.runner.storage.disk import CheckedDevice
from fscale.system import powers
from fscale.system.executor import Executor


def media_of(request: Request, suite: Suite) -> dict[str, Medium]:
    """Load the media, by short name, with the path of the requested device or directory."""
    media = {}
    for name in suite.media:
        described = catalogue.load_medium(name)
        path = {"device": request.device, "dir": request.directory}.get(described.kind)
        if path:
            described = described.model_copy(update={"path": str(path.absolute())})
        media[catalogue.short_name(name)] = described
    return media


def filesystem_of(where: Path) -> str:
    """Return the name of the file system below a path.

    Raises:
        FscaleError: it cannot be found out.
    """
    argv = ["findmnt", "--noheadings", "--output", "FSTYPE", "--target", str(where)]
    try:
        return Executor().run(argv).split()[-1]
    except FscaleError:
        # A chroot does not see the mount of its root, so findmnt fails. ext2, ext3 and ext4 share a
        # magic number and a driver.
        kind = Executor().run(["stat", "--file-system", "--format=%T", str(where)]).strip()
        return "ext4" if kind == "ext2/ext3" else kind


def variants_of(request: Request, suite: Suite, media: Mapping[str, Medium]) -> dict[str, Variant]:
    """Parse the file systems of a suite, by their names in results.

    If an existing directory is measured, its own file system replaces them.

    Raises:
        FscaleError: one is not valid, two of them would have the same name, or the directory cannot
            be measured or does not fit what the user asked for.
    """
    asked = [variant.parse(name) for name in dict.fromkeys(suite.filesystems)]
    if any(m.kind == "dir" for m in media.values()):
        asked = [_of_directory(request, asked, media)]
    variants: dict[str, Variant] = {}
    for one in asked:
        if one.label in variants:
            raise FscaleError(
                f"two file systems would be called {one.label} in the results; rename the file "
                f"{one.text}"
            )
        variants[one.label] = one
    return variants


def _of_directory(
    request: Request, asked: Sequence[Variant], media: Mapping[str, Medium]
) -> Variant:
    """Return the file system of the directory that is measured."""
    (first, *others) = media.values()
    if others:
        raise FscaleError(
            f"an existing directory cannot be measured together with other media "
            f"({', '.join(media)}); measure it in a run of its own"
        )
    where = Path(first.path or "")
    guard.check_directory(where)
    there = filesystem_of(where)
    if "filesystems" in request.overrides:
        if [one.name for one in asked] != [there]:
            raise FscaleError(
                f"{where} lies on {there}, not on {', '.join(one.text for one in asked)}; leave "
                "--fs out, or measure another medium"
            )
        asked[0].refuse_existing()
    return Variant(there, there)


def existing_mount(media: Mapping[str, Medium]) -> Mounted | None:
    """Return the mount below the measured directory; None without one, or if it is not visible."""
    paths = [m.path for m in media.values() if m.kind == "dir" and m.path]
    return mounted.read(Path(paths[0])) if paths else None


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


def profilers(suite: Suite) -> tuple[Suite, dict[str, Profiler], dict[str, str]]:
    """Return the suite with usable profilers only, these profilers, and why others are skipped."""
    names = parse_names(",".join(suite.profiles))
    found, skipped = usable(names)
    profilers = {profiler.name: profiler for profiler in found}
    reasons = {f"profile {name}": reason for name, reason in skipped.items()}
    return suite.model_copy(update={"profiles": list(profilers)}), profilers, reasons


def hidden_symbols(profilers: Mapping[str, Profiler]) -> list[str]:
    """Return a warning if the profiles will have addresses instead of names."""
    reason = kallsyms.why_hidden() if profilers else None
    return [f"profiles cannot name functions and locks: {reason}"] if reason else []


def loads_of(request: Request, suite: Suite) -> dict[str, Load]:
    """Return all loads by id; applications only if the suite names its workloads."""
    loads: dict[str, Load] = {w.descriptor.id: w for w in microbench.find(request.binary)}
    if suite.workloads != "all":
        files = [name for name in suite.workloads if catalogue.is_path(name)]
        for load in request.applications(list(dict.fromkeys(files))):
            if load.descriptor.id in loads:
                raise FscaleError(
                    f"two loads would be called {load.descriptor.id} in the results; rename the "
                    "TOML file"
                )
            loads[load.descriptor.id] = load
    return loads


def check_workers(suite: Suite, loads: Mapping[str, Load], wanted: set[str]) -> None:
    """Check that all wanted loads can start the suite's number of workers on each CPU.

    Raises:
        FscaleError: one cannot.
    """
    if suite.workers_per_cpu == 1:
        return
    if fixed := sorted(name for name in wanted if not loads[name].oversubscribes):
        raise FscaleError(
            f"workers_per_cpu = {suite.workers_per_cpu}: {', '.join(fixed)} cannot start that many "
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
