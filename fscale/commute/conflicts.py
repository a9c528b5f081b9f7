# SPDX-License-Identifier: GPL-2.0-only
"""Names the conflicts of a test, and keeps those that every boot has."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fscale.sim.cells import hot_line
from fscale.sim.kerneltypes import Types
from fscale.sim.output import CallUser, ConflictLine, PcOnLine, PluginLine
from fscale.sim.rules import LINE_BYTES
from fscale.sim.symbols import Symbols


@dataclass(frozen=True)
class Conflict:
    """A line that one call wrote and the other one accessed."""

    object: str
    """its name, which is that of other objects of the kind as well"""
    layout: bool
    """whether the calls accessed different bytes, which merely lie in one line"""
    a: tuple[str, ...]
    """the functions of call a that access it, writers first"""
    b: tuple[str, ...]


def named(line: ConflictLine, symbols: Symbols, types: Types | None) -> Conflict:
    """A conflict with names for its addresses."""
    shared = int(line.bytes, 16)
    users = [*line.a, *line.b]
    at_shared = [user for user in users if shared >> int(user.va, 16) % LINE_BYTES & 1]
    found = hot_line([_as_hot(line, at_shared or users)], symbols, types, {})
    return Conflict(
        found.thing, not shared, *(_functions(side, symbols) for side in (line.a, line.b))
    )


def _as_hot(line: ConflictLine, users: Sequence[CallUser]) -> PluginLine:
    """The line as the simulator reports one that cores take from each other."""
    none = dict.fromkeys(("memory", "clean", "dirty", "upgrade", "remote", "stall", "queue"), 0)
    pcs = [
        PcOnLine(pc=user.pc, va=user.va, reads=not user.write, writes=user.write, stall=0)
        for user in users
    ]
    place = line.model_dump(include={"va", "cache", "object", "size"})
    return PluginLine(pa=line.va, pcs=pcs, **place, **none)


def _functions(users: Sequence[CallUser], symbols: Symbols) -> tuple[str, ...]:
    ordered = sorted(users, key=lambda user: not user.write)
    return tuple(dict.fromkeys(symbols.function(int(user.pc, 16)) for user in ordered))


def lasting(boots: Sequence[Sequence[Conflict]]) -> list[Conflict]:
    """The conflicts of a test that each of its boots has, as the first boot saw them.

    A timer tick, or memory that happens to lie in one line, conflicts in one boot and not in
    another. Several conflicts of one kind stay as many as the boot with the fewest has.
    """
    kinds = [Counter((one.object, one.layout) for one in found) for found in boots]
    left = kinds[0]
    for more in kinds[1:]:
        left &= more
    kept = []
    for one in boots[0]:
        if left[one.object, one.layout] > 0:
            left[one.object, one.layout] -= 1
            kept.append(one)
    return kept
