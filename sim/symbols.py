# SPDX-License-Identifier: GPL-2.0-only
"""Names for kernel addresses: the guest's /proc/kallsyms, and what the address ranges are for."""

import bisect
from collections.abc import Iterable
from dataclasses import dataclass

# Documentation/arch/x86/x86_64/mm.rst, four levels of page tables, without KASLR.
DIRECT_MAP = range(0xFFFF888000000000, 0xFFFFC88000000000)
VMALLOC = range(0xFFFFC90000000000, 0xFFFFE90000000000)
VMEMMAP = range(0xFFFFEA0000000000, 0xFFFFEB0000000000)
KERNEL = range(0xFFFFFFFF80000000, 0xFFFFFFFFC0000000)
PAGE = 4096
STRUCT_PAGE = 64
# What lies this far behind a symbol is hardly its own any more.
LONGEST = 1 << 20


@dataclass(frozen=True)
class Symbol:
    """A name and how far behind its start an address lies, in bytes."""

    name: str
    offset: int
    module: str | None = None

    def __str__(self) -> str:
        return f"{self.name}+{self.offset:#x}" if self.offset else self.name


class Symbols:
    """The symbols of a running kernel."""

    def __init__(self, lines: Iterable[str]) -> None:
        found: list[tuple[int, str, str | None, str]] = []
        for line in lines:
            address, kind, name, *module = line.split()
            # Keys of lock classes are empty without lockdep: what lies there is the next object.
            if kind not in "aA" and not name.startswith(
                ("__pfx_", "__cfi_", "__ksymtab", "__kstrtab", "__key.")
            ):
                found.append(
                    (int(address, 16), name, module[0].strip("[]") if module else None, kind)
                )
        found.sort(key=lambda symbol: symbol[0])
        self._all = found
        self._starts = [symbol[0] for symbol in found]

    def find(self, address: int) -> Symbol | None:
        """The symbol that an address lies in or behind; None where none is near."""
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        start, name, module, _ = self._all[at]
        # Of several names for one address the first in /proc/kallsyms is the plain one.
        while at > 0 and self._starts[at - 1] == start:
            at -= 1
            _, name, module, _ = self._all[at]
        offset = address - start
        return Symbol(name, offset, module) if offset < LONGEST else None

    def extent(self, name: str) -> tuple[range, bool] | None:
        """The addresses of a symbol, up to the next one, and whether it is code."""
        for at, (start, known, _, kind) in enumerate(self._all):
            if known == name:
                end = next((s for s in self._starts[at:] if s > start), start + 1)
                return range(start, end), kind in "tTwW"
        return None

    def function(self, pc: int) -> str:
        """The function of an instruction; the address itself where it has no name."""
        symbol = self.find(pc)
        return symbol.name if symbol else f"{pc:#x}"

    def object(self, virtual: int) -> str:
        """What lies at a kernel address, as far as the address tells."""
        if virtual in VMEMMAP:
            page = (virtual - VMEMMAP.start) // STRUCT_PAGE
            return f"struct page (of the page at {page * PAGE:#x})"
        if virtual in DIRECT_MAP:
            return f"memory at {virtual - DIRECT_MAP.start:#x}"
        if virtual in VMALLOC:
            return f"vmalloc area at {virtual:#x}"
        symbol = self.find(virtual) if virtual >= KERNEL.start else None
        return str(symbol) if symbol else f"{virtual:#x}"
