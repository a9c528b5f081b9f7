# SPDX-License-Identifier: GPL-2.0-only
"""The off-CPU profile of one repetition: the objects on which workers were blocked."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from fscale.analysis.diagnosis import stacks
from fscale.analysis.diagnosis.naming import AddressBook, By, LockPlace, Name, name_lock
from fscale.analysis.diagnosis.rules import match, rules
from fscale.model.maps import entries, number, parse

RUNNABLE = (0, 256)  # TASK_RUNNING, and the mark of a preempted task since 4.14
INTERRUPTIBLE = 1
_NOWHERE = LockPlace("unknown")


@dataclass
class Wait:
    """An object for which threads slept. `lock`: they slept in a lock primitive."""

    name: Name
    lock: bool
    wait_ns: int = 0
    count: int = 0
    callers: Counter[tuple[str, ...]] = field(default_factory=Counter)


@dataclass
class OffCpuProfile:
    """Blocked time of all workers; `preempted_ns` is time off the CPU while runnable.

    Threads of an application also sleep because they have nothing to do: daemons wait for
    connections, shells for children. Such sleep is interruptible. Waits for a file system are
    interruptible only in a lock, or in a function that a rule knows. So other interruptible sleep
    is counted in `idle_ns` only.
    """

    active_ns: int
    waits: list[Wait]
    preempted_ns: int
    stacks: Counter[tuple[str, ...]]
    idle_ns: int = 0


def kind_of_sleep(frames: tuple[str, ...]) -> str | None:
    """The kind of the sleeping lock in which the frames (from the sleeper on) begin; else None."""
    text = " ".join(takewhile(stacks.is_primitive, frames))
    if not text:
        return None
    for mark, kind in (
        ("percpu", "percpu-rwsem"),
        ("rwsem_down_read", "rwsem read"),
        ("down_read", "rwsem read"),
        ("rwsem", "rwsem write"),
        ("down_write", "rwsem write"),
        ("mutex", "mutex"),
        ("rt_", "rt-mutex"),
    ):
        if mark in text:
            return kind
    return "semaphore"


def read(profile: dict[str, Any]) -> OffCpuProfile:
    """Summarise an off-CPU profile (the content of offcpu.json.gz); damaged parts are left out."""
    maps = parse(str(profile.get("output", "")))
    book = AddressBook(profile, {})
    waits: dict[str, Wait] = {}
    preempted = idle = 0
    application = profile.get("named") is False
    folded: Counter[tuple[str, ...]] = Counter()
    for key, value in entries(maps.get("@blocked")).items():
        state, _, text = key.partition(",")
        if not isinstance(value, dict) or not state.strip().isdecimal():
            continue
        total, count = number(value.get("total")), number(value.get("count"))
        frames = stacks.parse(text)
        name, is_lock = _name(stacks.sleepers(frames), book)
        unknown = not is_lock and name.rule is None
        if application and int(state) == INTERRUPTIBLE and unknown:
            idle += total
            continue
        folded[frames] += total
        if int(state) in RUNNABLE:
            preempted += total
            continue
        wait = waits.setdefault(name.object, Wait(name, is_lock))
        wait.wait_ns += total
        wait.count += count
        wait.callers[frames] += total
    return OffCpuProfile(
        number(maps.get("@active")),
        sorted(waits.values(), key=lambda w: -w.wait_ns),
        preempted,
        folded,
        idle,
    )


def _name(frames: tuple[str, ...], book: AddressBook) -> tuple[Name, bool]:
    kind = kind_of_sleep(frames)
    if kind is not None:
        return name_lock(kind, _NOWHERE, frames, book), True
    rule = match(rules().waits, frames, book.owners, book.kernel)
    if rule is not None:
        return Name(rule.object, rule.scope, By.STACK, rule), False
    return Name(frames[0] if frames else "?", None, By.NOTHING), False
