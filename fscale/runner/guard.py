# SPDX-License-Identifier: GPL-2.0-only
"""Checks made before anything is changed: above all, no device of others is ever formatted."""

import contextlib
import json
import os
import shutil
import stat
from pathlib import Path

from fscale.model.errors import FscaleError
from fscale.system.executor import CommandFailed, Executor, which

BY_ID = Path("/dev/disk/by-id")
LABEL = "fscale"
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
    if size > available * 3 // 4:
        raise FscaleError(
            f"no space: {what} wants {size >> 20} MiB of memory and {available >> 20} MiB are "
            f"available; lower its size in configs/ or free memory"
        )


def signature(device: Path) -> str:
    """What is on a block device, for people; `nothing that wipefs knows` when it looks empty."""
    out = Executor().run(["wipefs", "--no-act", "--json", str(device)])
    found = json.loads(out).get("signatures", []) if out.strip() else []
    said = [
        " ".join(str(item[k]) for k in ("type", "label", "uuid") if item.get(k)) for item in found
    ]
    return ", ".join(said) or "nothing that wipefs knows"


def _label(device: Path) -> str | None:
    with contextlib.suppress(CommandFailed):  # blkid fails on a device without a signature
        out = Executor().run(["blkid", "--probe", "--output", "value", "-s", "LABEL", str(device)])
        return out.strip() or None
    return None


def _family(name: str) -> list[Path]:
    """The device in sysfs, and its partitions."""
    base = Path("/sys/class/block") / name
    return [base, *(p for p in base.glob(f"{name}*") if (p / "partition").exists())]


def _users(name: str) -> str | None:
    """Who uses a block device or one of its partitions: mounts, swap, holders."""
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    swaps = [line.split()[0] for line in Path("/proc/swaps").read_text().splitlines()[1:]]
    for part in _family(name):
        number = (part / "dev").read_text().strip()
        for fields in mounts:
            source = fields[fields.index("-") + 2]
            # Btrfs shows an anonymous number, so the source counts too.
            if fields[2] == number or os.path.realpath(source) == f"/dev/{part.name}":
                return f"/dev/{part.name} is mounted at {fields[4]}"
        if f"/dev/{part.name}" in (os.path.realpath(s) for s in swaps):
            return f"/dev/{part.name} is used as swap"
        holders = part / "holders"
        if holders.is_dir() and (held := sorted(p.name for p in holders.iterdir())):
            return f"/dev/{part.name} is held by {', '.join(held)}"
    return None


def check_device(path: Path, yes_format: str | None, by_id: Path = BY_ID) -> Path:
    """Allow formatting of the block device at a stable path, or raise FscaleError.

    `yes_format` is the by-id name that the user gave on the command line: it allows the format of a
    device that does not carry our own label. Returns the resolved device node.
    """
    if which("wipefs") is None or which("blkid") is None:
        raise FscaleError("wipefs and blkid are needed to check a device: install util-linux")
    if path.parent != by_id:
        raise FscaleError(
            f"{path} is not a stable path; name the device as {by_id}/NAME (see ls -l {by_id})"
        )
    try:
        device = path.resolve(strict=True)
        mode = device.stat().st_mode
    except OSError as error:
        raise FscaleError(f"{path}: {error.strerror}; see ls -l {by_id}") from None
    if not stat.S_ISBLK(mode):
        raise FscaleError(f"{path} leads to {device}, which is not a block device")
    if used := _users(device.name):
        raise FscaleError(f"{path} is in use: {used}; fscale formats only unused devices")
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL))
    except OSError as error:
        raise FscaleError(f"{path} cannot be opened for us alone: {error.strerror}") from None
    if _label(device) != LABEL and yes_format != path.name:
        raise FscaleError(
            f"{path} is not ours; it holds: {signature(device)}. All of it would be lost. "
            f"If that is right, add --yes-format {path.name}"
        )
    return device
