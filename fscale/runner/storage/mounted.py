# SPDX-License-Identifier: GPL-2.0-only
"""What is mounted where, with the options that are in effect, as the kernel shows it."""

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

# They name a place or a peer, and say nothing of how the file system works.
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
    """of the mount, and of the file system behind it"""
    fstype: str
    source: str

    def value(self, name: str) -> str | None:
        """The value of an option, such as upperdir."""
        found = (o.partition("=")[2] for o in self.options if o.startswith(f"{name}="))
        return next(found, None)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)


def entries(proc: Path = PROC) -> dict[int, Entry]:
    """All mounts that this process sees, by the kernel's number."""
    found = {}
    for line in mountinfo.read(proc):
        options = mount.split(line.options) + mount.split(line.super_options)
        found[line.number] = Entry(
            line.device,
            _printable(line.root),
            [_printable(mountinfo.unescaped(option)) for option in options],
            line.fstype,
            _printable(line.source),
        )
    return found


def holding(path: Path, proc: Path = PROC) -> Entry | None:
    """The mount that holds a file or directory; None where it cannot be seen, as in a chroot.

    The kernel says which one it is: of several at one place, and beneath others, none is guessed.
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
    """The mount that holds a path, and its options in effect; None where it cannot be seen."""
    entry = holding(path, proc)
    return describe(entry, proc, sysfs) if entry else None


def describe(entry: Entry, proc: Path = PROC, sysfs: Path = SYSFS) -> Mounted:
    """An entry with all options that are in effect."""
    options = {*entry.options, *_of_ext4(entry, proc, sysfs)}
    if "ro" in options:
        options.discard("rw")
    if upper := entry.value("upperdir"):
        options |= {f"upper:{option}" for option in _upper(Path(upper), proc, sysfs)}
    kept = sorted(o for o in options if o.partition("=")[0] not in _PLACES)
    return Mounted(fstype=entry.fstype, source=entry.source, root=entry.root, options=kept)


def _upper(directory: Path, proc: Path, sysfs: Path) -> list[str]:
    """Of an overlay: the file system that its files are written to, where it can be seen."""
    found = read(directory, proc, sysfs)
    return [found.fstype, *found.options] if found else []


def _of_ext4(entry: Entry, proc: Path, sysfs: Path) -> list[str]:
    """All options of ext4: mountinfo leaves out those that are the default, data=ordered too."""
    if not entry.fstype.startswith("ext"):
        return []
    name = device_name(entry.device, sysfs)
    with contextlib.suppress(OSError):
        return (proc / "fs" / "ext4" / name / "options").read_text().split()
    return []


def device_name(number: str, sysfs: Path = SYSFS) -> str:
    """The kernel's name of a block device, with ! for /; empty where there is none."""
    base = sysfs / "dev" / "block" / number
    return base.resolve().name if base.exists() else ""


def changed(before: Mounted | None, after: Mounted | None) -> str | None:
    """What differs between two looks at a mount, in words; None where nothing does."""
    if before is None or after is None or before == after:
        return None
    if before.fstype != after.fstype:
        return f"{before.fstype} -> {after.fstype}"
    gone = sorted(set(before.options) - set(after.options))
    come = sorted(set(after.options) - set(before.options))
    if gone or come:
        return f"{','.join(gone) or 'nothing'} -> {','.join(come) or 'nothing'}"
    return f"{before.source} {before.root} -> {after.source} {after.root}"
