# SPDX-License-Identifier: GPL-2.0-only
"""Files below /sys and /proc/sys with a setting each: which may be set, and how they show it."""

import os.path
import re

ROOTS = ("/sys/", "/proc/sys/")
DEVICE = "{name}"
"""stands for the device that is mounted, such as loop0"""
_TRUE = frozenset({"1", "y", "yes", "on", "true"})
_FALSE = frozenset({"0", "n", "no", "off", "false"})


def why_not(path: str, value: str) -> str | None:
    """Why a value cannot be set in a file by such a path; None where it may be one."""
    if not value.strip():
        return f"set={path}: give FILE=VALUE, such as /proc/sys/vm/dirty_ratio=5"
    if os.path.normpath(path) != path or not path.startswith(ROOTS):
        return f"set={path}: only files below {' and '.join(ROOTS)} are set, by their whole path"
    return None


def chosen(text: str) -> str:
    """The value in force as such a file shows it: of `none [bfq]` it is bfq."""
    found = re.search(r"(?:^|\s)\[([^\[\]\s]+)\](?=\s|$)", text)
    return found[1] if found else " ".join(text.split())


def same(one: str, other: str) -> bool:
    """Whether two texts are one setting: the kernel shows Y for 1, 16 for 0x10."""
    return _plain(one) == _plain(other)


def _plain(text: str) -> str:
    value = chosen(text).lower()
    if value in _TRUE:
        return "1"
    if value in _FALSE:
        return "0"
    try:
        return str(int(value, 0))
    except ValueError:
        return value
