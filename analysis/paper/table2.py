# SPDX-License-Identifier: GPL-2.0-only
"""FxMark's workloads as described in its paper (`table2.toml`), for imported FxMark runs."""

import tomllib
from functools import cache
from pathlib import Path

from fscale.model.bench import Descriptor

_FILE = Path(__file__).with_name("table2.toml")
_SHARING = {"L": "low", "M": "medium", "H": "high"}


@cache
def table2() -> dict[str, Descriptor]:
    """The descriptors by name. The table does not describe the set-up of workloads."""
    read = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return {name: _descriptor(name, row) for name, row in read.items()}


def _descriptor(name: str, row: dict[str, str]) -> Descriptor:
    """Decode a name: data or metadata, read or write, object, and sharing."""
    data = name[0] == "D"
    return Descriptor.model_validate(
        {
            "id": name,
            "paper": name,
            "type": "data" if data else "metadata",
            "action": "read" if name[1] == "R" else "write",
            "sharing": _SHARING[name[3]],
            "setup": "",
            "consumes": False,
            "background": False,
            "min_cores": 1,
            "modes": ["buffered", "direct"] if data else ["buffered"],
            "options": [],
            **row,
        }
    )
