# SPDX-License-Identifier: GPL-2.0-only
"""Measures the frequency of the CPUs under test during a load, and thermal throttling."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from fscale.model.load import Outcome
from fscale.system.sysfs import text

Source = Literal["aperf", "cpufreq"]

# Registers (MSRs) of x86. APERF counts cycles at the actual frequency and MPERF at that of the time
# stamp counter, both only while the CPU is busy. TSC is the time stamp counter.
APERF, MPERF, TSC = 0xE8, 0xE7, 0x10
LATE = 0.9  # share of the load's time after which cpufreq is read, while the CPUs are still busy


@dataclass
class Speed:
    """The result; None if the machine does not report it. `throttled` is a number of times."""

    khz: int | None = None
    source: Source | None = None
    throttled: int | None = None

    def enter(self, outcome: Outcome) -> None:
        """Copy the result into the outcome of the load."""
        outcome.frequency_khz, outcome.thermal_throttled = self.khz, self.throttled
        if self.source:
            outcome.extra["frequency_from"] = self.source


@dataclass
class _Registers:
    """The three registers of some CPUs at one moment; `when` is in seconds."""

    when: float
    values: dict[int, tuple[int, int, int]] = field(default_factory=dict)


def _registers(root: Path, cpus: list[int]) -> _Registers | None:
    """Read the registers; None if one cannot be read (no msr module, lockdown, a guest)."""
    found = _Registers(time.monotonic())
    for cpu in cpus:
        try:
            fd = os.open(root / f"dev/cpu/{cpu}/msr", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            read = [int.from_bytes(os.pread(fd, 8, a), "little") for a in (APERF, MPERF, TSC)]
        except OSError:
            return None
        finally:
            os.close(fd)
        found.values[cpu] = (read[0], read[1], read[2])
    return found


def _between(before: _Registers, after: _Registers) -> int | None:
    """Return the mean frequency in kHz while busy, weighted by each CPU's busy time."""
    grown = [
        [late - early for early, late in zip(before.values[cpu], after.values[cpu], strict=True)]
        for cpu in before.values
    ]
    aperf, mperf, tsc = (sum(one[i] for one in grown) for i in range(3))
    if min(aperf, mperf, tsc) <= 0:  # in a guest the registers may not advance
        return None
    per_second = tsc / len(grown) / (after.when - before.when)
    return round(per_second * aperf / mperf / 1000)


def _cpufreq(root: Path, cpus: list[int]) -> int | None:
    shown = [
        text(root / f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq") for cpu in cpus
    ]
    khz = [int(one) for one in shown if one and one.isdecimal() and int(one) > 0]
    return round(sum(khz) / len(khz)) if len(khz) == len(cpus) else None


def _throttles(root: Path, cpus: list[int]) -> dict[Path, int]:
    files = (
        root / f"sys/devices/system/cpu/cpu{cpu}/thermal_throttle/{which}_throttle_count"
        for cpu in cpus
        for which in ("core", "package")
    )
    shown = {path: text(path) for path in files}
    return {path: int(one) for path, one in shown.items() if one and one.isdecimal()}


@contextlib.contextmanager
def measure_speed(cpus: list[int], seconds: float, root: Path = Path("/")) -> Iterator[Speed]:
    """Measure while a load runs in the `with` block for `seconds`; the result is set at its end."""
    found = Speed()

    def ask() -> None:
        found.khz = _cpufreq(root, cpus)
        found.source = "cpufreq" if found.khz else None

    throttles = _throttles(root, cpus)
    before = _registers(root, cpus)
    asks = before is None and _cpufreq(root, cpus) is not None
    timer = threading.Timer(LATE * seconds, ask)
    timer.daemon = True
    if asks:
        timer.start()
    try:
        yield found
    finally:
        if asks:
            timer.cancel()
            timer.join()
        after = _registers(root, cpus) if before else None
        if before and after:
            found.khz = _between(before, after)
            found.source = "aperf" if found.khz else None
        now = _throttles(root, cpus)
        if throttles and now.keys() == throttles.keys():
            found.throttled = max(now[path] - throttles[path] for path in now)
