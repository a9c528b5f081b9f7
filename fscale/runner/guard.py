# SPDX-License-Identifier: GPL-2.0-only
"""Checks made before anything is changed: room and rights for files, memory."""

import os
import shutil
from pathlib import Path

from fscale.model.errors import FscaleError

LEAST_SPACE = 256 << 20


def existing(path: Path) -> Path:
    """The path, or the nearest directory above it that exists."""
    path = path.absolute()
    return next(p for p in [path, *path.parents] if p.exists())


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
    free = shutil.disk_usage(directory).free
    if free < LEAST_SPACE:
        raise FscaleError(
            f"no space: {directory} has {free >> 20} MiB free, and at least "
            f"{LEAST_SPACE >> 20} MiB are needed"
        )


def check_memory(size: int, what: str) -> None:
    """`size` bytes of memory can be had without driving the machine into swap."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    available = next(int(n.split()[1]) for n in lines if n.startswith("MemAvailable")) * 1024
    if 4 * size > 3 * available:
        raise FscaleError(
            f"no space: {what} wants {size >> 20} MiB of memory and {available >> 20} MiB are "
            f"available; lower its size in configs/ or free memory"
        )
