# SPDX-License-Identifier: GPL-2.0-only
"""What mkfs chose: read from the fresh file system before it is mounted."""

import re

from fscale.model.config import FileSystem
from fscale.system.executor import CommandFailed, Executor, which

_SECTION = re.compile(r"\s*([\w-]*)\s*=")
_PAIR = re.compile(r"([\w-]+)=(\S+?)(?=[\s,]|$)")
_LINE = re.compile(r"(\S.*?)(?::|\t| {2})\s*(\S.*)")


def parse(text: str, keys: list[str]) -> dict[str, str]:
    """The values of `keys` in a description, each with its blanks made single.

    It reads lines of `KEY: VALUE` or `KEY<tab>VALUE` (dumpe2fs, btrfs) and those of
    `SECTION = NAME=VALUE NAME=VALUE` (xfs_info), whose keys are SECTION.NAME.
    """
    found: dict[str, str] = {}
    section = ""
    for line in text.splitlines():
        if head := _SECTION.match(line):
            section = head[1] or section
            found |= {
                f"{section}.{name}": value for name, value in _PAIR.findall(line[head.end() :])
            }
        elif pair := _LINE.match(line):
            found[pair[1]] = " ".join(pair[2].split())
    return {key: found[key] for key in keys if key in found}


def read(fs: FileSystem, device: str, do: Executor) -> dict[str, str] | None:
    """The geometry of a fresh file system on `device`; None where nobody can say it."""
    if fs.geometry is None or which(fs.geometry.command[0]) is None:
        return None
    argv = [argument.replace("{device}", device) for argument in fs.geometry.command]
    try:
        return parse(do.run(argv, timeout=60), fs.geometry.keys) or None
    except CommandFailed:
        return None
