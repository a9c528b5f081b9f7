# SPDX-License-Identifier: GPL-2.0-only
"""Pack simulated parents and children of kernel changes for docs/results/data.

    python -m docs.scripts.pack_published tests/validation/reverts/changes.toml results/RUNS \
        > docs/results/data/simulated-published-changes.json

`tests.validation.published` makes the runs: CHANGE/parent and CHANGE/child.
"""

import sys
import tomllib
from pathlib import Path
from typing import Any

from docs.scripts.pack import command_of, text
from docs.scripts.pack_simulated import hottest, machine_of
from fscale.analysis import reader

TITLE = "Published kernel changes, simulated"
SIDES = ("parent", "child")


def packed(changes: dict[str, dict[str, Any]], directory: Path) -> dict[str, Any]:
    """The changes that were simulated, as one JSON object.

    Returns:
        `changes`: of each what the TOML file says of it, with command and start of the child's
        run; `machine`, `kernel` and `qemu`; `cells`: [change, side, cores, repetition, operations
        per simulated second, object, function, share] of each good cell, where the last three are
        as in `pack_simulated`.
    """
    told: dict[str, dict[str, Any]] = {}
    cells: list[list[Any]] = []
    about: dict[str, str] = {}
    for name, change in changes.items():
        if not all((directory / name / side).is_dir() for side in SIDES):
            continue
        for side in SIDES:
            one = reader.load(directory / name / side)
            told[name] = {**change, **command_of(one.run)}
            about = {
                "machine": machine_of(one.run),
                "kernel": one.run.versions["kernel"],
                "qemu": one.run.versions["qemu"],
            }
            for cell in one.cells:
                if cell.status == "ok" and cell.ops_per_second:
                    rate = float(f"{cell.ops_per_second:.5g}")
                    where = [name, side, cell.key.cores, cell.key.repetition]
                    cells.append([*where, rate, *hottest(cell)])
    return {"title": TITLE, **about, "changes": told, "cells": sorted(cells)}


def main() -> None:
    """Write to standard output."""
    changes = tomllib.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.stdout.write(text(packed(changes, Path(sys.argv[2])), "cells"))


if __name__ == "__main__":
    main()
