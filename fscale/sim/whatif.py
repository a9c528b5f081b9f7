# SPDX-License-Identifier: GPL-2.0-only
"""What-if runs: simulates points again with each of their hottest objects free of cost."""

from collections.abc import Iterable
from dataclasses import replace

from fscale.model.results import Cell, CellKey
from fscale.model.simulation import HEAP, HotLine
from fscale.sim.sweep import Freed, Prepared

PREFIX = "free-"


def objects(lines: Iterable[HotLine], most: int) -> list[Freed]:
    """The hottest objects that can be made free, at most `most`.

    Lines with an instruction or a symbol in common are one object.
    """
    found: list[tuple[set[str], str, list[str]]] = []
    for line in lines:
        if not line.rules:
            continue
        marks = {name.partition("+")[0] for name in line.names}
        marks |= set(line.rules)
        same = next((one for one in found if one[0] & marks), None)
        if same is None:
            found.append((marks, describe_object(line), list(line.rules)))
        else:
            same[0].update(marks)
            same[2].extend(line.rules)
    return [Freed(text, tuple(dict.fromkeys(rules))) for _, text, rules in found[:most]]


def describe_object(line: HotLine) -> str:
    """Describe an object for the user: its name, and the functions that use it."""
    kind = line.object.partition(" (")[0] if line.object.startswith("struct page") else line.object
    kind = (line.members or "heap memory") if kind.startswith(HEAP) else kind
    users = ", ".join(user.function for user in line.users[:2])
    return f"{kind} ({users})" if users else kind


def plan_whatif(prepared: Prepared, cells: Iterable[Cell], most: int) -> Prepared:
    """The second stage: points with the most cores again, once for each of their objects."""
    good = [c for c in cells if c.status == "ok" and c.simulation and c.key.side is None]
    top: dict[tuple[str, str], Cell] = {}
    for cell in sorted(good, key=lambda c: (-c.key.cores, c.key.repetition)):
        top.setdefault((cell.key.workload, cell.key.filesystem), cell)
    freed: dict[str, Freed] = {}
    keys: list[CellKey] = []
    for cell in top.values():
        assert cell.simulation is not None
        asked = objects(cell.simulation.lines, most)
        same = [c.key for c in good if c.key.point == cell.key.point]
        for rank, thing in enumerate(asked, 1):
            for key in same:
                again = key.model_copy(update={"side": f"{PREFIX}{rank}"})
                keys.append(again)
                freed[again.id] = thing
    run = prepared.run.model_copy(
        update={"planned_cells": len(prepared.cells) + len(keys)}, deep=True
    )
    return replace(prepared, cells=keys, freed=freed, run=run)
