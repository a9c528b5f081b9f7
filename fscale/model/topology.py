# SPDX-License-Identifier: GPL-2.0-only
"""The order in which CPUs join a measurement, and the core counts at which hardware changes."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise, zip_longest
from typing import Literal, get_args

from fscale.model import corecounts
from fscale.model.corecounts import CoreCount
from fscale.model.errors import FscaleError
from fscale.model.results import Cpu, CpuPlacement, CpuType, Machine
from fscale.model.words import ranges

Preset = Literal["topology", "powers", "all"]


# A core is of a slower kind when its highest frequency, or its capacity, is at least a tenth below
# that of the next faster core. The favoured cores of one kind differ by less from one to the next
# (Turbo Boost Max: up to 7%, the ranking of AMD's preferred cores: 2 to 5% a step); efficiency
# cores are 15% or more below the others.
GAP = 0.1
MIN_OF_A_KIND = 2  # cores; a single core without a second thread may have lost it to hotplug

_TYPES = get_args(CpuType)
_Core = tuple[int, int]


def _core(cpu: Cpu) -> _Core:
    return cpu.socket, cpu.core


def _classes(values: Mapping[_Core, float | None]) -> dict[_Core, int]:
    """Return each core's class by a figure, 0 for the highest; all 0 if one core has no figure."""
    if not all(values.values()):
        return dict.fromkeys(values, 0)
    known = {core: value or 0.0 for core, value in values.items()}
    classes, number, above = {}, 0, max(known.values(), default=0.0)
    for core in sorted(known, key=lambda c: -known[c]):
        number += known[core] < (1 - GAP) * above
        classes[core], above = number, known[core]
    return classes


def _all_online(cpus: list[Cpu]) -> bool:
    """Return whether no CPU can be offline: the threads of each core have successive numbers.

    If second threads are numbered last, as on most servers, offline threads may leave no gap.
    """
    numbered = sorted(cpus, key=lambda cpu: cpu.cpu)
    return [cpu.cpu for cpu in numbered] == list(range(len(cpus))) and sum(
        _core(a) != _core(b) for a, b in pairwise(numbered)
    ) == len({_core(cpu) for cpu in cpus}) - 1


def kinds(cpus: list[Cpu]) -> dict[int, int]:
    """Return the kind of each CPU's core, 0 for the fastest; all 0 if the cores are equal.

    The kernel distinguishes cores by their PMUs (hybrid x86), by `cpu_capacity` (arm64), or by
    their highest frequencies. If none of these is known, as in a virtual machine or in old results,
    cores with fewer hardware threads than others count as slower, unless their other threads may be
    offline.
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
        if MIN_OF_A_KIND <= len(fewer) <= len(cores) - MIN_OF_A_KIND:
            keys |= dict.fromkeys(fewer, (1, 0, 0))
    ranks = {key: rank for rank, key in enumerate(sorted(set(keys.values())))}
    return {cpu.cpu: ranks[keys[core]] for core, own in cores.items() for cpu in own}


_GROUPS: tuple[Callable[[Cpu], object], ...] = (
    lambda cpu: cpu.socket,
    lambda cpu: cpu.node,
    lambda cpu: cpu.l3,
)
"""what CPUs share, the largest first"""


def _dealt(cpus: Sequence[Cpu], groups: Sequence[Callable[[Cpu], object]]) -> list[Cpu]:
    """Take CPUs from their groups in turn, and within a group from its own groups in turn."""
    if not groups:
        return list(cpus)
    parts: dict[object, list[Cpu]] = {}
    for cpu in cpus:
        parts.setdefault(groups[0](cpu), []).append(cpu)
    rounds = zip_longest(*(_dealt(part, groups[1:]) for part in parts.values()))
    return [cpu for one in rounds for cpu in one if cpu is not None]


def _threads(
    cpus: list[Cpu], usable: Collection[int], placement: CpuPlacement = "packed"
) -> list[tuple[int, Cpu]]:
    """List the usable CPUs in joining order, each with its thread number within its core.

    Thread numbers begin at 0.
    """
    seen: Counter[_Core] = Counter()
    ranked = []
    kind = kinds(cpus)
    for cpu in sorted(cpus, key=lambda c: c.cpu):
        if cpu.cpu in usable:
            ranked.append((seen[_core(cpu)], cpu))
            seen[_core(cpu)] += 1
    ranked.sort(
        key=lambda r: (r[0], kind[r[1].cpu], r[1].socket, r[1].node or 0, r[1].core, r[1].cpu),
    )
    if placement == "packed":
        return ranked
    return [
        (thread, cpu)
        for (thread, _), alike in groupby(ranked, key=lambda r: (r[0], kind[r[1].cpu]))
        for cpu in _dealt([cpu for _, cpu in alike], _GROUPS)
    ]


def cpu_order(
    cpus: list[Cpu],
    usable: Collection[int] | None = None,
    placement: CpuPlacement = "packed",
) -> list[int]:
    """Return the order in which `usable` CPUs (default: all) join a measurement.

    Packed: the physical cores of socket 0 come first, then those of socket 1 and so on; FxMark uses
    this order to avoid NUMA effects as long as possible. Spread: a core of each socket in turn, and
    within a socket a core of each NUMA node and of each L3 cache in turn. With both, the second
    hardware threads of all cores come last, in the same order. If cores are unequal, all fast cores
    come before the slower ones, and these before the second threads of the fast ones, as the
    kernel's scheduler fills them.
    """
    usable = {cpu.cpu for cpu in cpus} if usable is None else usable
    return [cpu.cpu for _, cpu in _threads(cpus, usable, placement)]


def place(machine: Machine, placement: CpuPlacement, keep_free: int | str) -> Machine:
    """Return the machine with its usable CPUs in the order of a placement, the last kept free.

    `keep_free` is a number of CPUs or a share such as "25%". Whole cores are kept free, the last
    ones of the order, as far as the number allows it; else the last hardware threads.

    Raises:
        FscaleError: no CPU is left for a worker.
    """
    usable = machine.cpu_order
    order = cpu_order(machine.topology, usable, placement)
    count = (
        keep_free
        if isinstance(keep_free, int)
        else corecounts.share(int(keep_free.removesuffix("%")), len(order))
    )
    if count >= len(order):
        raise FscaleError(
            f"keep_free = {keep_free} leaves no CPU for a worker, because this run may use "
            f"{len(order)}; keep fewer CPUs free, or measure on a larger machine"
        )
    kept = _last(machine.topology, order, count)
    return machine.model_copy(
        update={
            "cpu_order": [cpu for cpu in order if cpu not in kept],
            "placement": placement,
            "kept_free": sorted(kept),
        }
    )


def _last(cpus: list[Cpu], order: list[int], count: int) -> set[int]:
    """Choose the last `count` CPUs of an order: whole cores, then single threads."""
    core_of = {cpu.cpu: _core(cpu) for cpu in cpus}
    threads: dict[_Core, list[int]] = {}
    for cpu in order:
        threads.setdefault(core_of[cpu], []).append(cpu)
    chosen: list[int] = []
    for siblings in reversed(threads.values()):
        if len(chosen) + len(siblings) <= count:
            chosen += siblings
    chosen += [cpu for cpu in reversed(order) if cpu not in chosen][: count - len(chosen)]
    return set(chosen)


def spreads(machine: Machine) -> bool:
    """Return whether the usable CPUs of a machine lie in several sockets, nodes or L3 caches."""
    usable = [cpu for cpu in machine.topology if cpu.cpu in machine.cpu_order]
    return len({tuple(group(cpu) for group in _GROUPS) for cpu in usable}) > 1


@dataclass(frozen=True)
class Layout:
    """The core counts along a curve at which the hardware changes."""

    sockets: tuple[int, ...]
    """counts at which the last physical core of a socket joins; empty for a single socket"""
    cores: int
    """number of physical cores; beyond it, hardware threads share cores"""
    threads: int
    """number of all usable CPUs"""
    kinds: tuple[int, ...] = ()
    """counts at which the last core of a kind joins, fastest kind first; empty if all are equal"""

    @property
    def equal(self) -> int:
        """Number of physical cores of the fastest kind, which linear scaling refers to."""
        return self.kinds[0] if self.kinds else self.cores

    @property
    def borders(self) -> tuple[int, ...]:
        """The counts beyond which slower cores join."""
        return self.kinds[:-1]

    def physical(self, count: int) -> int:
        """Return the number of physical cores of the fastest kind among the first `count` CPUs.

        The hardware's description does not say how much a slower core contributes, so it counts as
        nothing here, like the second thread of a core.
        """
        return min(count, self.equal)


def layout(cpus: list[Cpu], usable: Collection[int], placement: CpuPlacement = "packed") -> Layout:
    """Return the core counts at which the hardware changes along a curve over `usable` CPUs.

    Sockets of one core each, as in virtual machines, are not counted as sockets. CPUs that are
    spread use all sockets from the first counts on, so no count completes one.
    """
    first = [cpu for thread, cpu in _threads(cpus, usable, placement) if thread == 0]
    sizes = Counter(cpu.socket for cpu in first)
    several = placement == "packed" and len(sizes) > 1 and max(sizes.values()) > 1
    # Later entries overwrite earlier ones, so the last core of each socket and kind remains.
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
    """Return the layout of a recorded machine."""
    return layout(machine.topology, machine.cpu_order, machine.placement)


def core_counts(
    asked: Sequence[CoreCount] | Preset,
    there: Layout,
    *,
    leave_out: bool = False,
    why_fewer: str = "",
) -> list[int]:
    """Return the core counts of a suite on a machine, in rising order, each once.

    With `leave_out`, counts beyond the usable CPUs are left out (see `beyond`). `why_fewer` says
    why the machine has CPUs that are not usable.

    Raises:
        FscaleError: a count exceeds the usable CPUs; with `leave_out`, all do.
    """
    if asked == "all":
        return list(range(1, there.threads + 1))
    if isinstance(asked, str):
        counts = {1 << n for n in range(there.threads.bit_length())} | {there.threads}
        if asked == "topology":
            counts |= {*there.sockets, *there.kinds, there.cores}
        return sorted(count for count in counts if count <= there.threads)
    found = [n for n in corecounts.expand(asked, there.threads) if n <= there.threads]
    lacking = beyond(asked, there)
    if lacking and not (leave_out and found):
        raise FscaleError(
            f"{ranges(lacking)} cores are asked for, but this run may use {there.threads}"
            f"{why_fewer and f', because {why_fewer}'}; give shares such as 50%, or core counts up "
            f"to {there.threads}"
        )
    return found


def beyond(asked: Sequence[CoreCount] | Preset, there: Layout) -> list[int]:
    """Return the core counts of a suite that exceed the usable CPUs, in rising order."""
    if isinstance(asked, str):
        return []
    return [n for n in corecounts.expand(asked, there.threads) if n > there.threads]
