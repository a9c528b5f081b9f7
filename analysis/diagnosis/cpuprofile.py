# SPDX-License-Identifier: GPL-2.0-only
"""The on-CPU profile of one repetition: spinning on locks, hot atomics, top symbols."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from fscale.analysis.diagnosis import perfscript, stacks
from fscale.analysis.diagnosis.naming import AddressBook, By, LockPlace, Name, name_lock
from fscale.analysis.diagnosis.rules import match, rules

_NOWHERE = LockPlace("unknown")


@dataclass
class Spot:
    """An object on which CPU time is spent. `periods` are in the profile's unit."""

    name: Name
    kind: str
    periods: int = 0
    callers: Counter[tuple[str, ...]] = field(default_factory=Counter)


@dataclass
class CpuProfile:
    """The CPU time of the workers.

    `spinning`: in the slow paths of locks. `atomics`: in functions that do little but change a
    shared word: reference counts, reader counts, and lock words that are taken without contention.
    `busy`: the workers' CPU time as a share of the cores' time, from the cell; None if unknown.
    """

    event: str
    samples: perfscript.StackSamples
    spinning: dict[str, Spot]
    atomics: dict[str, Spot]
    leaves: Counter[str]
    busy: float | None = None

    @property
    def cpu_share(self) -> float:
        """Worker CPU time over their windows (1: never idle); 1 if it cannot be known.

        Samples of a clock show it. The cycle counter stops while a CPU is idle, so for cycles it is
        `busy`.
        """
        if self.event == "cpu-clock" and self.samples.active_ns > 0:
            return min(1.0, self.samples.total / self.samples.active_ns)
        return 1.0 if self.busy is None else self.busy

    @property
    def doubt(self) -> str | None:
        """A sentence on the meaning of shares of cycles; None if a clock was sampled."""
        if self.event in ("", "cpu-clock"):
            return None
        if self.busy is None:
            return (
                "the on-CPU profile sampled cycles, and the cell does not record for how long the "
                "CPUs were idle, so the share of spinning is an upper bound"
            )
        return (
            "the on-CPU profile sampled cycles and is scaled by the workers' CPU time "
            f"({100 * self.busy:.1f}% of the cores' time); if the frequency of the CPUs changes or "
            "differs, cycles are not proportional to time"
        )

    def share(self, periods: int) -> float:
        """The share of the cores' whole time, including idle time."""
        return self.cpu_share * periods / self.samples.total if self.samples.total else 0.0


_SLOW_PATHS = (
    ("read_slowpath", "rwsem read"),
    ("rwsem", "rwsem write"),
    ("mutex", "mutex"),
    ("queued_spin", "spinlock"),
    ("queued_read", "rwlock read"),
    ("queued_write", "rwlock write"),
)
_WORDS = (
    ("mutex_", "mutex"),
    ("down_read", "rwsem read"),
    ("up_read", "rwsem read"),
    ("down_write", "rwsem write"),
    ("up_write", "rwsem write"),
    ("_raw_spin_", "spinlock"),
    ("_raw_read_", "rwlock read"),
    ("_raw_write_", "rwlock write"),
)


def kind_of_spin(frames: tuple[str, ...]) -> str | None:
    """The kind of the lock whose slow path contains the leaf frames; None if there is none."""
    for frame in frames:
        if not stacks.is_primitive(frame):
            return None
        if stacks.is_spinning(frame):
            kind = next((kind for mark, kind in _SLOW_PATHS if mark in frame), None)
            if kind:
                return kind
    return None


def kind_of_word(leaf: str) -> str | None:
    """The kind of lock whose word a leaf function changes.

    A timer sample due while interrupts are off is taken in the unlock function that enables them,
    so those functions are not evidence.
    """
    if "unlock_irq" in leaf:
        return None
    return next((kind for prefix, kind in _WORDS if leaf.startswith(prefix)), None)


def read(profile: dict[str, Any], busy: float | None = None) -> CpuProfile:
    """Summarise a CPU profile (the content of cpu.json.gz); damaged parts are left out.

    `busy` comes from the cell: see CpuProfile.
    """
    output, comm = str(profile.get("output", "")), str(profile.get("comm", "fscale-run"))
    if profile.get("named") is False:
        samples = perfscript.parse_tree(
            output, comm, profile.get("pid") or 0, profile.get("cores") or 1
        )
    else:
        samples = perfscript.parse(output, comm, profile.get("pid"))
    book = AddressBook(profile, {})
    spinning: dict[str, Spot] = {}
    atomics: dict[str, Spot] = {}
    leaves: Counter[str] = Counter()
    for frames, periods in samples.workers.items():
        leaves[frames[0]] += periods
        inner = stacks.without_interrupt(frames)
        if not inner or len(inner) < len(frames):
            continue  # the interrupt handler's time, not the thread's
        kind = kind_of_spin(inner)
        if kind is not None:
            name = name_lock(kind, _NOWHERE, inner, book)
            _add(spinning, name, kind, periods, inner)
            continue
        rule = match(rules().counters, inner, book.owners, book.kernel)
        if rule is not None:
            name = Name(rule.object, rule.scope, By.STACK, rule)
            _add(atomics, name, "shared counter", periods, inner)
        elif kind := kind_of_word(inner[0]):
            name = name_lock(kind, _NOWHERE, inner, book)
            if name.rule is not None:
                _add(atomics, name, f"{kind} word", periods, inner)
    for frames, periods in samples.user.items():
        leaves[f"[user] {frames[0]}" if frames else "[user]"] += periods
    return CpuProfile(str(profile.get("event", "")), samples, spinning, atomics, leaves, busy)


def _add(
    spots: dict[str, Spot], name: Name, kind: str, periods: int, frames: tuple[str, ...]
) -> None:
    spot = spots.setdefault(name.object, Spot(name, kind))
    spot.periods += periods
    spot.callers[frames] += periods
