# SPDX-License-Identifier: GPL-2.0-only
"""Checks space, permissions and memory before anything on the machine is changed."""

import os
import pwd
import resource
import shutil
import subprocess
from pathlib import Path

from fscale.model import filetest
from fscale.model.errors import FscaleError
from fscale.model.results import Machine
from fscale.system import cgroups
from fscale.system.executor import Executor

MIN_SPACE = 256 << 20


def existing(path: Path) -> Path:
    """Return the path, or its nearest ancestor that exists."""
    path = path.absolute()
    return next(p for p in [path, *path.parents] if filetest.exists(p))


def check_proc(proc: Path = Path("/proc")) -> None:
    """Check that /proc belongs to this process's PID namespace.

    fscale kills processes by the ids that /proc shows, which would otherwise be other processes.

    Raises:
        FscaleError: it belongs to another namespace.
    """
    shown = (proc / "self").readlink().name
    if shown != str(os.getpid()):
        raise FscaleError(
            f"{proc} belongs to another PID namespace: it shows this process as {shown}, but its "
            f"id is {os.getpid()}; mount the right one: unshare --pid --fork --mount-proc"
        )


def check_output(directory: Path, first: str = "run.json") -> None:
    """Check that the results directory can be written; `first`: the file that marks one to resume.

    Raises:
        FscaleError: it cannot be written, contains other files, or its file system is full.
    """
    there = existing(directory)
    if not there.is_dir():
        raise FscaleError(f"{there} is not a directory; give another --output")
    if not os.access(there, os.W_OK | os.X_OK) or os.statvfs(there).f_flag & os.ST_RDONLY:
        raise FscaleError(f"{there} is not writable; give another --output")
    if directory.exists() and any(directory.iterdir()) and not (directory / first).exists():
        raise FscaleError(
            f"{directory} is not empty and has no {first}, so nothing in it can be resumed; give "
            "an empty or a new directory"
        )
    if shutil.disk_usage(there).free < 16 << 20:
        raise FscaleError(
            f"no space left in {there} for results: less than 16 MiB are free; free some, or give "
            "another --output"
        )


def check_directory(directory: Path) -> None:
    """Check that an existing directory can be the `dir` medium.

    Raises:
        FscaleError: it is not a writable directory, or lacks space.
    """
    if not directory.is_dir():
        raise FscaleError(f"{directory} is not a directory; --dir needs an existing one")
    if os.statvfs(directory).f_flag & os.ST_RDONLY or not os.access(directory, os.W_OK | os.X_OK):
        raise FscaleError(f"{directory} is read-only for this user; give another --dir")
    free = space_in(directory)
    if free < MIN_SPACE:
        raise FscaleError(
            f"no space: {directory} has {free >> 20} MiB free, but at least "
            f"{MIN_SPACE >> 20} MiB are needed; free some, or give another directory"
        )


def check_user(directory: Path, user: str, load: str) -> None:
    """Check that the user as which a load runs can enter an existing directory.

    Raises:
        FscaleError: it cannot, or there is no such user.
    """
    if os.geteuid():  # then the load runs as the user who runs fscale
        return
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise FscaleError(
            f"{load} runs as {user}, but there is no such user; give another user in its TOML file"
        ) from None
    where = directory.resolve()
    for each in (*reversed(where.parents), where):
        # The kernel knows ACLs and security modules, which the mode of a directory does not show.
        entered = subprocess.run(
            ["test", "-x", each],
            cwd="/",
            check=False,
            user=entry.pw_uid,
            group=entry.pw_gid,
            extra_groups=(),
        )
        if entered.returncode:
            raise FscaleError(
                f"{load} runs as {user}, who cannot enter {each}; give another --dir, or, "
                'for a load of your own, user = "root" in its TOML file'
            )


def memory_available() -> tuple[int, str]:
    """Return the bytes of memory that this process may still use, and what limits them.

    This is the machine's available memory, or what a cgroup leaves if that is less.
    """
    lines = Path("/proc/meminfo").read_text().splitlines()
    available = next(int(n.split()[1]) for n in lines if n.startswith("MemAvailable")) * 1024
    left = cgroups.memory_left(cgroups.chain("memory"))
    if left and left.value < available:
        return int(left.value), f"below the limit of this cgroup ({left.file})"
    return available, "on this machine"


def check_memory(size: int, what: str) -> None:
    """Check that `size` bytes take at most three quarters of the available memory.

    Raises:
        FscaleError: they take more.
    """
    available, where = memory_available()
    if 4 * size > 3 * available:
        raise FscaleError(
            f"no space: {what} needs {size >> 20} MiB of memory, which is more than three quarters "
            f"of the {available >> 20} MiB available {where}; lower its size in configs/, free "
            "memory, or raise the limit"
        )


def check_share(size: int, what: str, machine: Machine) -> None:
    """Check that a share of the memory that a cgroup may use is not too small to measure on.

    Raises:
        FscaleError: `size` (bytes) is below MIN_SPACE.
    """
    if machine.usable_memory < machine.memory_bytes and size < MIN_SPACE:
        raise FscaleError(
            f"no space: {what} gets a share of memory of {size >> 20} MiB, because the limit of "
            f"this cgroup is {machine.usable_memory >> 20} MiB, but at least "
            f"{MIN_SPACE >> 20} MiB are needed; raise the limit, or measure an existing "
            f"directory: --dir DIRECTORY"
        )


def check_file_size(size: int, what: str) -> None:
    """Check that this process may write a file of `size` bytes (ulimit -f).

    Raises:
        FscaleError: it may not.
    """
    most, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if most != resource.RLIM_INFINITY and most < size:
        raise FscaleError(
            f"no space: {what} is a file of {size >> 20} MiB, but ulimit -f bounds the files of "
            f"this process to {most >> 20} MiB; raise that limit"
        )


def in_memory(path: Path) -> bool:
    """Return whether a directory lies on tmpfs or ramfs, so that its files use memory."""
    fstype = Executor().run(["stat", "--file-system", "--format=%T", str(path)])
    return fstype.strip() in ("tmpfs", "ramfs")


def space_in(directory: Path) -> int:
    """Return the bytes that are free in an existing directory, bounded by memory on tmpfs."""
    free = shutil.disk_usage(directory).free
    return min(free, memory_available()[0]) if in_memory(directory) else free
