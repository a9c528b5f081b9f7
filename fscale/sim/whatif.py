# SPDX-License-Identifier: GPL-2.0-only
"""What-if runs: objects that cost nothing.

`--what-if` simulates points again with each of their hottest objects free of cost, `--free NAME`
all points with a static object or a function of the guest's kernel or modules free.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from fscale.model.errors import FscaleError
from fscale.model.results import WHATIF_SIDE, Cell, CellKey
from fscale.model.simulation import HEAP, HotLine
from fscale.sim.boot import Boot, BootError
from fscale.sim.campaign import start
from fscale.sim.rules import CODE, DATA, rule
from fscale.sim.sweep import Freed, PreparedSweep
from fscale.sim.symbols import Symbols

# A guest with one CPU and no points boots and ends within ten seconds on an idle host.
BOOT_SECONDS = 300.0


def objects(lines: Iterable[HotLine], most: int) -> list[Freed]:
    """The hottest objects that can be made free, at most `most`.

    Lines with an instruction or a symbol in common are one object.
    """
    groups: list[tuple[set[str], str, list[str]]] = []
    for line in lines:
        if not line.rules:
            continue
        marks = {name.partition("+")[0] for name in line.names}
        marks |= set(line.rules)
        same = next((one for one in groups if one[0] & marks), None)
        if same is None:
            groups.append((marks, describe_object(line), list(line.rules)))
        else:
            same[0].update(marks)
            same[2].extend(line.rules)
    return [Freed(text, tuple(dict.fromkeys(rules))) for _, text, rules in groups[:most]]


def describe_object(line: HotLine) -> str:
    """Describe an object for the user: its name, and the functions that use it."""
    kind = line.object.partition(" (")[0] if line.object.startswith("struct page") else line.object
    kind = (line.members or "heap memory") if kind.startswith(HEAP) else kind
    users = ", ".join(user.function for user in line.users[:2])
    return f"{kind} ({users})" if users else kind


def plan_whatif(prepared: PreparedSweep, cells: Iterable[Cell], most: int) -> PreparedSweep:
    """The second stage: points with the most cores again, once for each of their objects."""
    good = [c for c in cells if c.status == "ok" and c.simulation and c.key.side is None]
    top: dict[tuple[str, str], Cell] = {}
    for cell in sorted(good, key=lambda c: (-c.key.cores, c.key.repetition)):
        top.setdefault((cell.key.load, cell.key.filesystem), cell)
    freed: dict[str, Freed] = {}
    keys: list[CellKey] = []
    for cell in top.values():
        assert cell.simulation is not None
        asked = objects(cell.simulation.lines, most)
        same = [c.key for c in good if c.key.point == cell.key.point]
        for rank, thing in enumerate(asked, 1):
            for key in same:
                again = key.model_copy(update={"side": f"{WHATIF_SIDE}{rank}"})
                keys.append(again)
                freed[again.id] = thing
    run = prepared.run.model_copy(
        update={"planned_cells": len(prepared.cells) + len(keys)}, deep=True
    )
    return replace(prepared, cells=keys, freed=freed, run=run)


def free_objects(prepared: PreparedSweep, names: Sequence[str]) -> PreparedSweep:
    """The sweep, with all named objects free in each of its cells."""
    known = symbols(prepared)
    freed = Freed(", ".join(names), tuple(rule_of(known, name) for name in names))
    return replace(prepared, freed={key.id: freed for key in prepared.cells})


def rule_of(known: Symbols, name: str) -> str:
    """A rule for the lines of an object, or for the instructions of a function."""
    place = known.extent(name)
    if place is None:
        raise FscaleError(
            f"--free {name}: the kernel has no such symbol; give a static object such as "
            "rename_lock, or a function, to make the lines free that it takes"
        )
    extent, code = place
    words = rule(known, CODE if code else DATA, extent)
    if words is None:
        raise FscaleError(
            f"--free {name}: its address differs between boots, or two symbols have this name; "
            "give another symbol"
        )
    return words


def symbols(prepared: PreparedSweep) -> Symbols:
    """The guest's symbols, from a short boot, once per image."""
    kept = prepared.initramfs.parent / "kallsyms"
    if not kept.exists():
        partial = kept.with_suffix(".partial")
        partial.write_text(_boot(replace(prepared, parameters=prepared.parameters | {"vcpus": 1})))
        partial.replace(kept)
    return Symbols(kept.read_text().splitlines())


def _boot(prepared: PreparedSweep) -> str:
    with Boot([], "", ()) as boot:
        start(prepared, boot, [], 0)
        ends = time.monotonic() + BOOT_SECONDS
        while not boot.done:
            if time.monotonic() > ends:
                raise BootError("the short boot that lists the guest's symbols did not end", None)
            boot.poll()
            time.sleep(0.2)
        return boot.kallsyms()
