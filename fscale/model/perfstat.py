# SPDX-License-Identifier: GPL-2.0-only
"""Parses the output of `perf stat -x,` (man perf-stat, "CSV FORMAT") on one or several PMUs.

A machine with unequal cores has a PMU for each kind of core, and perf prints a row for each:
cpu_core/cycles/ and cpu_atom/cycles/. A PMU without a CPU under measurement is <not counted>.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fscale.model.limits import MOST_CORES

# The count may follow a time stamp (--interval-print), or a CPU or socket and a number (--per-*).
# A number with a unit (msec, Joules) is not a count.
_ROW = re.compile(
    r"\s{0,20}(?:\d{1,12}[.,]\d{6,9},)?(?:[A-Z][\w-]{0,40},(?:\d{1,6},)?)?"
    r"(?P<count>[0-9]{1,20}|<not (?:counted|supported)>),,"
    r"(?P<event>[A-Za-z_][^,/\s]{0,100}(?:/[^/]{0,200}/[^,\s]{0,20})?)"
    r"(?: \[(?P<of>[\w.-]{1,60})\])?\s{0,4}(?:,|$)"
)
_MODIFIERS = re.compile(r"(?::[ukhIGHpPSDWebR]{1,12})+$")
# Event names of the kernel in sysfs -> names of perf.
_SAME = {"cpu-cycles": "cycles", "cpu_cycles": "cycles", "inst_retired": "instructions"}
_ONLY = "cpu"  # the only core PMU of a machine with equal cores; most rows leave it out


@dataclass(frozen=True)
class Row:
    """An event on a PMU; `pmu` is empty if the row names none, `count` None if not counted."""

    pmu: str
    event: str
    modifiers: str
    count: int | None


@dataclass(frozen=True)
class Total:
    """The sum of an event over all PMUs that counted it."""

    count: int
    pmus: frozenset[str]

    def beside(self, other: "Total") -> bool:
        """Return whether both totals cover the same CPUs, so that their ratio is meaningful."""
        return self.pmus == other.pmus or "" in self.pmus | other.pmus


def _row(line: str) -> Row | None:
    match = _ROW.match(line)
    if match is None:
        return None
    text = match["event"]
    pmu, slash, rest = text.partition("/")
    if slash:
        event, _, modifiers = rest.rpartition("/")
    else:
        found = _MODIFIERS.search(text)
        modifiers = found.group() if found else ""
        pmu, event = match["of"] or "", text.removesuffix(modifiers)
    count = int(match["count"]) if match["count"].isdecimal() else None
    pmu = "" if pmu == _ONLY else pmu
    return Row(pmu, _SAME.get(event, event), modifiers.strip(":"), count)


def read(output: str) -> list[Row]:
    """Parse the rows of events; skip all other lines."""
    return [row for line in output.splitlines() if (row := _row(line))]


def totals(rows: Iterable[Row]) -> dict[str, Total]:
    """Sum each event over PMUs and CPUs; leave out events that no PMU counted.

    If an event was counted with and without modifiers (u, k), only the count without is used,
    because it includes the others.
    """
    counted: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        if row.count is not None:
            counted.setdefault(row.event, {}).setdefault(row.pmu, []).append(row)
    sums = {}
    for event, pmus in counted.items():
        parts = [[r for r in own if not r.modifiers] or own for own in pmus.values()]
        count = sum(row.count or 0 for part in parts for row in part)
        sums[event] = Total(count, frozenset(pmus))
    return sums


def gaps(
    rows: Iterable[Row], pmus: Mapping[str, Iterable[int]], cpus: Iterable[int]
) -> dict[str, list[str]]:
    """Return event -> PMUs that did not count it while others did, and may have CPUs under test.

    `pmus` gives the CPUs of each PMU, as far as they are known; `cpus` are the CPUs under test.
    """
    rows, cpus = list(rows), set(cpus)
    counted = totals(rows)
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.count is not None or row.event not in counted:
            continue
        if row.pmu in counted[row.event].pmus:
            continue
        if row.pmu in pmus and cpus and cpus.isdisjoint(pmus[row.pmu]):
            continue
        missing = reasons.setdefault(row.event, [])
        if row.pmu not in missing:
            missing.append(row.pmu)
    return reasons


def cpu_list(text: str) -> list[int]:
    """Parse a list of CPUs such as "0-3,8".

    Raises:
        ValueError: the text is not such a list.
    """
    cpus: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        if int(last or first) >= MOST_CORES:
            raise ValueError(f"{part!r} is not a list of CPUs")
        cpus += range(int(first), int(last or first) + 1)
    return cpus
