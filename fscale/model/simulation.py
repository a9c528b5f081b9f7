# SPDX-License-Identifier: GPL-2.0-only
"""The records of a simulated cell: where cycles were spent, and which cache lines moved."""

from collections import defaultdict

from pydantic import Field

from fscale.model.bench import Plain, Strict

KINDS = ("memory", "unwritten", "clean", "dirty", "upgrade", "remote", "free")
SHARED = ("clean", "dirty", "upgrade")
# The names of heap objects begin with this; their addresses differ from boot to boot.
HEAP = "memory at"
# The names of per-CPU objects begin with this and say which CPU.
PER_CPU = "per-CPU"
# So begins, among the members in a line, the next object of the same slab cache.
ANOTHER = "another "
UNNAMED = (HEAP, PER_CPU, "struct page", "vmalloc", "0x")


class SimulatedWindow(Strict):
    """One window, summed over the cores that had a worker. Times of cores are in cycles."""

    ops: int
    seconds: float = Field(description="simulated time")
    instructions: int
    cycles: int = Field(
        description="cycles of all cores that had a worker; stall, spin and idle are parts of it"
    )
    stall: int = Field(description="cycles of waiting for cache lines")
    queue: int = Field(
        description="part of stall: cycles while the line was in transfer to another core"
    )
    spin: int = Field(description="cycles in PAUSE, that is in spin loops of locks")
    idle: int = Field(description="cycles halted: blocked on sleeping locks, or without work")
    transfers: dict[str, int] = Field(
        description="cache-line transfers by kind: memory (no core had the line), unwritten "
        "(others shared it, and nobody had written it), clean (others shared it), dirty (another "
        "had modified it), upgrade (present, but shared); remote: those of all but memory that "
        "left the socket; free: those made free of cost"
    )
    words: int | None = Field(
        default=None,
        description="accesses that took a word of four bytes from another core: reads of one that "
        "another had written, writes of one that another had; null: not counted",
    )
    host_seconds: float = Field(default=0, description="wall time of the window on the host")
    cpu_seconds: float = Field(default=0, description="CPU time of the emulator, user and system")


class LineUser(Strict):
    """A function that took a line, or a word of it, from other cores, over all windows."""

    function: Plain
    reads: int
    writes: int
    stall: int = Field(description="cycles")
    words: int = Field(
        default=0, description="accesses that took a word in the line from another core"
    )


class HotLine(Strict):
    """A cache line that cores waited for, over all windows of the cell."""

    object: Plain = Field(description="the objects in the line, as far as known")
    physical: str = Field(description="physical address, hexadecimal")
    virtual: str = Field(description="a virtual address by which it was accessed")
    transfers: dict[str, int]
    stall: int = Field(description="cycles")
    queue: int = Field(
        description="part of stall: cycles while the line was in transfer to another core"
    )
    spin: int = Field(
        default=0, description="cycles in PAUSE of loops that wait for a lock in this line"
    )
    words: dict[str, int] = Field(
        default_factory=dict,
        description="accesses that took a word in this line from another core, by its object or "
        "member",
    )
    users: list[LineUser] = Field(description="sorted by waiting time, longest first")
    rules: list[str] = Field(
        default_factory=list,
        description="rules that make this object free of cost in a what-if: addresses of the line, "
        "or of instructions that access hardly any other; none if all access others too",
    )

    @property
    def wait(self) -> int:
        """Cycles that cores spent waiting for the line, or for a lock in it."""
        return self.stall + self.spin

    @property
    def names(self) -> list[str]:
        """The static objects in the line; names of other memory differ between boots."""
        return [] if self.object.startswith(UNNAMED) else self.object.split(", ")

    @property
    def members(self) -> str | None:
        """The members in the line, if it is heap memory of a known slab; else None."""
        return self.object.partition(": ")[2] or None if self.object.startswith(HEAP) else None

    @property
    def thing(self) -> str:
        """The name that objects of one kind share: the member accessed most, else the object."""
        return self.members.partition(", ")[0] if self.members else self.object

    def moves(self) -> int:
        """Return how often the line moved from core to core."""
        return sum(self.transfers.get(kind, 0) for kind in SHARED)


class FunctionWork(Strict):
    """The work of a function without the functions that it calls."""

    function: Plain
    instructions: int = Field(description="over all windows")


class FunctionWait(Strict):
    """The time that cores waited for cache lines in a function, without those that it calls."""

    function: Plain
    stall: int = Field(description="cycles over all cores and windows")


class Simulation(Strict):
    """The parameters and the records of a simulated cell."""

    seed: int = Field(description="random seed of the start skew")
    free: list[str] = Field(
        default_factory=list, description="what-if: objects whose transfers are free of cost"
    )
    windows: list[SimulatedWindow]
    precision: float | None = Field(
        default=None,
        description="half_width at which the point was to end; null: its number of windows was "
        "fixed, and its throughput is the median window's instead of all windows'",
    )
    half_width: float | None = Field(
        default=None,
        description="half-width of the 95% band of the throughput within this boot, relative to "
        "it, by batch means of the windows; null with fewer than two windows. Rare events, "
        "such as timer ticks, may be in no window, so a width below `precision` promises too much",
    )
    lines: list[HotLine] = Field(description="sorted by stall and spin, hottest first")
    code: list[FunctionWork] = Field(
        default_factory=list, description="functions with the most instructions, sorted"
    )
    waits: list[FunctionWait] = Field(
        default_factory=list,
        description="functions that waited longest for cache lines, sorted",
    )
    host_seconds: float = Field(description="wall time of the simulation on the host")
    cpu_seconds: dict[str, float] = Field(
        default_factory=dict,
        description="CPU seconds of the emulator, user and system, by mode: fast (boot of a "
        "guest's first point, mkfs, mount), ordered (the workload's set-up and end), detailed "
        "(warm-up and windows)",
    )

    def things(self) -> list[list[HotLine]]:
        """Group the lines by `thing`, so that the same lock of all inodes is one group.

        Groups, and the lines in each, are sorted by waiting time, longest first.
        """
        grouped: dict[str, list[HotLine]] = defaultdict(list)
        for line in sorted(self.lines, key=lambda line: -line.wait):
            grouped[line.thing].append(line)
        return sorted(grouped.values(), key=lambda lines: -sum(line.wait for line in lines))

    def total(self, name: str) -> int:
        """Sum a field, given by its name, over the windows."""
        return sum(int(getattr(window, name)) for window in self.windows)

    @property
    def mips(self) -> float | None:
        """Million instructions of cores with a worker per CPU second of the emulator, in windows.

        None if the windows' CPU time was not recorded.
        """
        seconds = sum(window.cpu_seconds for window in self.windows)
        return self.total("instructions") / seconds / 1e6 if seconds else None

    def transfers(self, kind: str) -> int:
        """Count the transfers of one kind over all windows."""
        return sum(window.transfers.get(kind, 0) for window in self.windows)

    def shares(self) -> dict[str, float]:
        """Return the share of cycles per activity; they sum to 1, up to the plugin's rounding."""
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
