# SPDX-License-Identifier: GPL-2.0-only
"""In which order CPUs join a measurement, and at which core counts the hardware changes."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from fscale.model.errors import FscaleError
from fscale.model.results import Cpu, Machine

Preset = Literal["topology", "powers", "all"]


def _threads(cpus: list[Cpu]) -> list[tuple[int, Cpu]]:
    """Each CPU with its number among the hardware threads of its core, from 0, in joining order."""
    seen: Counter[tuple[int, int]] = Counter()
    ranked = []
    for cpu in sorted(cpus, key=lambda c: c.cpu):
        ranked.append((seen[cpu.socket, cpu.core], cpu))
        seen[cpu.socket, cpu.core] += 1
    return sorted(ranked, key=lambda r: (r[0], r[1].socket, r[1].node or 0, r[1].core, r[1].cpu))


def cpu_order(cpus: list[Cpu]) -> list[int]:
    """The order in which CPUs join a measurement.

    The physical cores of socket 0, then those of socket 1 and so on, as FxMark does it to keep
    NUMA out as long as possible; the second hardware threads of all cores come last, in the same
    order.
    """
    return [cpu.cpu for _, cpu in _threads(cpus)]


@dataclass(frozen=True)
class Layout:
    """The core counts at which the hardware under a curve changes."""

    sockets: tuple[int, ...]
    """counts at which a socket's last physical core has joined, where there are several sockets"""
    cores: int
    """physical cores: from the next count on, hardware threads share them"""
    threads: int
    """all CPUs that may be used"""

    def physical(self, count: int) -> int:
        """Physical cores under the first `count` CPUs."""
        return min(count, self.cores)


def layout(cpus: list[Cpu], usable: Collection[int]) -> Layout:
    """Where the hardware changes along a curve over the `usable` ones of some CPUs.

    Sockets of one core each, as virtual machines have them, are no sockets.
    """
    first = [cpu for thread, cpu in _threads([c for c in cpus if c.cpu in usable]) if thread == 0]
    sizes = Counter(cpu.socket for cpu in first)
    several = len(sizes) > 1 and max(sizes.values()) > 1
    ends = accumulate(sizes[socket] for socket in sorted(sizes)) if several else ()
    return Layout(tuple(ends), len(first), len(usable))


def machine_layout(machine: Machine) -> Layout:
    """The layout of a recorded machine."""
    return layout(machine.topology, machine.cpu_order)


def core_counts(asked: list[int] | Preset, there: Layout) -> list[int]:
    """The core counts of a suite on a machine; FscaleError when one is more than there are."""
    if asked == "all":
        return list(range(1, there.threads + 1))
    if isinstance(asked, str):
        counts = {1 << n for n in range(there.threads.bit_length())} | {there.threads}
        if asked == "topology":
            counts |= {*there.sockets, there.cores}
        return sorted(count for count in counts if count <= there.threads)
    for count in asked:
        if count < 1:
            raise FscaleError("a measurement needs at least 1 core")
        if count > there.threads:
            raise FscaleError(
                f"{count} cores are asked for, but this run may use {there.threads}; "
                f"give --cores up to {there.threads}"
            )
    return sorted(set(asked))
