# SPDX-License-Identifier: GPL-2.0-only
"""Rules of objects that cost nothing: in a form valid for all boots, and in the plugin's form.

`va:0xA-0xB` are the lines at the addresses from A up to B, `pc:0xA-0xB` those that the instructions
there take. Modules lie elsewhere in each boot: `va:MODULE:SYMBOL:0xA-0xB` counts from a symbol.
"""

import re

from fscale.sim.symbols import KERNEL, Symbols

LINE_BYTES = 64
DATA, CODE = "va", "pc"
# This module is reloaded for each point (init.sh), so its address may change.
RELOADED = "brd"
_RULE = re.compile(r"(va|pc):(?:(\w+):([^:\s]+):)?0x([0-9a-f]+)-0x([0-9a-f]+)")


def rule(symbols: Symbols, kind: str, extent: range) -> str | None:
    """A rule for addresses of the kernel's image or of one module; None if there is none.

    Rules for data cover whole cache lines.
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
    """A rule in the plugin's form, for the boot with these symbols.

    Raises:
        KeyError: the boot lacks the module or its symbol.
        ValueError: it is not a rule.
    """
    match = _RULE.fullmatch(words)
    if match is None:
        raise ValueError(f"{words} is not a rule such as va:0xA-0xB or pc:0xA-0xB")
    kind, module, name, *ends = match.groups()
    low, high = (int(end, 16) for end in ends)
    if module is None:
        return words
    start = symbols.start(name, module)
    if start is None:
        raise KeyError(f"{name} [{module}]")
    return _at(kind, range(start + low, start + high))


def _at(kind: str, extent: range) -> str:
    """A rule for addresses; for data it covers whole cache lines."""
    start, stop = extent.start, extent.stop
    if kind == DATA:
        start, stop = start & ~(LINE_BYTES - 1), -(-stop // LINE_BYTES) * LINE_BYTES
    return f"{kind}:{start:#x}-{stop:#x}"
