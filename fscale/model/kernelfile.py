# SPDX-License-Identifier: GPL-2.0-only
"""Kernel files below /sys and /proc/sys: which may be set, and how they show their value."""

import os.path
import re

ROOTS = ("/sys/", "/proc/sys/")
DEVICE = "{name}"
"""placeholder for the name of the mounted device, such as loop0"""
_TRUE = frozenset({"1", "y", "yes", "on", "true"})
_FALSE = frozenset({"0", "n", "no", "off", "false"})


def why_not_settable(path: str, value: str) -> str | None:
    """Return why `path` or `value` cannot be used as a setting; None if it may be one."""
    if not value.strip():
        return f"set={path} has no value; give FILE=VALUE, such as /proc/sys/vm/dirty_ratio=5"
    if os.path.normpath(path) != path or not path.startswith(ROOTS):
        return (
            f"set={path} is not the full path of a file below {' or '.join(ROOTS)}; give one, such "
            "as /proc/sys/vm/dirty_ratio=5"
        )
    return None


def value_in_effect(text: str) -> str:
    """Return the value in effect from the text of such a file: bfq of `none [bfq]`."""
    match = re.search(r"(?:^|\s)\[([^\[\]\s]+)\](?=\s|$)", text)
    return match[1] if match else " ".join(text.split())


def same_value(one: str, other: str) -> bool:
    """Return whether two texts mean the same value: the kernel shows Y for 1, 16 for 0x10."""
    return _plain(one) == _plain(other)


def _plain(text: str) -> str:
    value = value_in_effect(text).lower()
    if value in _TRUE:
        return "1"
    if value in _FALSE:
        return "0"
    try:
        return str(int(value, 0))
    except ValueError:
        return value
