# SPDX-License-Identifier: GPL-2.0-only
"""Names a lock by its address and by the stack that takes it; otherwise it stays unnamed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from fscale.analysis.diagnosis import stacks
from fscale.analysis.diagnosis.rules import Compiled, LockRule, owners, rules
from fscale.model.maps import entries, numbers

# The kernel image on x86-64 and riscv, for profiles that do not record its address.
IMAGE = 0xFFFFFFFF80000000


class By(Enum):
    """The evidence for a name, the strongest first."""

    ADDRESS_AND_STACK = "address and stack"
    ADDRESS = "address"
    STACK = "stack"
    NOTHING = "unnamed"


ADDRESSED = frozenset({By.ADDRESS_AND_STACK, By.ADDRESS})
# If an address gives the name for at least this share of the time, it counts as the evidence.
MOSTLY = 0.9


def main_evidence(evidence: Mapping[By, int | float]) -> By:
    """The evidence that supports a name for most of the time; `evidence` has the time of each."""
    addressed = sum(evidence.get(by, 0) for by in ADDRESSED)
    if addressed and addressed >= MOSTLY * sum(evidence.values()):
        return max(ADDRESSED, key=lambda by: (evidence.get(by, 0), by.value))
    return By.STACK if By.STACK in evidence else By.NOTHING


@dataclass(frozen=True)
class LockPlace:
    """The location of a lock. `member` is `struct.path` if the address alone determines it."""

    kind: str  # "slab", "static", "memory" (kernel memory, no slab), "unknown"
    cache: str | None = None
    offset: int | None = None  # in the object, bytes
    member: str | None = None
    symbol: str | None = None


@dataclass(frozen=True)
class Name:
    """A lock's name. `rule` is set if a rule gave it.

    `elsewhere` is the rule that would name it by the same stack on other kernels.
    """

    object: str
    scope: str | None
    by: By
    rule: LockRule | None = None
    elsewhere: LockRule | None = None


class AddressBook:
    """Finds the location of a lock from the data in the lock profile."""

    def __init__(self, profile: dict[str, Any], maps: dict[str, Any]) -> None:
        """`profile` as read from locks.json.gz, `maps` from its output; either may lack parts."""
        self.owners = owners(profile.get("functions") or {})
        self._memory: dict[str, int] = profile.get("memory") or {}
        self.kernel: str | None = profile.get("kernel")
        self._image: tuple[int, int] | None = profile.get("image")
        self._symbols: dict[str, str] = profile.get("symbols") or {}
        self._structs: dict[str, str] = profile.get("cache_structs") or {}
        self._layouts: dict[str, dict[int, list[str]]] = {}
        for struct, members in (profile.get("layouts") or {}).items():
            offsets = self._layouts.setdefault(struct, {})
            for offset, path, _ in members:
                offsets.setdefault(offset, []).append(path)
        self._pages = _by_address(numbers(maps.get("@page")))
        self._caches = _by_address(numbers(maps.get("@cache")))
        self._names = _by_address(entries(maps.get("@cache_name")))
        self._sizes = _by_address(numbers(maps.get("@cache_size")))

    def place(self, address: int) -> LockPlace:
        """The location of the lock at `address`."""
        symbol = self._symbols.get(f"{address:#x}")
        page, cache = self._pages.get(address), self._caches.get(address)
        if self._in_image(address) or (symbol and cache is None):
            # A module's data also has symbols, but lies outside of the image.
            return LockPlace("static", symbol=symbol)
        if not self._memory or page is None:
            return LockPlace("unknown")
        if cache is None:
            return LockPlace("memory")
        name, size = self._names.get(cache % (1 << 64)), self._sizes.get(cache % (1 << 64))
        if not isinstance(name, str) or not isinstance(size, int) or size <= 0:
            return LockPlace("unknown")
        frame = (page % (1 << 64) - self._memory["page_array"]) // self._memory["page_size"]
        start = self._memory["direct_map"] + (frame << self._memory["page_bits"])
        offset = (address - start) % size
        return LockPlace("slab", name, offset, self._member(name, offset))

    def _in_image(self, address: int) -> bool:
        if self._image:
            return self._image[0] <= address < self._image[1]
        return address >= IMAGE

    def _member(self, cache: str, offset: int) -> str | None:
        struct = self._structs.get(cache, cache)
        paths = self.paths(struct, offset)
        return f"{struct}.{paths[-1]}" if paths else None

    def knows(self, struct: str) -> bool:
        """Whether the members of `struct` are known."""
        return struct in self._layouts

    def paths(self, struct: str, offset: int) -> list[str]:
        """The locks of `struct` at `offset`."""
        return self._layouts.get(struct, {}).get(offset, [])


def _by_address(values: dict[str, Any]) -> dict[int, Any]:
    by_address: dict[int, Any] = {}
    for key, value in values.items():
        try:
            by_address[int(key, 0) % (1 << 64)] = value
        except ValueError:
            continue
    return by_address


def _judge(compiled: Compiled, place: LockPlace, book: AddressBook) -> By | None:
    """The evidence for a rule at this place; None if the place contradicts the rule."""
    rule = compiled.rule
    if place.kind == "static":
        return _judge_static(compiled, place.symbol)
    if rule.static:
        return By.STACK if place.kind == "unknown" else None
    return _judge_object(compiled, place, book) if place.kind == "slab" else By.STACK


def _judge_object(compiled: Compiled, place: LockPlace, book: AddressBook) -> By | None:
    cache, fits = place.cache or "", compiled.cache
    if compiled.member is None:
        if fits:
            return By.ADDRESS_AND_STACK if fits.fullmatch(cache) else None
        return None if place.member or compiled.symbol else By.STACK
    if compiled.rule.part and fits and not fits.fullmatch(cache):
        return None
    paths = _locks_at(compiled.rule, place, book)
    if paths is not None:
        return By.ADDRESS_AND_STACK if any(map(compiled.member.match, paths)) else None
    # The type of the object is not known: its cache must at least be one for such objects.
    fits = fits or (_KMALLOC if compiled.rule.structs else None)
    return By.STACK if fits and fits.fullmatch(cache) else None


_KMALLOC = re.compile(r"(dma-)?kmalloc-.*")


def _judge_static(compiled: Compiled, symbol: str | None) -> By | None:
    name = symbol.split("+")[0] if symbol else None
    if compiled.rule.static:
        matches = name is None or re.search(
            rf"(?<!\w){re.escape(name)}(?!\w)", compiled.rule.object
        )
        return By.ADDRESS_AND_STACK if matches else None
    if compiled.symbol is None:
        # A lock in an object is not in the image, and a symbol is stronger evidence than a caller.
        return None
    if name is None:
        return By.STACK
    return By.ADDRESS_AND_STACK if compiled.symbol.fullmatch(name) else None


# Offsets in an object at which the struct of `part` may begin, because security modules share one.
_BASES = range(0, 129, 8)


def _locks_at(rule: LockRule, place: LockPlace, book: AddressBook) -> list[str] | None:
    """The members at the lock's offset; None if the object's type is unknown."""
    if place.member is not None:
        other = rule.structs and place.member.partition(".")[0] not in rule.structs
        return [] if other else [place.member]
    known = [struct for struct in rule.structs if book.knows(struct)]
    if not known or place.offset is None:
        return None
    bases = _BASES if rule.part else (0,)
    return [path for s in known for base in bases for path in book.paths(s, place.offset - base)]


def name_lock(kind: str, place: LockPlace, frames: tuple[str, ...], book: AddressBook) -> Name:
    """The name of a lock of `kind` at `place`, whose contention was seen with `frames`."""
    frames = tuple(map(stacks.clean, frames))
    called = stacks.callers(stacks.in_interrupt(frames)) or stacks.callers(frames)
    family = kind.partition(" ")[0]
    elsewhere: LockRule | None = None
    for compiled in rules().locks:
        rule = compiled.rule
        if rule.kind and family not in rule.kind:
            continue
        if not compiled.fits(called, book.owners):
            continue
        by = _judge(compiled, place, book)
        if by is By.STACK:
            if rule.sure or (compiled.ambiguous and compiled.ambiguous.fullmatch(called[0])):
                continue
            if not compiled.holds_on(book.kernel):
                elsewhere = elsewhere or rule
                continue
        if by is not None:
            return Name(rule.object, rule.scope, by, rule)
    if place.member:
        struct, _, path = place.member.partition(".")
        return Name(f"{struct}->{path}", None, By.ADDRESS)
    if place.symbol:
        return Name(place.symbol, None, By.ADDRESS)
    return Name(called[0] if called else "?", None, By.NOTHING, elsewhere=elsewhere)
