# SPDX-License-Identifier: GPL-2.0-only
"""What the simulator saw of a point: shares of cycles, counts, and the lines it waited for."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from analysis.summary import Point
from fscale.model.simulation import HotLine, LineUser, Simulation

SHARES = ("work", "transfers", "queueing", "spinning", "idle")
COUNTED = ("instructions", "clean transfers", "dirty transfers", "upgrade transfers")
REMOTE = "remote transfers"
LINES = 5
SHOWN_FROM = 0.005  # of the cycles of all cores
USERS = 4
FUNCTIONS = 6


@dataclass(frozen=True)
class Row:
    """A point: shares of the cores' cycles, and counts an operation, medians of repetitions."""

    point: Point
    shares: dict[str, float]
    counts: dict[str, float]


@dataclass(frozen=True)
class Hot:
    """A line of a point with its share of the cores' cycles, spinning for a lock in it included."""

    line: HotLine
    share: float
    spinning: float
    readers: list[LineUser]
    writers: list[LineUser]


def rows(points: Iterable[Point]) -> list[Row]:
    """The simulated points; those of a what-if have a table of their own."""
    return [
        Row(point, medians([s.shares() for s in found]), medians(_counts(point)))
        for point in points
        if point.key.side is None and (found := simulations(point))
    ]


def simulations(point: Point) -> list[Simulation]:
    """Of a point's repetitions."""
    return [cell.simulation for cell in point.cells if cell.simulation is not None]


def hot(point: Point) -> list[Hot]:
    """The hottest lines of a point's first repetition: addresses are those of one boot."""
    simulated = simulations(point)[0]
    cycles = max(1, simulated.total("cycles"))
    return [
        Hot(
            line,
            line.wait / cycles,
            line.spin / cycles,
            [user for user in line.users if user.reads][:USERS],
            [user for user in line.users if user.writes][:USERS],
        )
        for line in simulated.lines[:LINES]
    ]


def busiest(point: Point) -> list[tuple[str, float]]:
    """The functions of the most instructions, of the first repetition, with their share of all."""
    simulated = simulations(point)[0]
    instructions = max(1, simulated.total("instructions"))
    return [(one.function, one.instructions / instructions) for one in simulated.code]


def waiting(point: Point) -> list[tuple[str, float]]:
    """The functions that wait longest for lines, with their share of the cycles, as `busiest`."""
    simulated = simulations(point)[0]
    cycles = max(1, simulated.total("cycles"))
    return [(one.function, one.stall / cycles) for one in simulated.waits]


def _counts(point: Point) -> list[dict[str, float]]:
    return [cell.counts for cell in point.cells if cell.counts]


def medians(found: list[dict[str, float]]) -> dict[str, float]:
    """Of figures of several repetitions, by their names; none without a repetition."""
    if not found:
        return {}
    return {name: statistics.median(one[name] for one in found) for name in found[0]}


def as_json(points: Iterable[Point]) -> list[dict[str, Any]]:
    """The simulated points: rate, shares of cycles, counts an operation, and the hottest lines."""
    return [
        {
            "key": row.point.key.model_dump(mode="json", exclude={"repetition", "profile"}),
            "ops_per_second": row.point.median,
            "shares": row.shares,
            "counts_per_operation": row.counts,
            "code": _functions(busiest(row.point)),
            "waits": _functions(waiting(row.point)),
            "lines": [
                {
                    "object": one.line.object,
                    "share": one.share,
                    "spinning": one.spinning,
                    "transfers": one.line.transfers,
                    "users": [user.model_dump() for user in one.line.users],
                }
                for one in hot(row.point)
            ],
        }
        for row in rows(points)
    ]


def _functions(shares: list[tuple[str, float]]) -> list[dict[str, Any]]:
    return [{"function": function, "share": share} for function, share in shares]


def told(points: Iterable[Point]) -> list[str]:
    """The simulated points in words, a line each, with their hottest cache lines below."""
    found = []
    for row in rows(points):
        key = row.point.key
        shares = ", ".join(f"{name} {share:.0%}" for name, share in row.shares.items())
        found.append(
            f"{key.workload} {key.filesystem} x{key.cores} (simulated): "
            f"{row.point.median:,.0f}/s; {shares}"
        )
        for one in hot(row.point):
            if one.share >= SHOWN_FROM:
                users = ", ".join(user.function for user in one.line.users[:USERS])
                spun = f" (spinning {one.spinning:.1%})" if one.spinning >= SHOWN_FROM else ""
                found.append(f"    {one.share:6.1%}{spun}  {one.line.object}: {users}")
        if waits := [one for one in waiting(row.point)[:FUNCTIONS] if one[1] >= SHOWN_FROM]:
            parts = ", ".join(f"{function} {share:.1%}" for function, share in waits)
            found.append(f"    of the cores' time, waiting for lines: {parts}")
        if code := busiest(row.point)[:FUNCTIONS]:
            parts = ", ".join(f"{function} {share:.0%}" for function, share in code)
            found.append(f"    of the instructions: {parts}")
    return found
