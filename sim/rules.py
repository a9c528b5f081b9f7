# SPDX-License-Identifier: GPL-2.0-only
"""What costs nothing, in words that hold in each boot of a kernel, and as the plugin takes it.

`va:0xA-0xB` are the lines at the addresses from A up to B, `pc:0xA-0xB` those that the instructions
there take. Modules lie elsewhere in each boot: `va:MODULE:SYMBOL:0xA-0xB` counts from a symbol.
"""

import re

from sim.symbols import KERNEL, Symbols

LINE_BYTES = 64
DATA, CODE = "va", "pc"
# It is loaded anew for each point (init.sh), and may lie elsewhere then.
RELOADED = "brd"
_RULE = re.compile(r"(va|pc):(?:(\w+):([^:\s]+):)?0x([0-9a-f]+)-0x([0-9a-f]+)")


def rule(symbols: Symbols, kind: str, extent: range) -> str | None:
    """A rule for addresses of the kernel's image or of one module; None where no words hold.

    Lines are whole in every rule of data.
    """
    symbol = symbols.find(extent.start) if extent.start >= KERNEL.start else None
    if symbol is None:
        return None
    if symbol.module is None:
        return _at(kind, extent)
    start = symbols.start(symbol.name, symbol.module)
    if start is None or symbol.module == RELOADED:
        return None
    return (
        f"{kind}:{symbol.module}:{symbol.name}:{extent.start - start:#x}-{extent.stop - start:#x}"
    )


def placed(words: str, symbols: Symbols) -> str:
    """A rule as the plugin takes it, in the boot that these symbols are of.

    Raises:
        KeyError: the boot lacks the module or its symbol.
        ValueError: it is no rule.
    """
    found = _RULE.fullmatch(words)
    if found is None:
        raise ValueError(f"{words} is no rule")
    kind, module, name, *ends = found.groups()
    low, high = (int(end, 16) for end in ends)
    if module is None:
        return words
    start = symbols.start(name, module)
    if start is None:
        raise KeyError(f"{name} [{module}]")
    return _at(kind, range(start + low, start + high))


def _at(kind: str, extent: range) -> str:
    """A rule for addresses: of data the whole cache lines that they lie in."""
    start, stop = extent.start, extent.stop
    if kind == DATA:
        start, stop = start & ~(LINE_BYTES - 1), -(-stop // LINE_BYTES) * LINE_BYTES
    return f"{kind}:{start:#x}-{stop:#x}"
