# SPDX-License-Identifier: GPL-2.0-only
"""Names for kernel addresses: the guest's /proc/kallsyms, and what the address ranges are for."""

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fscale.model.simulation import PER_CPU

# Documentation/arch/x86/x86_64/mm.rst, four levels of page tables, without KASLR.
DIRECT_MAP = range(0xFFFF888000000000, 0xFFFFC88000000000)
VMALLOC = range(0xFFFFC90000000000, 0xFFFFE90000000000)
VMEMMAP = range(0xFFFFEA0000000000, 0xFFFFEB0000000000)
KERNEL = range(0xFFFFFFFF80000000, 0xFFFFFFFFC0000000)
PAGE = 4096
STRUCT_PAGE = 64
# Per-CPU symbols are offsets into each CPU's part, which is smaller than this.
MOST_PER_CPU = 1 << 24
# An address this far after a symbol hardly belongs to it.
LONGEST = 1 << 20


@dataclass(frozen=True)
class Symbol:
    """A name, and the offset of an address from its start in bytes."""

    name: str
    offset: int
    module: str | None = None

    def __str__(self) -> str:
        return f"{self.name}+{self.offset:#x}" if self.offset else self.name


class Symbols:
    """The symbols of a running kernel."""

    def __init__(self, lines: Iterable[str], per_cpu: Sequence[int] = ()) -> None:
        """`per_cpu`: the offset of each CPU's copy of a per-CPU object from its symbol's address.

        The first CPU's offset comes first.
        """
        symbols: list[tuple[int, str, str | None, str]] = []
        inside: list[tuple[int, str]] = []
        for line in lines:
            address, kind, name, *module = line.split()
            if kind in "aA" and int(address, 16) < MOST_PER_CPU:
                inside.append((int(address, 16), name))
            # Keys of lock classes are empty without lockdep: their address is the next object's.
            if kind not in "aA" and not name.startswith(
                ("__pfx_", "__cfi_", "__ksymtab", "__kstrtab", "__key.")
            ):
                symbols.append(
                    (int(address, 16), name, module[0].strip("[]") if module else None, kind)
                )
        symbols.sort(key=lambda symbol: symbol[0])
        self._all = symbols
        self._starts = [symbol[0] for symbol in symbols]
        inside.sort()
        self._per_cpu = inside
        self._cpus = sorted((start, cpu) for cpu, start in enumerate(per_cpu))

    def find(self, address: int) -> Symbol | None:
        """The symbol that contains or precedes an address; None if none is near."""
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        start, name, module, _ = self._all[at]
        # If an address has several names, the first in /proc/kallsyms is the plain one.
        while at > 0 and self._starts[at - 1] == start:
            at -= 1
            _, name, module, _ = self._all[at]
        offset = address - start
        return Symbol(name, offset, module) if offset < LONGEST else None

    def per_cpu(self, virtual: int) -> str | None:
        """The static per-CPU object that contains an address; None if there is none."""
        at = bisect.bisect_right(self._cpus, (virtual, len(self._cpus))) - 1
        if at < 0 or not self._per_cpu:
            return None
        start, cpu = self._cpus[at]
        inside = virtual - start
        if inside >= self._per_cpu[-1][0]:  # the last is where they end
            return None
        before = bisect.bisect_right(self._per_cpu, (inside, chr(0x10FFFF))) - 1
        first, name = self._per_cpu[before]
        return f"{PER_CPU} {Symbol(name, inside - first)} (of CPU {cpu})"

    def start(self, name: str, module: str) -> int | None:
        """The address of a module's symbol; None if it has none, or several of that name."""
        starts = {start for start, *known, _ in self._all if known == [name, module]}
        return starts.pop() if len(starts) == 1 else None

    def extent(self, name: str) -> tuple[range, bool] | None:
        """The addresses of a symbol, up to the next one, and whether it is code."""
        for at, (start, known, _, kind) in enumerate(self._all):
            if known == name:
                end = next((s for s in self._starts[at:] if s > start), start + 1)
                return range(start, end), kind in "tTwW"
        return None

    def function(self, pc: int) -> str:
        """The function of an instruction, or its address if it has no name."""
        symbol = self.find(pc)
        return symbol.name if symbol else f"{pc:#x}"

    def object(self, virtual: int) -> str:
        """The object at a kernel address, as far as the address determines it."""
        if virtual in VMEMMAP:
            page = (virtual - VMEMMAP.start) // STRUCT_PAGE
            return f"struct page (of the page at {page * PAGE:#x})"
        if found := self.per_cpu(virtual):
            return found
        if virtual in DIRECT_MAP:
            return f"memory at {virtual - DIRECT_MAP.start:#x}"
        if virtual in VMALLOC:
            return f"vmalloc area at {virtual:#x}"
        symbol = self.find(virtual) if virtual >= KERNEL.start else None
        return str(symbol) if symbol else f"{virtual:#x}"
