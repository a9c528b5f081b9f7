# SPDX-License-Identifier: GPL-2.0-only
"""Combines the profiles of one point into a list of suspects, sorted by the time they take."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fscale.analysis.diagnosis import cpuprofile, kernelstat, lockprofile, offcpu, stacks
from fscale.analysis.diagnosis.cpuprofile import CpuProfile, Spot
from fscale.analysis.diagnosis.kernelstat import LockClass
from fscale.analysis.diagnosis.lockprofile import Contended, LockProfile
from fscale.analysis.diagnosis.naming import ADDRESSED, MOSTLY, By, Name
from fscale.analysis.diagnosis.offcpu import OffCpuProfile, Wait
from fscale.analysis.diagnosis.profile import read_profile
from fscale.model.files import Folder
from fscale.model.results import Cell, CellKey

LOCK, WAIT, COUNTER = "lock", "wait", "shared counter"
SIMULATOR = "simulator"  # name of the profile of a simulated point


@dataclass
class Suspect:
    """An object and the share of the cores' time spent waiting for it (0 to 1).

    `blocked` is waiting time from tracepoints or the scheduler. `spinning` is CPU time in loops
    without a tracepoint (optimistic spinning of a reader-writer semaphore, atomics).
    """

    name: Name
    sort: str  # LOCK, WAIT or COUNTER
    kind: str
    blocked: float = 0.0
    spinning: float = 0.0
    count: int = 0
    mean_us: float | None = None
    max_us: float | None = None
    addresses: int = 0
    histogram: dict[int, int] = field(default_factory=dict)
    callers: list[tuple[tuple[str, ...], float]] = field(default_factory=list)
    one_in: int = 1  # at the end, one wait in this many was sampled; the figures are scaled
    error: float = 0.0  # standard error of `blocked` by sampling, as a share of it
    by_stack: float | None = None  # part of `share` named without an address; None: see `name.by`

    @property
    def addressed(self) -> float:
        """The share of the object's time for which an address identifies it (0 to 1).

        A lock's blocked time and its spinning come from separate repetitions, so an address in one
        is not evidence for the other.
        """
        if self.by_stack is None or not self.share:
            return 1.0 if self.name.by in ADDRESSED else 0.0
        return max(0.0, 1 - self.by_stack / self.share)

    @property
    def by(self) -> By:
        """The evidence for the name for most of the time."""
        if self.name.by in ADDRESSED and self.addressed < MOSTLY:
            return By.STACK
        return self.name.by

    @property
    def evidence(self) -> str:
        """The evidence for the name in words, with the share of time if it is mixed."""
        part, rule = self.addressed, self.name.elsewhere
        if rule:
            return f"unnamed (by its stack {rule.object} on {rule.kernels}, not known here)"
        if part in (0.0, 1.0):
            return self.by.value
        if self.by is By.STACK:
            return f"stack (address for {100 * part:.0f}% of the time)"
        return f"{self.by.value} (for {100 * part:.0f}% of the time)"

    @property
    def share(self) -> float:
        """The share of the cores' time."""
        return self.blocked + self.spinning

    @property
    def sampling(self) -> str | None:
        """A sentence on how its waits were sampled; None if all were recorded."""
        if self.one_in == 1:
            return None
        return (
            f"{self.name.object} was contended so often that at the end only one wait in "
            f"{self.one_in:,} was sampled; its sums are scaled, with a standard error of "
            f"{100 * self.error:.1f}%"
        )


@dataclass
class Triage:
    """The combined profiles of one point."""

    key: CellKey  # of one of its profiling cells
    suspects: list[Suspect]  # by share
    profiles: dict[str, int]  # profiler -> repetitions that were read
    unreadable: dict[str, str]  # file -> why
    cpu: CpuProfile | None = None
    offcpu: OffCpuProfile | None = None
    counts: dict[str, float] = field(default_factory=dict)
    hardware: dict[str, float] = field(default_factory=dict)
    hardware_gaps: list[str] = field(default_factory=list)  # events counted on some CPUs only
    lock_classes: list[LockClass] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)  # output of perf lock and perf c2c
    preempted: float = 0.0  # share of time in which workers were preempted by other threads
    incomplete: bool = False  # a map of the tracer was full
    recorded_share: float = 1.0  # share of the windows in which waits for locks were recorded
    located: bool = True  # addresses of locks could be resolved to objects
    nameless: list[str] = field(default_factory=list)  # profilers that got addresses, not symbols
    disturbed: bool = False
    application: bool = False  # more threads than CPUs

    @property
    def sees_waiting(self) -> bool:
        """Whether the profiles show lock waits as shares of time, as /proc/lock_stat does not."""
        return bool({"locks", "offcpu", SIMULATOR} & self.profiles.keys())

    @property
    def sees_spinning(self) -> bool:
        """Whether the profiles show spinning, which tracepoints do not."""
        return bool({"cpu", SIMULATOR} & self.profiles.keys() - {*self.nameless})

    @property
    def sees_shares(self) -> bool:
        """Whether the profiles show shares of the cores' time."""
        return self.sees_waiting or self.sees_spinning

    @property
    def notes(self) -> list[str]:
        """Sentences on the limits of the figures."""
        doubt = self.cpu.doubt if self.cpu else None
        hidden = (
            f"the kernel hid its addresses from the profiles {', '.join(self.nameless)}, so "
            "functions and locks in them have no names; profile with sysctl kernel.kptr_restrict=1"
        )
        lost = (
            "the kernel's memory layout could not be determined, so locks that are not static are "
            "named by their stacks only"
        )
        remarks = [*self.hardware_gaps, doubt, None if self.located else lost]
        remarks.append(hidden if self.nameless else None)
        return [note for note in remarks if note]

    @property
    def turns(self) -> str | None:
        """A sentence on the share of time in which locks were recorded; None if always."""
        if self.recorded_share == 1:
            return None
        return (
            "CPUs spun so much that waits were recorded only "
            f"{100 * self.recorded_share:.0f}% of the time; the sums are scaled"
        )


def triage(run_dir: Path, cells: Iterable[Cell]) -> Triage:
    """Diagnose one point from its profiling cells (all with the same key but for the profile)."""
    usable = [cell for cell in cells if cell.status == "ok" and cell.key.profile]
    read: dict[str, list[Any]] = {"locks": [], "cpu": [], "offcpu": []}
    unreadable: dict[str, str] = {}
    seen: Counter[str] = Counter()
    counts: list[dict[str, float]] = []
    texts: dict[str, str] = defaultdict(str)
    gaps: list[str] = []
    application = any(cell.key.workers_per_cpu > 1 for cell in usable)
    readers = {"locks": lockprofile.read, "offcpu": offcpu.read}
    for cell in usable:
        name = str(cell.key.profile)
        if cell.counts:
            counts.append(cell.counts)
        path = cell.profiles.get(name)
        if path is None:
            continue
        try:
            content = read_profile(Folder(run_dir), path)
            application |= content.get("named") is False
            if name in readers:
                read[name].append(_of_load(readers[name](content)))
            elif name == "cpu":
                read[name].append(_of_load(cpuprofile.read(content, busy(cell))))
            else:
                texts[name] = content["output"]
                gaps = kernelstat.gaps(content) if name == "hardware" else gaps
            seen[name] += 1
        except (OSError, ValueError) as error:
            unreadable[path] = str(error)
    locks, cpu, off = (_longest(read[name]) for name in ("locks", "cpu", "offcpu"))
    return Triage(
        key=usable[0].key if usable else next(iter(cells)).key,
        suspects=_suspects(locks, cpu, off),
        profiles=dict(seen),
        unreadable=unreadable,
        cpu=cpu,
        offcpu=off,
        counts=_mean(counts),
        hardware=kernelstat.hardware(texts["hardware"]),
        hardware_gaps=gaps,
        lock_classes=kernelstat.lock_stat(texts["lockstat"]),
        texts={name: texts[name] for name in ("perf-lock", "c2c") if name in texts},
        preempted=off.preempted_ns / off.active_ns if off and off.active_ns else 0.0,
        incomplete=bool(locks and locks.full),
        recorded_share=locks.recorded_share if locks else 1.0,
        located=locks is None or locks.located,
        nameless=_nameless(locks, cpu, off),
        disturbed=any(cell.disturbed for cell in usable),
        application=application,
    )


def busy(cell: Cell) -> float | None:
    """The CPU time of the cell's own threads as a share of the cores' time; None if not recorded.

    Without a cgroup it is the CPU time of all threads on these cores.
    """
    if cell.own_cpu_seconds is not None and cell.seconds > 0:
        return min(1.0, cell.own_cpu_seconds / (cell.seconds * cell.key.cores))
    if cell.cpu is None or cell.cpu.total <= 0:
        return None
    return 1 - (cell.cpu.idle + cell.cpu.iowait + cell.cpu.steal) / cell.cpu.total


def _seen(profile: Any) -> int:
    """The time of the load that a profile shows."""
    return int(profile.samples.total if isinstance(profile, CpuProfile) else profile.active_ns)


def _of_load(profile: Any) -> Any:
    """The profile. Raises ValueError if it shows nothing of the load: that is not idleness."""
    if not _seen(profile):
        raise ValueError("it does not contain a single sample of the load")
    return profile


def _longest(profiles: list[Any]) -> Any:
    """The profile of the longest of several repetitions, because their shares cannot be mixed."""
    return max(profiles, key=_seen, default=None)


def _nameless(
    locks: LockProfile | None, cpu: CpuProfile | None, off: OffCpuProfile | None
) -> list[str]:
    """The profiles with hardly a kernel symbol."""
    found = {
        "locks": [lock.callers for lock in locks.locks] if locks else [],
        "cpu": [cpu.samples.workers] if cpu else [],
        "offcpu": [off.stacks] if off else [],
    }
    return [name for name, times in found.items() if stacks.nameless(times) > MOSTLY]


def _mean(counts: list[dict[str, float]]) -> dict[str, float]:
    events = dict.fromkeys(event for one in counts for event in one)
    return {e: sum(c.get(e, 0.0) for c in counts) / len(counts) for e in events}


def _suspects(
    locks: LockProfile | None, cpu: CpuProfile | None, off: OffCpuProfile | None
) -> list[Suspect]:
    by_name: dict[tuple[str, str], Suspect] = {}
    if locks is not None and locks.active_ns > 0:
        for lock in locks.locks:
            suspect = _from_lock(lock, locks.active_ns)
            by_name[LOCK, _identity(lock)] = suspect
    if off is not None and off.active_ns > 0:
        for wait in off.waits:
            if not wait.lock:
                by_name[WAIT, wait.name.object] = _from_wait(wait, off.active_ns, WAIT)
            elif locks is None:
                by_name[LOCK, wait.name.object] = _from_wait(wait, off.active_ns, LOCK)
    if cpu is not None:
        for spot in cpu.spinning.values():
            # Tracepoints cover spinning on all locks except reader-writer semaphores.
            if locks is None or "rwsem" in spot.kind:
                _add_spinning(by_name, LOCK, spot, cpu)
        for spot in cpu.atomics.values():
            _add_spinning(by_name, COUNTER, spot, cpu)
    return sorted(by_name.values(), key=lambda s: (-s.share, s.name.object))


def _identity(lock: Contended) -> str:
    if lock.name.by is By.NOTHING:
        return f"{lock.name.object} {min(lock.addresses):#x}"
    return lock.name.object


def top(callers: Counter[tuple[str, ...]], total: float) -> list[tuple[tuple[str, ...], float]]:
    """The five callers with the most time, each with its share of `total`."""
    return [(stack, value / total) for stack, value in callers.most_common(5) if total]


def _from_lock(lock: Contended, active_ns: int) -> Suspect:
    name = lock.name
    if name.by is By.NOTHING:
        name = replace(name, object=f"{name.object} ({min(lock.addresses):#x})")
    return Suspect(
        name,
        LOCK,
        ", ".join(sorted(lock.kinds)),
        blocked=lock.wait_ns / active_ns,
        count=lock.count,
        mean_us=lock.mean_ns / 1e3,
        max_us=lock.max_ns / 1e3,
        addresses=len(lock.addresses),
        histogram=dict(sorted(lock.histogram.items())),
        callers=top(lock.callers, lock.wait_ns),
        one_in=lock.one_in,
        error=lock.error,
        by_stack=lock.by_stack * lock.wait_ns / active_ns if 0 < lock.by_stack < 1 else None,
    )


def _from_wait(wait: Wait, active_ns: int, sort: str) -> Suspect:
    return Suspect(
        wait.name,
        sort,
        "blocked",
        blocked=wait.wait_ns / active_ns,
        count=wait.count,
        mean_us=wait.wait_ns / wait.count / 1e3 if wait.count else None,
        callers=top(wait.callers, wait.wait_ns),
    )


def _add_spinning(
    by_name: dict[tuple[str, str], Suspect], sort: str, spot: Spot, cpu: CpuProfile
) -> None:
    suspect = by_name.setdefault((sort, spot.name.object), Suspect(spot.name, sort, spot.kind))
    before = suspect.share * (1 - suspect.addressed)
    suspect.spinning = cpu.share(spot.periods)
    if spot.name.by not in ADDRESSED:
        suspect.by_stack = before + suspect.spinning
    if not suspect.callers:
        suspect.callers = top(spot.callers, spot.periods)
