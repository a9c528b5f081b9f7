# SPDX-License-Identifier: GPL-2.0-only
"""Checks made before anything is changed: room and rights for files, memory."""

import os
import resource
import shutil
from pathlib import Path

from fscale.model.errors import FscaleError
from fscale.model.results import Machine
from fscale.system import cgroups
from fscale.system.executor import Executor

LEAST_SPACE = 256 << 20


def existing(path: Path) -> Path:
    """The path, or the nearest directory above it that exists."""
    path = path.absolute()
    return next(p for p in [path, *path.parents] if p.exists())


def check_proc(proc: Path = Path("/proc")) -> None:
    """/proc is that of our PID namespace, or FscaleError: its numbers would be others' processes.

    Processes are ended by the numbers that it shows.
    """
    shown = (proc / "self").readlink().name
    if shown != str(os.getpid()):
        raise FscaleError(
            f"{proc} is that of another PID namespace (it shows this process as {shown}, which is "
            f"{os.getpid()}); mount one of its own: unshare --pid --fork --mount-proc"
        )


def check_output(directory: Path) -> None:
    """The results directory can be written, or FscaleError says why not."""
    there = existing(directory)
    if not there.is_dir():
        raise FscaleError(f"{there} is not a directory; give another --output")
    if not os.access(there, os.W_OK | os.X_OK) or os.statvfs(there).f_flag & os.ST_RDONLY:
        raise FscaleError(f"{there} is not writable; give another --output")
    if directory.exists() and any(directory.iterdir()) and not (directory / "run.json").exists():
        raise FscaleError(
            f"{directory} is not empty and holds no fscale run; give an empty or new directory"
        )
    if shutil.disk_usage(there).free < 16 << 20:
        raise FscaleError(f"no space left in {there} for results; free some or give another")


def check_directory(directory: Path) -> None:
    """An existing directory can hold the files of a `dir` medium."""
    if not directory.is_dir():
        raise FscaleError(f"{directory} is not a directory; --dir needs an existing one")
    if os.statvfs(directory).f_flag & os.ST_RDONLY or not os.access(directory, os.W_OK | os.X_OK):
        raise FscaleError(f"{directory} is read-only for this user; give another --dir")
    free = space_in(directory)
    if free < LEAST_SPACE:
        raise FscaleError(
            f"no space: {directory} has {free >> 20} MiB free, and at least "
            f"{LEAST_SPACE >> 20} MiB are needed"
        )


def memory_available() -> tuple[int, str]:
    """Bytes of memory that this process may still take, and where that is said.

    The machine's available memory, or less where a control group leaves less.
    """
    lines = Path("/proc/meminfo").read_text().splitlines()
    available = next(int(n.split()[1]) for n in lines if n.startswith("MemAvailable")) * 1024
    left = cgroups.memory_left(cgroups.chain("memory"))
    if left and left.value < available:
        return int(left.value), f"below the limit of this control group ({left.file})"
    return available, "on this machine"


def check_memory(size: int, what: str) -> None:
    """`size` bytes of memory can be had: without swapping, and below our groups' limit."""
    available, where = memory_available()
    if 4 * size > 3 * available:
        raise FscaleError(
            f"no space: {what} wants {size >> 20} MiB of memory and {available >> 20} MiB are "
            f"available {where}; lower its size in configs/, or free memory or raise the limit"
        )


def check_share(size: int, what: str, machine: Machine) -> None:
    """A share of what a control group may use is as large as a directory has to be."""
    if machine.usable_memory < machine.memory_bytes and size < LEAST_SPACE:
        raise FscaleError(
            f"no space: {what} wants a share of memory that comes to {size >> 20} MiB, for the "
            f"limit of this control group is {machine.usable_memory >> 20} MiB, and at least "
            f"{LEAST_SPACE >> 20} MiB are needed; raise the limit, or measure an existing "
            f"directory: --dir DIRECTORY"
        )


def check_file_size(size: int, what: str) -> None:
    """A file of `size` bytes may be written (ulimit -f)."""
    most, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if most != resource.RLIM_INFINITY and most < size:
        raise FscaleError(
            f"no space: {what} is a file of {size >> 20} MiB, and files of this process may have "
            f"{most >> 20} MiB (ulimit -f); raise that"
        )


def in_memory(path: Path) -> bool:
    """Whether a directory's files take memory: it lies on tmpfs or ramfs."""
    said = Executor().run(["stat", "--file-system", "--format=%T", str(path)])
    return said.strip() in ("tmpfs", "ramfs")


def space_in(directory: Path) -> int:
    """Bytes that may be filled in an existing directory: what is free, and may be taken."""
    free = shutil.disk_usage(directory).free
    return min(free, memory_available()[0]) if in_memory(directory) else free
