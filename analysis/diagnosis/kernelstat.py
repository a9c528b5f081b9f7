# SPDX-License-Identifier: GPL-2.0-only
"""Parses /proc/lock_stat and the output of `perf stat -x,`, on machines that have them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fscale.model import perfstat

_ROW = re.compile(r"^\s*(?P<name>\S.{0,200}?):\s+(?P<numbers>\d{1,20}(?:\s+[\d.]{1,20}){11})\s*$")
_RATIOS = (
    ("cycles per instruction", "cycles", "instructions"),
    ("cache miss ratio", "cache-misses", "cache-references"),
)


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
    classes = []
    for line in output.splitlines():
        match = _ROW.match(line)
        if match is None:
            continue
        try:
            n = [float(number) for number in match["numbers"].split()]
        except ValueError:
            continue
        if n[1] > 0:
            classes.append(
                LockClass(match["name"], int(n[0]), int(n[1]), n[3], n[4], int(n[7]), n[10])
            )
    return sorted(classes, key=lambda c: -c.wait_total)


def hardware(output: str) -> dict[str, float]:
    """Events of `perf stat -x,` -> counts, summed over PMUs; uncounted events are left out.

    `cycles per instruction` and `cache miss ratio` are added if the same PMUs counted both parts.
    """
    totals = perfstat.totals(perfstat.read(output))
    counts = {event: float(total.count) for event, total in totals.items()}
    for ratio, part, whole in _RATIOS:
        if counts.get(whole) and part in counts and totals[part].beside(totals[whole]):
            counts[ratio] = counts[part] / counts[whole]
    return counts


def gaps(profile: Mapping[str, Any]) -> list[str]:
    """Sentences on events that some PMUs did not count, from the content of hardware.json.gz."""
    pmus = {}
    for name, text in (profile.get("pmus") or {}).items():
        try:
            pmus[name] = perfstat.cpu_list(text)
        except ValueError:
            continue
    rows = perfstat.read(str(profile.get("output", "")))
    totals = perfstat.totals(rows)
    gap_lines = perfstat.gaps(rows, pmus, profile.get("cpus") or [])
    return [
        f"{event} was not counted on {', '.join(filter(None, missing)) or 'the others'}; the "
        f"figure covers {', '.join(sorted(filter(None, totals[event].pmus))) or 'the rest'} only"
        for event, missing in gap_lines.items()
    ]
