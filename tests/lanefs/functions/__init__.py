# SPDX-License-Identifier: GPL-2.0-only
"""Function tests of a mounted file system: what POSIX and Linux promise, one function each."""

from tests.lanefs.functions import (
    administration,
    concurrent,
    crafted,
    damaged,
    delayed,
    directories,
    durable,
    files,
    flags,
    memory,
    names,
    nowait,
    power,
    promised,
    shutdown,
    space,
    volume,
    xattrs,
)

__all__ = [
    "administration",
    "concurrent",
    "crafted",
    "damaged",
    "delayed",
    "directories",
    "durable",
    "files",
    "flags",
    "memory",
    "names",
    "nowait",
    "power",
    "promised",
    "shutdown",
    "space",
    "volume",
    "xattrs",
]
