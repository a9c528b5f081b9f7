# SPDX-License-Identifier: GPL-2.0-only
"""Names the conflicts of a test, and keeps those that every boot has."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fscale.sim.cells import hot_line
from fscale.sim.kerneltypes import Types
from fscale.sim.output import CallUser, ConflictLine, PcOnLine, PluginLine
from fscale.sim.symbols import Symbols

# Names of memory whose objects are not known, which end in an address, and their kinds.
_ADDRESSED = {"memory at": "memory", "struct page": "struct page", "vmalloc area": "vmalloc area"}
_NOT_COUNTED = ("memory", "clean", "dirty", "upgrade", "remote", "stall", "queue")


@dataclass(frozen=True)
class Conflict:
    """A line that one call wrote and the other one accessed."""

    object: str
    """what lies there, by a name that others of its kind have as well"""
    layout: bool
    """whether the calls accessed different bytes, which merely lie in one line"""
    a: tuple[str, ...]
    """the functions of call a that access it, writers first"""
    b: tuple[str, ...]


def named(line: ConflictLine, symbols: Symbols, types: Types | None) -> Conflict:
    """A conflict with names for its addresses."""
    place = line.model_dump(include={"va", "cache", "object", "size"})
    taken = PcOnLine(pc="0x0", va=line.va, reads=0, writes=1, stall=0)
    told = PluginLine(pa=line.va, pcs=[taken], **place, **dict.fromkeys(_NOT_COUNTED, 0))
    name = hot_line([told], symbols, types, {}).thing
    kind = next((kind for begin, kind in _ADDRESSED.items() if name.startswith(begin)), name)
    return Conflict(kind, line.layout, _functions(line.a, symbols), _functions(line.b, symbols))


def _functions(users: Sequence[CallUser], symbols: Symbols) -> tuple[str, ...]:
    ordered = sorted(users, key=lambda user: not user.write)
    return tuple(dict.fromkeys(symbols.function(int(user.pc, 16)) for user in ordered))


def lasting(boots: Sequence[Sequence[Conflict]]) -> list[Conflict]:
    """The conflicts of a test that each of its boots has, as the first boot saw them.

    A timer tick, or memory that happens to lie in one line, conflicts in one boot and not in
    another. Several conflicts of one kind stay as many as the boot with the fewest has.
    """
    left = Counter(map(_kind, boots[0]))
    for found in boots[1:]:
        left &= Counter(map(_kind, found))
    kept = []
    for one in boots[0]:
        if left[_kind(one)]:
            left[_kind(one)] -= 1
            kept.append(one)
    return kept


def _kind(conflict: Conflict) -> tuple[str, bool]:
    return conflict.object, conflict.layout
