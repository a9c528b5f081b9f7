# SPDX-License-Identifier: GPL-2.0-only
"""Simulator data of a point: shares of cycles, counts, and the lines that cores waited for."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fscale.analysis.summary import Point
from fscale.model.results import Cell
from fscale.model.simulation import HotLine, LineUser, Simulation

SHARES = ("work", "transfers", "queueing", "spinning", "idle")
COUNTED = ("instructions", "clean transfers", "dirty transfers", "upgrade transfers")
REMOTE = "remote transfers"
LINES = 5
SHOWN_FROM = 0.005  # share of the cycles of all cores
USERS = 4
FUNCTIONS = 6


@dataclass(frozen=True)
class SimulatedPoint:
    """A point's shares of the cores' cycles and counts per operation (medians of repetitions)."""

    point: Point
    shares: dict[str, float]
    counts: dict[str, float]


@dataclass(frozen=True)
class Hot:
    """Lines that hold the same kind of object, such as the lock of each inode, or one line."""

    object: str
    lines: int
    share: float
    """share of the cores' cycles, including spinning for a lock in the lines"""
    spinning: float
    transfers: dict[str, int]
    users: list[LineUser]
    """sorted by waiting, the most first"""

    @property
    def name(self) -> str:
        """The object and the number of its lines."""
        return f"{self.object} (in {self.lines} lines)" if self.lines > 1 else self.object

    @property
    def readers(self) -> list[LineUser]:
        """Some of the users."""
        return [user for user in self.users if user.reads][:USERS]

    @property
    def writers(self) -> list[LineUser]:
        """Some of the users."""
        return [user for user in self.users if user.writes][:USERS]


def rows(points: Iterable[Point]) -> list[SimulatedPoint]:
    """The simulated points, without the sides of a paired run."""
    return [
        SimulatedPoint(point, medians([s.shares() for s in simulated]), medians(_counts(point)))
        for point in points
        if point.key.side is None and (simulated := simulations(point))
    ]


def simulations(point: Point) -> list[Simulation]:
    """The simulations of a point's repetitions."""
    return [cell.simulation for cell in point.cells if cell.simulation is not None]


def speeds(cells: Iterable[Cell]) -> dict[int, float]:
    """Million instructions per second of the host, by core count; medians of the cells."""
    by_cores: dict[int, list[float]] = defaultdict(list)
    for cell in cells:
        if cell.simulation is not None and (mips := cell.simulation.mips):
            by_cores[cell.key.cores].append(mips)
    return {cores: statistics.median(by_cores[cores]) for cores in sorted(by_cores)}


def hot(point: Point) -> list[Hot]:
    """The lines that a point's first repetition waited for most; addresses differ by boot."""
    simulated = simulations(point)[0]
    cycles = max(1, simulated.total("cycles"))
    return [_hot(lines, cycles) for lines in simulated.things()[:LINES]]


def _hot(lines: list[HotLine], cycles: int) -> Hot:
    first, transfers = lines[0], Counter[str]()
    for line in lines:
        transfers.update(line.transfers)
    return Hot(
        object=(first.members or first.object) if len(lines) > 1 else first.object,
        lines=len(lines),
        share=sum(line.wait for line in lines) / cycles,
        spinning=sum(line.spin for line in lines) / cycles,
        transfers=dict(transfers),
        users=_users(lines),
    )


def _users(lines: list[HotLine]) -> list[LineUser]:
    """The users of all lines, summed by function."""
    users: dict[str, list[LineUser]] = defaultdict(list)
    for user in (user for line in lines for user in line.users):
        users[user.function].append(user)
    summed = [
        LineUser(
            function=function,
            reads=sum(user.reads for user in same),
            writes=sum(user.writes for user in same),
            stall=sum(user.stall for user in same),
            words=sum(user.words for user in same),
        )
        for function, same in users.items()
    ]
    return sorted(summed, key=lambda user: -user.stall)


def busiest(point: Point) -> list[tuple[str, float]]:
    """The functions with the most instructions in the first repetition, and their shares."""
    simulated = simulations(point)[0]
    instructions = max(1, simulated.total("instructions"))
    return [(one.function, one.instructions / instructions) for one in simulated.code]


def waiting(point: Point) -> list[tuple[str, float]]:
    """The functions that wait longest for lines, and their share of the cycles, like `busiest`."""
    simulated = simulations(point)[0]
    cycles = max(1, simulated.total("cycles"))
    return [(one.function, one.stall / cycles) for one in simulated.waits]


def _counts(point: Point) -> list[dict[str, float]]:
    return [cell.counts for cell in point.cells if cell.counts]


def medians(samples: list[dict[str, float]]) -> dict[str, float]:
    """The median over repetitions of each figure, by name; empty without a repetition."""
    if not samples:
        return {}
    return {name: statistics.median(one[name] for one in samples) for name in samples[0]}


def as_json(points: Iterable[Point]) -> list[dict[str, Any]]:
    """The simulated points: rate, shares of cycles, counts per operation, and the hottest lines."""
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
                    "object": one.object,
                    "lines": one.lines,
                    "share": one.share,
                    "spinning": one.spinning,
                    "transfers": one.transfers,
                    "users": [user.model_dump() for user in one.users],
                }
                for one in hot(row.point)
            ],
        }
        for row in rows(points)
    ]


def _functions(shares: list[tuple[str, float]]) -> list[dict[str, Any]]:
    return [{"function": function, "share": share} for function, share in shares]


def describe_points(points: Iterable[Point]) -> list[str]:
    """Describe the simulated points, a line each, with their hottest cache lines below."""
    lines = []
    for row in rows(points):
        key = row.point.key
        shares = ", ".join(f"{name} {share:.0%}" for name, share in row.shares.items())
        lines.append(
            f"{key.load} {key.filesystem} x{key.cores} (simulated): "
            f"{row.point.median:,.0f}/s; {shares}"
        )
        for one in hot(row.point):
            if one.share >= SHOWN_FROM:
                users = ", ".join(user.function for user in one.users[:USERS])
                spun = f" (spinning {one.spinning:.1%})" if one.spinning >= SHOWN_FROM else ""
                lines.append(f"    {one.share:6.1%}{spun}  {one.name}: {users}")
        if waits := [one for one in waiting(row.point)[:FUNCTIONS] if one[1] >= SHOWN_FROM]:
            parts = ", ".join(f"{function} {share:.1%}" for function, share in waits)
            lines.append(f"    waiting for cache lines, share of the cores' time: {parts}")
        if code := busiest(row.point)[:FUNCTIONS]:
            parts = ", ".join(f"{function} {share:.0%}" for function, share in code)
            lines.append(f"    share of the instructions: {parts}")
    return lines
