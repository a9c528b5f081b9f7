# SPDX-License-Identifier: GPL-2.0-only
"""Reads the mount below a path, with its effective options."""

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from fscale.model import mount
from fscale.model.results import Mounted
from fscale.system import mountinfo

PROC = Path("/proc")
SYSFS = Path("/sys")

# Options that name a path or a peer and do not affect how the file system works.
_PLACES = frozenset(
    {
        *("lowerdir", "upperdir", "workdir", "lowerdir+", "datadir+", "subvol", "subvolid"),
        *("addr", "clientaddr", "mountaddr", "mountport", "port", "fd", "pgrp", "source"),
    }
)


@dataclass(frozen=True)
class Entry:
    """A line of mountinfo (proc_pid_mountinfo(5))."""

    device: str
    """major:minor"""
    root: str
    options: list[str]
    """options of the mount and of its file system"""
    fstype: str
    source: str

    def value(self, name: str) -> str | None:
        """Return the value of an option, such as upperdir; None without it."""
        values = (o.partition("=")[2] for o in self.options if o.startswith(f"{name}="))
        return next(values, None)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)


def entries(proc: Path = PROC) -> dict[int, Entry]:
    """Return all mounts that this process sees, by mount id."""
    mounts = {}
    for line in mountinfo.read(proc):
        options = mount.split(line.options) + mount.split(line.super_options)
        mounts[line.number] = Entry(
            line.device,
            _printable(line.root),
            [_printable(mountinfo.unescape(option)) for option in options],
            line.fstype,
            _printable(line.source),
        )
    return mounts


def holding(path: Path, proc: Path = PROC) -> Entry | None:
    """Return the mount that contains a path; None if it is not visible, as in a chroot.

    The kernel reports its mount id, so nothing is guessed where several mounts are stacked.
    """
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        text = (proc / "self" / "fdinfo" / str(fd)).read_text()
    except OSError:
        return None
    finally:
        os.close(fd)
    number = re.search(r"^mnt_id:\s*(\d+)$", text, re.MULTILINE)
    return entries(proc).get(int(number[1])) if number else None


def read(path: Path, proc: Path = PROC, sysfs: Path = SYSFS) -> Mounted | None:
    """Return the mount that contains a path, with its effective options; None if not visible."""
    entry = holding(path, proc)
    return describe(entry, proc, sysfs) if entry else None


def describe(entry: Entry, proc: Path = PROC, sysfs: Path = SYSFS) -> Mounted:
    """Describe an entry with all effective options."""
    options = {*entry.options, *_of_ext4(entry, proc, sysfs)}
    if "ro" in options:
        options.discard("rw")
    if upper := entry.value("upperdir"):
        options |= {f"upper:{option}" for option in _upper(Path(upper), proc, sysfs)}
    kept = sorted(o for o in options if o.partition("=")[0] not in _PLACES)
    return Mounted(fstype=entry.fstype, source=entry.source, root=entry.root, options=kept)


def _upper(directory: Path, proc: Path, sysfs: Path) -> list[str]:
    """Return type and options of the file system that an overlay writes to, if visible."""
    upper = read(directory, proc, sysfs)
    return [upper.fstype, *upper.options] if upper else []


def _of_ext4(entry: Entry, proc: Path, sysfs: Path) -> list[str]:
    """Return all options of ext4; mountinfo omits defaults such as data=ordered."""
    if not entry.fstype.startswith("ext"):
        return []
    name = device_name(entry.device, sysfs)
    with contextlib.suppress(OSError):
        return (proc / "fs" / "ext4" / name / "options").read_text().split()
    return []


def device_name(number: str, sysfs: Path = SYSFS) -> str:
    """Return the kernel's name of a block device, with ! for /; empty if there is none."""
    base = sysfs / "dev" / "block" / number
    return base.resolve().name if base.exists() else ""


def changed(before: Mounted | None, after: Mounted | None) -> str | None:
    """Describe how two states of a mount differ; None if they are equal or one is unknown."""
    if before is None or after is None or before == after:
        return None
    if before.fstype != after.fstype:
        return f"{before.fstype} -> {after.fstype}"
    gone = sorted(set(before.options) - set(after.options))
    come = sorted(set(after.options) - set(before.options))
    if gone or come:
        return f"{','.join(gone) or 'nothing'} -> {','.join(come) or 'nothing'}"
    return f"{before.source} {before.root} -> {after.source} {after.root}"
