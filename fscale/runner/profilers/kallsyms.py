# SPDX-License-Identifier: GPL-2.0-only
"""Resolves kernel addresses to symbols of /proc/kallsyms."""

import re
from bisect import bisect_right
from pathlib import Path

from fscale.system.sysfs import text

KALLSYMS = Path("/proc/kallsyms")
IOMEM = Path("/proc/iomem")
RESTRICTION = Path("/proc/sys/kernel/kptr_restrict")
_BOUNDS = ("_text", "_stext", "_end")
# Bytes: a lock is assumed to lie this close to the start of its static object.
NEAR_DATA = 4096
# Bytes: no function is larger, so an address farther behind one has no name.
NEAR_CODE = 1 << 20


def why_hidden(path: Path = KALLSYMS, restriction: Path = RESTRICTION) -> str | None:
    """Return why functions and locks get no names, and what to do; None if they do."""
    if not path.exists():
        return f"there is no {path}: this kernel was built without CONFIG_KALLSYMS"
    with path.open() as lines:
        if any(line.split()[0].strip("0") for line in lines):
            return None
    level = text(restriction)
    if level == "2":
        return "kernel.kptr_restrict is 2: sysctl kernel.kptr_restrict=1"
    return f"kernel.kptr_restrict is {level}: run as root of the machine with CAP_SYSLOG"


class Kallsyms:
    """Symbols by address; empty if the kernel hides addresses.

    `image` is the start and the end address of the kernel's own code and data, without modules;
    None if these are hidden.
    """

    def __init__(self, path: Path = KALLSYMS, iomem: Path = IOMEM) -> None:
        self._code: list[tuple[int, str]] = []
        self._data: list[tuple[int, str]] = []
        bounds: dict[str, int] = {}
        if path.exists():
            for line in path.read_text().splitlines():
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
        """Return `symbol+offset` of a code address, or the address in hexadecimal."""
        symbol, offset = _find(self._code, address, NEAR_CODE)
        return f"{symbol}+{offset}" if symbol else f"{address:#x}"

    def data(self, address: int) -> str | None:
        """Return `symbol` or `symbol+0x10` of a static object; None if it is not known.

        It is never known if kallsyms lists no data (without CONFIG_KALLSYMS_ALL).
        """
        symbol, offset = _find(self._data, address, NEAR_DATA)
        # On architectures that map both together, the heap may lie behind the image.
        if self.image and address - offset <= self.image[1] <= address:
            return None
        return symbol and symbol + (f"+{offset:#x}" if offset else "")


def _length(iomem: Path) -> int:
    """Return the size in bytes of the image in physical memory; 0 if it is hidden.

    This is needed because without CONFIG_KALLSYMS_ALL, kallsyms lacks the last symbol of the image.
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
