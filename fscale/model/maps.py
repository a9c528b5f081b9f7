# SPDX-License-Identifier: GPL-2.0-only
"""Reads what bpftrace prints with `-f json`: one JSON object a line, a map each."""

import json
from typing import Any

MAP_KEYS = 1 << 16  # most entries of a map; what does not fit is not counted


def parse(output: str) -> dict[str, Any]:
    """Map name (with its @) -> its value: a number, or keys (as text) -> values.

    Lines that are not complete JSON objects (a truncated file, a warning in between) are left out;
    a file without any map gives an empty dictionary.
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
    """The entries of a map that are whole numbers; empty when it is no map."""
    if not isinstance(value, dict):
        return {}
    return {k: v for k, v in value.items() if _is_number(v)}


def entries(value: Any) -> dict[str, Any]:
    """The entries of a map; empty when it is no map."""
    return value if isinstance(value, dict) else {}


def number(value: Any) -> int:
    """A scalar map's value; 0 when it is something else."""
    return value if _is_number(value) else 0


def _is_number(value: Any) -> bool:
    """Whether bpftrace can have counted it: 64 bits."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 64
