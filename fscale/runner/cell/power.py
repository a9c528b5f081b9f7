# SPDX-License-Identifier: GPL-2.0-only
"""Measures the power that the processors and their memory take while a load runs.

They count energy (RAPL, Intel SDM volume 3, section 15.10; AMD has the same), which Linux shows as
zones in /sys/class/powercap (Documentation/power/powercap/powercap.rst), readable by root only.
"""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fscale.model.load import Outcome
from fscale.system.sysfs import text

_MOST_WATTS = 1000.0
"""of a zone; a counter that may have started anew more than once is not used"""


@dataclass
class Power:
    """The result: mean power in watts; None if the machine does not report it."""

    watts: float | None = None

    def enter(self, outcome: Outcome) -> None:
        """Copy the result into the outcome of the load."""
        outcome.watts = self.watts


@contextlib.contextmanager
def measure_power(root: Path = Path("/")) -> Iterator[Power]:
    """Measure while a load runs in the `with` block; the result is set at its end."""
    found = Power()
    began, before = time.monotonic(), _energies(root)
    yield found
    after, seconds = _energies(root), time.monotonic() - began
    limits = {zone: _number(zone / "max_energy_range_uj") for zone in before}
    if before and before.keys() == after.keys() and all(limits.values()):
        grown = 0
        for zone, limit in limits.items():
            assert limit
            if limit < 1e6 * _MOST_WATTS * seconds:
                return
            grown += (after[zone] - before[zone]) % (limit + 1)
        found.watts = grown / 1e6 / seconds if grown else None


def _energies(root: Path) -> dict[Path, int]:
    """Zone -> microjoules, of packages and of memory outside of them.

    Cores and graphics are parts of a package, and the zone psys has packages as parts. Packages
    that the kernel also reaches by MMIO are shown twice.
    """
    energies = {}
    for zone in (root / "sys/class/powercap").glob("intel-rapl:*"):
        name = text(zone / "name") or ""
        if name.startswith("package") or name == "dram":
            energy = _number(zone / "energy_uj")
            if energy is None:
                return {}
            energies[zone] = energy
    return energies


def _number(path: Path) -> int | None:
    shown = text(path) or ""
    return int(shown) if shown.isdecimal() else None
