# SPDX-License-Identifier: GPL-2.0-only
"""Reads /proc/self/mountinfo (proc_pid_mountinfo(5))."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Line:
    """A mount. Bytes that are not UTF-8 are surrogates (os.fsdecode), so that paths lead there."""

    number: int
    device: str
    """major:minor"""
    root: str
    """the directory of the file system that is mounted"""
    target: str
    options: str
    """of the mount, with its escapes: a comma in a value is one"""
    fstype: str
    source: str
    super_options: str
    """of the file system, with its escapes"""


def read(proc: Path = Path("/proc")) -> list[Line]:
    """All mounts that this process sees, in mount order; none where /proc is not there."""
    try:
        content = os.fsdecode((proc / "self" / "mountinfo").read_bytes())
    except OSError:
        return []
    return list(_parse(content))


def _parse(content: str) -> Iterator[Line]:
    # The kernel escapes blanks, tabs, newlines and backslashes, and no other white space.
    for line in content.split("\n"):
        mount, dash, filesystem = line.partition(" - ")
        if not dash:
            continue
        number, _, device, root, target, options = mount.split(" ")[:6]
        fstype, source, super_options = [*filesystem.split(" "), "", ""][:3]
        yield Line(
            int(number),
            device,
            unescaped(root),
            unescaped(target),
            options,
            fstype,
            unescaped(source),
            super_options,
        )


def unescaped(field: str) -> str:
    """A field without the octal escapes of the kernel."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), field)
