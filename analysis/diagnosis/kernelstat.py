# SPDX-License-Identifier: GPL-2.0-only
"""Reads /proc/lock_stat and `perf stat -x,`, where a machine has them."""

import re
from dataclasses import dataclass

_ROW = re.compile(r"^\s*(?P<name>\S.{0,200}?):\s+(?P<numbers>\d{1,20}(?:\s+[\d.]{1,20}){11})\s*$")
_COUNT = re.compile(r"[0-9]{1,20}")


@dataclass(frozen=True)
class LockClass:
    """A lock class of /proc/lock_stat (Documentation/locking/lockstat.rst). Times: microseconds."""

    name: str
    bounces: int
    contentions: int
    wait_max: float
    wait_total: float
    acquisitions: int
    hold_total: float


def lock_stat(output: str) -> list[LockClass]:
    """The classes with contention, longest total wait first; other lines are skipped."""
    found = []
    for line in output.splitlines():
        match = _ROW.match(line)
        if match is None:
            continue
        try:
            n = [float(number) for number in match["numbers"].split()]
        except ValueError:
            continue
        if n[1] > 0:
            found.append(
                LockClass(match["name"], int(n[0]), int(n[1]), n[3], n[4], int(n[7]), n[10])
            )
    return sorted(found, key=lambda c: -c.wait_total)


def hardware(output: str) -> dict[str, float]:
    """Events of `perf stat -x,` -> counts; those that the PMU lacks are left out.

    `cycles per instruction` and `cache miss ratio` are added where their parts are there.
    """
    counts: dict[str, float] = {}
    for line in output.splitlines():
        fields = line.split(",")
        if len(fields) < 3 or not _COUNT.fullmatch(fields[0]):
            continue
        counts[fields[2].partition(":")[0]] = float(fields[0])
    if counts.get("instructions") and "cycles" in counts:
        counts["cycles per instruction"] = counts["cycles"] / counts["instructions"]
    if counts.get("cache-references") and "cache-misses" in counts:
        counts["cache miss ratio"] = counts["cache-misses"] / counts["cache-references"]
    return counts
