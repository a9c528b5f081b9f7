# SPDX-License-Identifier: GPL-2.0-only
"""Provides a medium: a loop device, a RAM disk, a block device or a directory."""

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from fscale.model.config import Medium, resolve_size
from fscale.model.errors import FscaleError
from fscale.runner import guard
from fscale.runner.machine import numa
from fscale.runner.machine.changes import NULLB, LoopDevice, Module, Mount, NullBlock, TempDir
from fscale.runner.machine.journal import Journal
from fscale.runner.storage import disk
from fscale.runner.storage.disk import CheckedDevice, Disk
from fscale.system import powers
from fscale.system.executor import CommandFailed, Executor, which

FILL = 0.25  # share of an existing directory's free space that a load may fill
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/shmem_enabled")


@dataclass(frozen=True)
class Ready:
    """A usable medium: a block device of `size` bytes, or a directory."""

    size: int
    device: str | None = None
    directory: Path | None = None
    disk: Disk | None = None
    """the block device, held until the end of the run; None in a dry run"""
    part_of: Disk | None = None
    """the whole block device, if `device` is a partition of it"""

    @property
    def space(self) -> int:
        """Bytes that a load may fill of a directory."""
        return int(self.size * FILL)


def missing(name: str, medium: Medium) -> str | None:
    """Return why this machine cannot provide the medium; None if it can."""
    if medium.kind == "dir":
        return None
    if reason := powers.no_mount():
        return (
            f"medium {name} cannot be made: {reason}; measure an existing directory: "
            f"--dir DIRECTORY"
        )
    if medium.kind == "loop":
        if which("losetup") is None:
            return "losetup is not installed; apt-get install mount"
        return _loop_missing()
    if medium.kind in ("brd", "null_blk"):
        return _memory_device_missing(medium)
    return None


def _loop_missing() -> str | None:
    """Return why no loop device is usable; None if one is.

    A container may lack the device node, or the permission to open it.
    """
    if not Path("/dev/loop-control").exists():
        return (
            "this kernel or this container has no loop devices (no /dev/loop-control); measure a "
            "directory: --dir DIRECTORY"
        )
    try:
        device = Executor().run(["losetup", "--find"]).strip()
        os.close(os.open(device, os.O_RDONLY))
    except (CommandFailed, OSError) as error:
        return f"no loop device is usable: {error}; measure a directory: --dir DIRECTORY"
    return None


def _memory_device_missing(medium: Medium) -> str | None:
    if not _module_there(medium.kind):
        return f"this kernel does not support {medium.kind} (no module of that name)"
    if numa.prefix(medium.numa) and which("numactl") is None:
        return "numactl is not installed; apt-get install numactl, or leave numa out"
    return None


def _module_there(name: str) -> bool:
    if (Path("/sys/module") / name).exists():
        return True
    try:
        Executor().run(["modprobe", "--dry-run", "--quiet", name])
    except CommandFailed:
        return False
    return True


def size_of(medium: Medium, memory: int) -> int:
    """Return the size in bytes: as configured, or for a directory its free space."""
    if medium.size is not None:
        return resolve_size(medium.size, medium.max_size, memory)
    return guard.space_in(Path(medium.path or "/"))


def check(
    name: str,
    medium: Medium,
    memory: int,
    yes_format: str | None = None,
    by_id: Path = disk.BY_ID,
) -> CheckedDevice | None:
    """Check that `prepare` can provide the medium; return the checked block device, if it is one.

    Raises:
        FscaleError: the medium lacks a path, space or memory, or must not be formatted.
    """
    if medium.kind == "device":
        if not medium.path:
            raise FscaleError(f"medium {name} has no path; add --device {by_id}/NAME")
        return disk.check_device(Path(medium.path), yes_format, by_id)
    if medium.kind == "dir":
        guard.check_directory(Path(medium.path or ""))
    elif medium.backing:
        size = size_of(medium, memory)
        guard.check_directory(Path(medium.backing))
        if shutil.disk_usage(medium.backing).free < size:
            raise FscaleError(
                f"no space: {name} needs {size >> 20} MiB, and {medium.backing} has less free; "
                "free some, or lower its size"
            )
    else:
        guard.check_memory(size_of(medium, memory), f"medium {name}")
    return None


def prepare(
    name: str,
    medium: Medium,
    memory: int,
    journal: Journal,
    state: Path,
    tag: str,
    checked: CheckedDevice | None = None,
) -> Ready:
    """Make the medium, or take the checked device; every change is recorded in the journal.

    The caller must close `Ready.disk` before the changes are undone.

    Raises:
        FscaleError: the medium cannot be made, or the device has changed.
    """
    if medium.kind == "device":
        if checked is None:
            raise FscaleError(f"medium {name} was not checked, so it was not formatted")
        taken = None if journal.do.dry else Disk(checked)
        return Ready(checked.identity.size, str(checked.node), disk=taken)
    ready = _make(name, medium, memory, journal, state, tag)
    if ready.device and not journal.do.dry:
        return replace(ready, disk=Disk(disk.record_own_device(ready.device)))
    return ready


def _make(name: str, medium: Medium, memory: int, journal: Journal, state: Path, tag: str) -> Ready:
    size = size_of(medium, memory)
    if medium.kind == "dir":
        directory = Path(medium.path or "").resolve() / f"fscale-{tag}"
        journal.apply(TempDir(path=directory))
        return Ready(size, directory=directory)
    if medium.kind == "brd":
        return _brd(medium, size, journal)
    if medium.kind == "null_blk":
        return _null_blk(medium, size, journal)
    return _loop(name, medium, size, journal, state, tag)


def _loop(name: str, medium: Medium, size: int, journal: Journal, state: Path, tag: str) -> Ready:
    if medium.backing:
        directory = Path(medium.backing).resolve() / f"fscale-{tag}"
        journal.apply(TempDir(path=directory))
    else:
        directory = state / f"medium-{name}"
        # tmpfs needs a little more space than the file, for metadata.
        options = [f"size={size + (1 << 20)}", "noatime"]
        if numa.fits_mount(medium.numa):
            options += numa.mount_options(medium.numa)
        if HUGE_PAGES.exists():
            # Dropping caches before each cell visits every folio of the image, which takes a third
            # of a second for 6 GiB in small pages.
            options.append("huge=always")
        journal.apply(Mount(source="fscale", target=directory, fstype="tmpfs", options=options))
    file = directory / "image"
    if medium.backing or numa.fits_mount(medium.numa):
        journal.do.allocate(file, size)
    else:  # a tmpfs without a policy uses that of the process
        allocate = ["fallocate", "--length", str(size), str(file)]
        journal.do.run([*numa.prefix(medium.numa), *allocate], timeout=600)
    loop = LoopDevice(file=file, direct_io=medium.direct_io)
    journal.apply(loop)
    device = "/dev/loopN" if journal.do.dry else loop.devices()[0]
    return Ready(size, device=device)


def _fill(medium: Medium, device: str, size: int, journal: Journal) -> None:
    """Write all of a device in memory, so that its pages are allocated on the wanted nodes.

    Writes are direct, because kernel threads write back the page cache on any node. A device with a
    latency is not filled, which could take hours.
    """
    if not medium.latency_ns:
        copy = ["dd", "if=/dev/zero", f"of={device}", "bs=1M", f"count={size >> 20}"]
        journal.do.run([*numa.prefix(medium.numa), *copy, "oflag=direct"], timeout=600)


def _brd(medium: Medium, size: int, journal: Journal) -> Ready:
    if (Path("/sys/module") / "brd").exists():
        raise FscaleError("brd is already loaded and may be in use; unload it: modprobe -r brd")
    journal.apply(Module(name="brd", parameters=["rd_nr=1", f"rd_size={size >> 10}"]))
    _fill(medium, "/dev/ram0", size, journal)
    return Ready(size, device="/dev/ram0")


def _null_blk(medium: Medium, size: int, journal: Journal) -> Ready:
    if not (Path("/sys/module") / "null_blk").exists():
        journal.apply(Module(name="null_blk", parameters=["nr_devices=0"]))
    if not journal.do.dry and not NULLB.is_dir():
        raise FscaleError(f"{NULLB} does not exist; mount configfs at /sys/kernel/config")
    # Since Linux 5.20 the device is named after its directory, before nullb<N>.
    before = {p.name for p in Path("/sys/class/block").glob("*")}
    journal.apply(
        NullBlock(
            name="fscale",
            size=size,
            latency_ns=medium.latency_ns,
            queue_depth=medium.queue_depth,
        )
    )
    new = sorted({p.name for p in Path("/sys/class/block").glob("*")} - before)
    device = f"/dev/{new[0]}" if new else "/dev/fscale"
    _fill(medium, device, size, journal)
    return Ready(size, device=device)
