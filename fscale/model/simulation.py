# SPDX-License-Identifier: GPL-2.0-only
"""What is known of a simulated cell beside its rate: where its cycles went, which lines moved."""

from collections import defaultdict

from pydantic import Field

from fscale.model.bench import Plain, Strict

KINDS = ("memory", "clean", "dirty", "upgrade", "remote", "free")
SHARED = ("clean", "dirty", "upgrade")
# So objects begin that have an address of one boot and no name that stays.
HEAP = "memory at"
# Of these each CPU has its own: their names say which.
PER_CPU = "per-CPU"
UNNAMED = (HEAP, PER_CPU, "struct page", "vmalloc", "0x")


class SimulatedWindow(Strict):
    """One window; sums over the cores that worked in it. Times of cores are in cycles."""

    ops: int
    seconds: float = Field(description="simulated")
    instructions: int
    cycles: int = Field(description="of all cores that worked; what follows is part of it")
    stall: int = Field(description="waiting for cache lines")
    queue: int = Field(description="part of stall: the line was on its way to somebody else")
    spin: int = Field(description="in PAUSE: spin loops of locks")
    idle: int = Field(description="halted: sleeping locks, nothing to do")
    transfers: dict[str, int] = Field(
        description="cache lines that moved: memory (nobody had it), clean (shared by others), "
        "dirty (modified by another), upgrade (here, but shared); remote: those of clean, dirty "
        "and upgrade that left the socket; free: those that were made to cost nothing"
    )


class LineUser(Strict):
    """A function that took a line from other cores, over all windows."""

    function: Plain
    reads: int
    writes: int
    stall: int = Field(description="cycles")


class HotLine(Strict):
    """A cache line that cores waited for, over all windows of the cell."""

    object: Plain = Field(description="what lies there, as far as it is known")
    physical: str = Field(description="physical address, hexadecimal")
    virtual: str = Field(description="a virtual address that it was used by")
    transfers: dict[str, int]
    stall: int = Field(description="cycles")
    queue: int = Field(description="part of stall: cycles that the line was on its way elsewhere")
    spin: int = Field(
        default=0, description="cycles of PAUSE in loops that wait for a lock in this line"
    )
    users: list[LineUser] = Field(description="the most waiting first")
    rules: list[str] = Field(
        default_factory=list,
        description="what makes this object cost nothing in a what-if: addresses of the line or "
        "of the instructions that take hardly any other; none where all take others too",
    )

    @property
    def wait(self) -> int:
        """Cycles that cores waited for the line, or for a lock in it."""
        return self.stall + self.spin

    @property
    def names(self) -> list[str]:
        """The static objects in the line; of other memory there is no name that stays."""
        return [] if self.object.startswith(UNNAMED) else self.object.split(", ")

    @property
    def members(self) -> str | None:
        """Of heap memory whose slab is known what lies in the line; None of all else."""
        return self.object.partition(": ")[2] or None if self.object.startswith(HEAP) else None

    @property
    def thing(self) -> str:
        """What objects of a sort have in common: the member that is taken most; else the object."""
        return self.members.partition(", ")[0] if self.members else self.object

    def moves(self) -> int:
        """How often it went from core to core."""
        return sum(self.transfers.get(kind, 0) for kind in SHARED)


class FunctionWork(Strict):
    """What a function itself does, without those that it calls."""

    function: Plain
    instructions: int = Field(description="over all windows")


class FunctionWait(Strict):
    """How long cores waited in a function itself for lines, whichever these were."""

    function: Plain
    stall: int = Field(description="cycles, of all cores and windows")


class Simulation(Strict):
    """How a simulated cell came about and what it shows."""

    seed: int = Field(description="of the start skew and of the order among equals")
    free: list[str] = Field(
        default_factory=list, description="objects whose transfers cost nothing: a what-if"
    )
    windows: list[SimulatedWindow]
    lines: list[HotLine] = Field(description="the hottest first, by stall and spinning")
    code: list[FunctionWork] = Field(
        default_factory=list, description="the functions of the most instructions, most first"
    )
    waits: list[FunctionWait] = Field(
        default_factory=list,
        description="the functions that waited longest for lines, longest first",
    )
    host_seconds: float = Field(description="what it took")

    def things(self) -> list[list[HotLine]]:
        """Its lines by what they are, as a lock of each inode is one thing.

        The thing that is waited for longest is first, and so is each thing's line.
        """
        found: dict[str, list[HotLine]] = defaultdict(list)
        for line in sorted(self.lines, key=lambda line: -line.wait):
            found[line.thing].append(line)
        return sorted(found.values(), key=lambda lines: -sum(line.wait for line in lines))

    def total(self, name: str) -> int:
        """A sum over the windows, by the name of a field."""
        return sum(int(getattr(window, name)) for window in self.windows)

    def transfers(self, kind: str) -> int:
        """How often lines moved in that way, over all windows."""
        return sum(window.transfers.get(kind, 0) for window in self.windows)

    def shares(self) -> dict[str, float]:
        """Where the cores' cycles went; sums to 1, up to rounding of the plugin's."""
        cycles = max(1, self.total("cycles"))
        stall, queue = self.total("stall"), self.total("queue")
        parts = {
            "transfers": stall - queue,
            "queueing": queue,
            "spinning": self.total("spin"),
            "idle": self.total("idle"),
        }
        found = {name: part / cycles for name, part in parts.items()}
        return {"work": max(0.0, 1.0 - sum(found.values())), **found}
