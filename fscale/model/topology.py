# SPDX-License-Identifier: GPL-2.0-only
"""In which order CPUs join a measurement, and at which core counts the hardware changes."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

from fscale.model.errors import FscaleError
from fscale.model.results import Cpu, CpuType, Machine

Preset = Literal["topology", "powers", "all"]


# A core is of a slower kind when its highest frequency, or its capacity, is at least a tenth below
# that of the next faster core. The favoured cores of one kind differ by less from one to the next
# (Turbo Boost Max: up to 7%, the ranking of AMD's preferred cores: 2 to 5% a step); efficiency
# cores are 15% or more below the others.
GAP = 0.1
LEAST_OF_A_KIND = 2  # cores: a single one without a second thread may have lost it to somebody

_TYPES = get_args(CpuType)
_Core = tuple[int, int]


def _core(cpu: Cpu) -> _Core:
    return cpu.socket, cpu.core


def _classes(values: Mapping[_Core, float | None]) -> dict[_Core, int]:
    """Each core's class by a figure, 0 the highest; all 0 where one has no such figure."""
    if not all(values.values()):
        return dict.fromkeys(values, 0)
    known = {core: value or 0.0 for core, value in values.items()}
    classes, number, above = {}, 0, max(known.values(), default=0.0)
    for core in sorted(known, key=lambda c: -known[c]):
        number += known[core] < (1 - GAP) * above
        classes[core], above = number, known[core]
    return classes


def _all_online(cpus: list[Cpu]) -> bool:
    """Whether no CPU can be off line: threads of a core have successive numbers, without a gap.

    Where the second threads are numbered last, as on most servers, those that are off line may
    leave no gap.
    """
    numbered = sorted(cpus, key=lambda cpu: cpu.cpu)
    return [cpu.cpu for cpu in numbered] == list(range(len(cpus))) and sum(
        _core(a) != _core(b) for a, b in pairwise(numbered)
    ) == len({_core(cpu) for cpu in cpus}) - 1


def kinds(cpus: list[Cpu]) -> dict[int, int]:
    """The kind of each CPU's core, 0 the fastest; all 0 where the cores are equal.

    The kernel tells them apart by their PMUs (hybrid x86), by `cpu_capacity` (arm64), or by their
    highest frequencies. Where it says nothing, as in a virtual machine and in results before these
    were recorded, cores with fewer hardware threads than others are the slower ones, unless their
    other threads may be off line.
    """
    cores: dict[_Core, list[Cpu]] = {}
    for cpu in cpus:
        cores.setdefault(_core(cpu), []).append(cpu)
    capacity = _classes({c: max(t.capacity or 0 for t in own) for c, own in cores.items()})
    speed = _classes({c: max(t.max_mhz or 0 for t in own) for c, own in cores.items()})
    keys = {
        core: (_TYPES.index(own[0].type) if own[0].type else 0, capacity[core], speed[core])
        for core, own in cores.items()
    }
    silent = not any(cpu.type or cpu.capacity or cpu.max_mhz for cpu in cpus)
    if silent and len(set(keys.values())) == 1 and _all_online(cpus):
        most = max((len(own) for own in cores.values()), default=1)
        fewer = [core for core, own in cores.items() if len(own) < most]
        if LEAST_OF_A_KIND <= len(fewer) <= len(cores) - LEAST_OF_A_KIND:
            keys |= dict.fromkeys(fewer, (1, 0, 0))
    ranks = {key: rank for rank, key in enumerate(sorted(set(keys.values())))}
    return {cpu.cpu: ranks[keys[core]] for core, own in cores.items() for cpu in own}


def _threads(cpus: list[Cpu], usable: Collection[int]) -> list[tuple[int, Cpu]]:
    """Each usable CPU with its number among the hardware threads of its core, from 0, in joining
    order.
    """
    seen: Counter[_Core] = Counter()
    ranked = []
    kind = kinds(cpus)
    for cpu in sorted(cpus, key=lambda c: c.cpu):
        if cpu.cpu in usable:
            ranked.append((seen[_core(cpu)], cpu))
            seen[_core(cpu)] += 1
    return sorted(
        ranked,
        key=lambda r: (r[0], kind[r[1].cpu], r[1].socket, r[1].node or 0, r[1].core, r[1].cpu),
    )


def cpu_order(cpus: list[Cpu], usable: Collection[int] | None = None) -> list[int]:
    """The order in which the CPUs that are `usable` (all of them) join a measurement.

    The physical cores of socket 0, then those of socket 1 and so on, as FxMark does it to keep
    NUMA out as long as possible; the second hardware threads of all cores come last, in the same
    order. Where cores are unequal, all fast ones come before the slower ones, and these before the
    second threads of the fast ones, as the kernel's scheduler fills them.
    """
    usable = {cpu.cpu for cpu in cpus} if usable is None else usable
    return [cpu.cpu for _, cpu in _threads(cpus, usable)]


@dataclass(frozen=True)
class Layout:
    """The core counts at which the hardware under a curve changes."""

    sockets: tuple[int, ...]
    """counts at which a socket's last physical core has joined, where there are several sockets"""
    cores: int
    """physical cores: from the next count on, hardware threads share them"""
    threads: int
    """all CPUs that may be used"""
    kinds: tuple[int, ...] = ()
    """counts at which the last core of a kind has joined, fastest first; none where all are equal
    """

    @property
    def equal(self) -> int:
        """Physical cores that are as fast as the first: linear scaling is by these."""
        return self.kinds[0] if self.kinds else self.cores

    @property
    def borders(self) -> tuple[int, ...]:
        """The counts after which slower cores join."""
        return self.kinds[:-1]

    def physical(self, count: int) -> int:
        """Physical cores of the fastest kind under the first `count` CPUs.

        What a slower core is worth to a load nobody can tell from the hardware's description: it
        adds nothing here, as the second thread of a core.
        """
        return min(count, self.equal)


def layout(cpus: list[Cpu], usable: Collection[int]) -> Layout:
    """Where the hardware changes along a curve over the `usable` ones of some CPUs.

    Sockets of one core each, as virtual machines have them, are no sockets.
    """
    first = [cpu for thread, cpu in _threads(cpus, usable) if thread == 0]
    sizes = Counter(cpu.socket for cpu in first)
    several = len(sizes) > 1 and max(sizes.values()) > 1
    # The last one wins: of each socket, of each kind.
    full = {cpu.socket: count for count, cpu in enumerate(first, 1)} if several else {}
    kind = kinds(cpus)
    last = {kind[cpu.cpu]: count for count, cpu in enumerate(first, 1)}
    return Layout(
        tuple(sorted(full.values())),
        len(first),
        len(usable),
        tuple(last.values()) if len(last) > 1 else (),
    )


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
            counts |= {*there.sockets, *there.kinds, there.cores}
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
