# SPDX-License-Identifier: GPL-2.0-only
"""Names the conflicts of a test, and keeps those that every boot has."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fscale.model.bench import Plain
from fscale.sim.cells import static_object
from fscale.sim.kerneltypes import Types
from fscale.sim.output import CallUser, ConflictLine
from fscale.sim.rules import LINE_BYTES
from fscale.sim.symbols import KERNEL, Symbols

# Names of memory whose objects are not known, which end in an address, and their kinds.
_ADDRESSED = {"memory at": "memory", "struct page": "struct page", "vmalloc area": "vmalloc area"}


@dataclass(frozen=True)
class Conflict:
    """An object in a line that one call wrote and the other one accessed."""

    object: Plain
    """its name, which others of its kind have as well"""
    layout: bool
    """whether the calls accessed different bytes, which merely lie in one line"""
    a: tuple[Plain, ...]
    """the functions of call a that access the line, writers first"""
    b: tuple[Plain, ...]


def named(line: ConflictLine, symbols: Symbols, types: Types) -> list[Conflict]:
    """The conflicts of a line: one for each object, or member of one, that has such bytes."""
    start, mask = int(line.va, 16), int(line.bytes, 16)
    addresses = [start + byte for byte in range(LINE_BYTES) if mask >> byte & 1]
    if line.cache is None and start < KERNEL.start:
        del addresses[1:]  # memory of unknown contents
    names: dict[str, None] = {}
    for address in addresses:
        name = _name(line, address, symbols, types)
        # Where no members are known, neighbouring bytes are one object.
        if "+0x" not in name or address - 1 not in addresses:
            names[name] = None
    functions = _functions(line.a, symbols), _functions(line.b, symbols)
    return [Conflict(name, line.layout, *functions) for name in names]


def _name(line: ConflictLine, address: int, symbols: Symbols, types: Types) -> str:
    if line.cache is not None:
        # The line may reach into the next object of the slab.
        return types.member(line.cache, (address - int(line.object, 16)) % line.size)
    name = static_object(address, symbols) or symbols.object(int(line.va, 16))
    return next((kind for begin, kind in _ADDRESSED.items() if name.startswith(begin)), name)


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
