# SPDX-License-Identifier: GPL-2.0-only
"""Names of kernel addresses, from /proc/kallsyms."""

from bisect import bisect_right
from pathlib import Path

KALLSYMS = Path("/proc/kallsyms")
# A lock lies this close to the start of the static object that kallsyms names.
NEAR_DATA = 4096
# No function is larger: what lies farther behind one is code without a name.
NEAR_CODE = 1 << 20


class Kallsyms:
    """Symbols by address; empty where the kernel hides addresses."""

    def __init__(self, path: Path = KALLSYMS) -> None:
        self._code: list[tuple[int, str]] = []
        self._data: list[tuple[int, str]] = []
        with path.open() as lines:
            for line in lines:
                address, kind, symbol = line.split()[:3]
                if not address.strip("0"):
                    continue
                if kind in "tTwW":
                    self._code.append((int(address, 16), symbol))
                elif kind in "dDbBrR":
                    self._data.append((int(address, 16), symbol))
        self._code.sort()
        self._data.sort()

    def function(self, address: int) -> str:
        """`symbol+offset`, or the address in hexadecimal."""
        symbol, offset = _find(self._code, address, NEAR_CODE)
        return f"{symbol}+{offset}" if symbol else f"{address:#x}"

    def data(self, address: int) -> str | None:
        """`symbol` or `symbol+0x10` of a static object.

        None where kallsyms lists no data (no CONFIG_KALLSYMS_ALL).
        """
        symbol, offset = _find(self._data, address, NEAR_DATA)
        return symbol and symbol + (f"+{offset:#x}" if offset else "")


def _find(symbols: list[tuple[int, str]], address: int, near: int) -> tuple[str | None, int]:
    place = bisect_right(symbols, (address, "\uffff")) - 1
    if place < 0 or address - symbols[place][0] >= near:
        return None, 0
    return symbols[place][1], address - symbols[place][0]
