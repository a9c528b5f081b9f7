# SPDX-License-Identifier: GPL-2.0-only
"""What `perf stat -x,` prints (man perf-stat, "CSV FORMAT"), where there may be several PMUs.

A machine with unequal cores has a PMU for each kind, and perf a row for each: cpu_core/cycles/ and
cpu_atom/cycles/. One that no CPU of the measurement belongs to is <not counted>.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fscale.model.results import MOST_CORES

# Before the count: a time stamp with --interval-print, a CPU or socket and how many with --per-*.
# A number of a unit (msec, Joules) is not a count.
_ROW = re.compile(
    r"\s{0,20}(?:\d{1,12}[.,]\d{6,9},)?(?:[A-Z][\w-]{0,40},(?:\d{1,6},)?)?"
    r"(?P<count>[0-9]{1,20}|<not (?:counted|supported)>),,"
    r"(?P<event>[A-Za-z_][^,/\s]{0,100}(?:/[^/]{0,200}/[^,\s]{0,20})?)"
    r"(?: \[(?P<of>[\w.-]{1,60})\])?\s{0,4}(?:,|$)"
)
_MODIFIERS = re.compile(r"(?::[ukhIGHpPSDWebR]{1,12})+$")
# The kernel's names in sysfs for what perf calls by the other.
_SAME = {"cpu-cycles": "cycles", "cpu_cycles": "cycles", "inst_retired": "instructions"}
_ONLY = "cpu"  # the name of the PMU where there is one kind of core; most rows leave it out


@dataclass(frozen=True)
class Row:
    """An event on a PMU; `pmu` is empty where the row names none, `count` None where it failed."""

    pmu: str
    event: str
    modifiers: str
    count: int | None


@dataclass(frozen=True)
class Total:
    """An event over all PMUs that counted it."""

    count: int
    pmus: frozenset[str]

    def beside(self, other: "Total") -> bool:
        """Whether both are of the same CPUs, so that a ratio of them means something."""
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
    """The rows of events; all other lines are skipped."""
    return [row for line in output.splitlines() if (row := _row(line))]


def totals(rows: Iterable[Row]) -> dict[str, Total]:
    """Each event's sum over PMUs and CPUs; what no PMU counted is left out.

    Where an event was counted with and without modifiers (u, k), the count without is the whole.
    """
    counted: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        if row.count is not None:
            counted.setdefault(row.event, {}).setdefault(row.pmu, []).append(row)
    found = {}
    for event, pmus in counted.items():
        parts = [[r for r in own if not r.modifiers] or own for own in pmus.values()]
        count = sum(row.count or 0 for part in parts for row in part)
        found[event] = Total(count, frozenset(pmus))
    return found


def gaps(
    rows: Iterable[Row], pmus: Mapping[str, Iterable[int]], cpus: Iterable[int]
) -> dict[str, list[str]]:
    """Events that some PMUs counted -> those that did not, and may have CPUs under test.

    `pmus` has the CPUs of each PMU as far as they are known, `cpus` are those under test.
    """
    rows, cpus = list(rows), set(cpus)
    counted = totals(rows)
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.count is not None or row.event not in counted:
            continue
        if row.pmu in counted[row.event].pmus:
            continue
        if row.pmu in pmus and cpus and cpus.isdisjoint(pmus[row.pmu]):
            continue
        missing = found.setdefault(row.event, [])
        if row.pmu not in missing:
            missing.append(row.pmu)
    return found


def cpu_list(text: str) -> list[int]:
    """The CPUs of a list such as "0-3,8"; ValueError on anything else."""
    found: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        if int(last or first) >= MOST_CORES:
            raise ValueError(f"{part!r} is no list of CPUs")
        found += range(int(first), int(last or first) + 1)
    return found
