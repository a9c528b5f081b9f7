# SPDX-License-Identifier: GPL-2.0-only
"""Names of kernel addresses, from /proc/kallsyms."""

import re
from bisect import bisect_right
from pathlib import Path

KALLSYMS = Path("/proc/kallsyms")
IOMEM = Path("/proc/iomem")
_BOUNDS = ("_text", "_stext", "_end")
# A lock lies this close to the start of the static object that kallsyms names.
NEAR_DATA = 4096
# No function is larger: what lies farther behind one is code without a name.
NEAR_CODE = 1 << 20


class Kallsyms:
    """Symbols by address; empty where the kernel hides addresses.

    `image`: where the kernel's own code and data begin and end, wherever its architecture keeps
    them; None where that is hidden. Modules are not in it.
    """

    def __init__(self, path: Path = KALLSYMS, iomem: Path = IOMEM) -> None:
        self._code: list[tuple[int, str]] = []
        self._data: list[tuple[int, str]] = []
        bounds: dict[str, int] = {}
        with path.open() as lines:
            for line in lines:
                address, kind, symbol = line.split()[:3]
                if not address.strip("0"):
                    continue
                if symbol in _BOUNDS:
                    bounds.setdefault(symbol, int(address, 16))
                if kind in "tTwW":
                    self._code.append((int(address, 16), symbol))
                elif kind in "dDbBrR":
                    self._data.append((int(address, 16), symbol))
        self._code.sort()
        self._data.sort()
        start = bounds.get("_text", bounds.get("_stext"))
        end = bounds.get("_end") or (start and start + _length(iomem))
        self.image = (start, end) if start is not None and end and end > start else None

    def function(self, address: int) -> str:
        """`symbol+offset`, or the address in hexadecimal."""
        symbol, offset = _find(self._code, address, NEAR_CODE)
        return f"{symbol}+{offset}" if symbol else f"{address:#x}"

    def data(self, address: int) -> str | None:
        """`symbol` or `symbol+0x10` of a static object.

        None where kallsyms lists no data (no CONFIG_KALLSYMS_ALL).
        """
        symbol, offset = _find(self._data, address, NEAR_DATA)
        # Behind the image there may be the heap, on architectures that keep both in one map.
        if self.image and address - offset <= self.image[1] <= address:
            return None
        return symbol and symbol + (f"+{offset:#x}" if offset else "")


def _length(iomem: Path) -> int:
    """Of the image in physical memory, in one piece; 0 where it is hidden.

    Without CONFIG_KALLSYMS_ALL kallsyms has the first symbol of it and not the last.
    """
    try:
        parts = re.findall(r"(?m)^\s*([0-9a-f]+)-([0-9a-f]+) : Kernel", iomem.read_text())
    except OSError:
        return 0
    if not parts:
        return 0
    length = max(int(last, 16) for _, last in parts) - min(int(first, 16) for first, _ in parts) + 1
    return length if length > 1 else 0


def _find(symbols: list[tuple[int, str]], address: int, near: int) -> tuple[str | None, int]:
    place = bisect_right(symbols, (address, "\uffff")) - 1
    if place < 0 or address - symbols[place][0] >= near:
        return None, 0
    return symbols[place][1], address - symbols[place][0]
