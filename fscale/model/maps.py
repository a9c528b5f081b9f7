# SPDX-License-Identifier: GPL-2.0-only
"""Parses the output of `bpftrace -f json`: one JSON object per line, one map in each."""

import json
from typing import Any

MAP_KEYS = 1 << 16  # largest number of entries in a map; entries beyond it are not counted


def parse(output: str) -> dict[str, Any]:
    """Return map name (with its @) -> its value: a number, or keys (as text) -> values.

    Lines that are not complete JSON objects are skipped: the file may be truncated, or contain
    warnings. A file without any map gives an empty dictionary.
    """
    maps: dict[str, Any] = {}
    for line in output.splitlines():
        try:
            item = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(item, dict) or not isinstance(item.get("data"), dict):
            continue
        if item.get("type") in ("map", "stats", "hist", "lhist"):
            maps.update({k: v for k, v in item["data"].items() if k.startswith("@")})
    return maps


def numbers(value: Any) -> dict[str, int]:
    """Return the entries of a map that are integers; empty if `value` is not a map."""
    if not isinstance(value, dict):
        return {}
    return {k: v for k, v in value.items() if _is_number(v)}


def entries(value: Any) -> dict[str, Any]:
    """Return the entries of a map; empty if `value` is not a map."""
    return value if isinstance(value, dict) else {}


def number(value: Any) -> int:
    """Return the value of a scalar map; 0 if `value` is not an integer."""
    return value if _is_number(value) else 0


def _is_number(value: Any) -> bool:
    """Return whether it is an integer of 64 bits, as bpftrace counts."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 64
