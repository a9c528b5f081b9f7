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
    """A mount. Bytes that are not UTF-8 are surrogates (os.fsdecode), so that paths stay usable."""

    number: int
    device: str
    """major:minor"""
    root: str
    """the directory of the file system that is mounted"""
    target: str
    options: str
    """options of the mount, still escaped, because a comma in a value is an escape"""
    fstype: str
    source: str
    super_options: str
    """options of the file system, still escaped"""


def read(proc: Path = Path("/proc")) -> list[Line]:
    """List all mounts that this process sees, in mount order; none without /proc."""
    try:
        content = os.fsdecode((proc / "self" / "mountinfo").read_bytes())
    except OSError:
        return []
    return list(_parse(content))


def _parse(content: str) -> Iterator[Line]:
    # The kernel escapes blanks, tabs, newlines and backslashes, but no other white space, so
    # splitlines() would split too much.
    for line in content.split("\n"):
        mount, dash, filesystem = line.partition(" - ")
        if not dash:
            continue
        number, _, device, root, target, options = mount.split(" ")[:6]
        fstype, source, super_options = [*filesystem.split(" "), "", ""][:3]
        yield Line(
            int(number),
            device,
            unescape(root),
            unescape(target),
            options,
            fstype,
            unescape(source),
            super_options,
        )


def unescape(field: str) -> str:
    """Replace the kernel's octal escapes in a field."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), field)
