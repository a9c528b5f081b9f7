# SPDX-License-Identifier: GPL-2.0-only
"""Pack simulated parents and children of kernel changes for docs/results/data.

    python -m docs.scripts.pack_published tests/validation/reverts/changes.toml results/RUNS \
        docs/results/data/simulated-published-changes.json

`tests.validation.published` makes the runs: CHANGE/parent and CHANGE/child. Of changes without runs
the file keeps the cells that it has.
"""

import json
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docs.scripts.pack import command_of, text
from docs.scripts.pack_simulated import hottest, machine_of
from fscale.analysis import reader

TITLE = "Published kernel changes, simulated"
SIDES = ("parent", "child")
ABOUT = ("machine", "kernel", "qemu")


def packed(
    changes: dict[str, dict[str, Any]], directory: Path, before: Mapping[str, Any]
) -> dict[str, Any]:
    """The changes, and cells of those that were simulated, as one JSON object.

    Args:
        changes: as in the TOML file.
        directory: the runs of some of them.
        before: what was packed earlier, from which the others are taken.

    Returns:
        `changes`: of each simulated one what the TOML file says of it, with command and start of
        the child's run; `waiting`: of each other one the same without these two; `machine`,
        `kernel` and `qemu`; `cells`: [change, side, cores, repetition, operations per simulated
        second, object, function, share] of each good cell, where the last three are as in
        `pack_simulated`.

    Raises:
        ValueError: the runs are not of the machine, kernel and QEMU of `before`.
    """
    told: dict[str, dict[str, Any]] = {}
    waiting: dict[str, dict[str, Any]] = {}
    cells: list[list[Any]] = []
    about = {key: before[key] for key in ABOUT}
    for name, change in changes.items():
        if not all((directory / name / side).is_dir() for side in SIDES):
            if name in before["changes"]:
                told[name] = {**before["changes"][name], **change}
                cells += [cell for cell in before["cells"] if cell[0] == name]
            else:
                waiting[name] = change
            continue
        for side in SIDES:
            one = reader.load(directory / name / side)
            told[name] = {**change, **command_of(one.run)}
            found = (machine_of(one.run), one.run.versions["kernel"], one.run.versions["qemu"])
            if dict(zip(ABOUT, found, strict=True)) != about:
                raise ValueError(f"{name}: {found} is not what was packed earlier")
            for cell in one.cells:
                if cell.status == "ok" and cell.ops_per_second:
                    rate = float(f"{cell.ops_per_second:.5g}")
                    where = [name, side, cell.key.cores, cell.key.repetition]
                    cells.append([*where, rate, *hottest(cell)])
    return {"title": TITLE, **about, "changes": told, "waiting": waiting, "cells": sorted(cells)}


def main() -> None:
    """Write the file anew."""
    changes = tomllib.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    file = Path(sys.argv[3])
    before = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(text(packed(changes, Path(sys.argv[2]), before), "cells"), encoding="utf-8")


if __name__ == "__main__":
    main()
