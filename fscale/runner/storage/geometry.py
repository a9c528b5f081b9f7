# SPDX-License-Identifier: GPL-2.0-only
"""Reads the parameters that mkfs chose, from a fresh or from an existing file system."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from fscale.model import catalogue, paths
from fscale.model.config import FileSystem
from fscale.model.results import Mounted
from fscale.runner.storage.mounted import device_name, holding
from fscale.system.executor import CommandFailed, Executor, which

_SECTION = re.compile(r"\s*([\w-]*)\s*=")
_PAIR = re.compile(r"([\w-]+)=(\S+?)(?=[\s,]|$)")
_LINE = re.compile(r"(\S.*?)(?::|\t| {2})\s*(\S.*)")


# Features that come and go while the file system is mounted.
_PASSING = frozenset({"needs_recovery", "orphan_present"})


def parse(text: str, keys: Sequence[str]) -> dict[str, str]:
    """Return the values of `keys` in a description."""
    values = parse_all(text)
    return {key: values[key] for key in keys if key in values}


def parse_all(text: str) -> dict[str, str]:
    """Parse all values of a description, with single blanks between words.

    Lines are `KEY: VALUE` or `KEY<tab>VALUE` (dumpe2fs, btrfs), or
    `SECTION = NAME=VALUE NAME=VALUE` (xfs_info), whose keys become SECTION.NAME.
    """
    values: dict[str, str] = {}
    section = ""
    for line in text.splitlines():
        if head := _SECTION.match(line):
            section = head[1] or section
            values |= {
                f"{section}.{name}": value for name, value in _PAIR.findall(line[head.end() :])
            }
        elif pair := _LINE.match(line):
            values[pair[1]] = " ".join(word for word in pair[2].split() if word not in _PASSING)
    return values


def read(fs: FileSystem, device: str, do: Executor) -> dict[str, str]:
    """Read the description of the file system on `device`; empty if no tool can read it."""
    if fs.geometry is None or which(fs.geometry.command[0]) is None:
        return {}
    argv = [argument.replace("{device}", device) for argument in fs.geometry.command]
    try:
        return parse_all(do.run(argv, timeout=60))
    except CommandFailed:
        return {}


def requested_values(fs: FileSystem, description: Mapping[str, str]) -> dict[str, str] | None:
    """Return the values that the file system's TOML file requests; None if there are none."""
    keys = fs.geometry.keys if fs.geometry else []
    return {key: description[key] for key in keys if key in description} or None


def of_directory(directory: Path, mounted: Mounted | None, do: Executor) -> dict[str, str]:
    """Read the geometry of the file system below a directory, as far as this user may."""
    about = os.statvfs(directory)
    values = {
        "block size": str(about.f_bsize),
        "fragment size": str(about.f_frsize),
        "size in bytes": str(about.f_blocks * about.f_frsize),
    }
    node = node_below(directory)
    if mounted is None or node is None:
        return values
    if (paths.FILESYSTEMS / f"{mounted.fstype}.toml").exists():
        fs = catalogue.load_filesystem(mounted.fstype)
        values |= requested_values(fs, read(fs, str(node), do)) or {}
    return values


def node_below(directory: Path) -> Path | None:
    """Return the block device below a directory; None if this user cannot read it."""
    if (entry := holding(directory)) is None:
        return None
    name = device_name(entry.device).replace("!", "/")
    node = Path("/dev") / name if name else Path(entry.source)
    # The source of tmpfs is a word, which could be the name of something where the user stands.
    if not node.is_absolute():
        return None
    return node if node.is_block_device() and os.access(node, os.R_OK) else None
