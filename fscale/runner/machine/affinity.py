# SPDX-License-Identifier: GPL-2.0-only
"""What other programs are bound to, which the kernel forgets while their CPUs are offline.

A thread or an interrupt without an online CPU may use all CPUs from then on, and a cpuset of
cgroup v1 loses its offline CPUs, and its processes if it has no other CPU.
"""

import contextlib
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import Field, PrivateAttr

from fscale.model.bench import Strict
from fscale.model.files import printable
from fscale.model.perfstat import cpu_list
from fscale.model.words import ranges
from fscale.runner.machine.changes import Change, insist
from fscale.system import cgroups
from fscale.system.executor import Executor
from fscale.system.processes import PROC
from fscale.system.sysfs import text

_INTERRUPTS = PROC / "irq"
_PF_NO_SETAFFINITY = 0x04000000  # include/linux/sched.h: the kernel itself binds this thread
_ALLOWED = re.compile(r"^Cpus_allowed_list:\s*(\S+)", re.MULTILINE)
_PATIENCE = 0.5  # seconds for which the kernel may refuse, because a cpuset lags behind its CPUs


class Thread(Strict):
    """A thread, told from a later one of the same number by its start time in clock ticks."""

    tid: int
    started: int
    name: str
    cpus: list[int]

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        stat = _stat(self.tid)
        return stat is not None and stat[1] == self.started

    def restore(self, do: Executor) -> None:
        """Bind it as before, unless another program has bound it otherwise meanwhile."""
        if self.alive and {*self.cpus} < {*_allowed(self.tid)}:
            do.bind(self.tid, self.cpus)


class CpuSet(Strict):
    """A cpuset of cgroup v1, and the threads that leave it when it has no CPU."""

    path: Path
    cpus: list[int]
    threads: list[Thread]

    def restore(self, do: Executor) -> None:
        """Give it its CPUs and its threads, unless they went elsewhere than to an ancestor."""
        there = text(self.path / "cpuset.cpus")
        if there is None:
            return
        if {*cpu_list(there)} < {*self.cpus}:
            do.write(self.path / "cpuset.cpus", ranges(self.cpus))
        above = {tid for group in self.path.parents for tid in _tasks(group)}
        for thread in self.threads:
            if thread.tid in above and thread.alive:
                with contextlib.suppress(ProcessLookupError):
                    do.write(self.path / "tasks", str(thread.tid))


class Affinity(Change):
    """The binding of what loses its last online CPU when CPUs go offline.

    The kernel changes it, not `apply`. A binding that cannot be restored is no failure: it must not
    keep later runs from starting. `unrestored` says so.
    """

    kind: Literal["affinity"] = "affinity"
    threads: list[Thread] = Field(default=[])
    interrupts: dict[int, list[int]] = Field(default={})
    cpusets: list[CpuSet] = Field(default=[])
    _unrestored: list[str] = PrivateAttr(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.threads or self.interrupts or self.cpusets)

    def show(self) -> str:
        """See Change."""
        return (
            f"{len(self.threads)} threads, {len(self.interrupts)} interrupts and "
            f"{len(self.cpusets)} cpusets are bound to CPUs that a run took offline"
        )

    def apply(self, do: Executor) -> None:
        """Do nothing: the kernel widens them when their CPUs go offline."""

    @property
    def unrestored(self) -> list[str]:
        """See Change."""
        return self._unrestored

    def undo(self, do: Executor) -> None:
        """Restore what has an online CPU again. A cpuset comes first: it limits its threads."""
        self._unrestored = []
        for group in self.cpusets:
            self._try(f"cpuset {group.path}", group.cpus, partial(group.restore, do))
        for thread in self.threads:
            what = f"thread {thread.tid} ({thread.name})"
            self._try(what, thread.cpus, partial(thread.restore, do))
        for number, cpus in self.interrupts.items():
            self._try(f"interrupt {number}", cpus, partial(_bind, number, cpus, do))

    def within(self, online: set[int]) -> "Affinity":
        """The part that can be restored while these CPUs are online."""
        return Affinity(
            threads=[one for one in self.threads if not online.isdisjoint(one.cpus)],
            interrupts={n: c for n, c in self.interrupts.items() if not online.isdisjoint(c)},
            cpusets=[one for one in self.cpusets if online.issuperset(one.cpus)],
        )

    def without(self, others: Sequence["Affinity"]) -> "Affinity":
        """The part that none of the others has."""
        threads = [one for other in others for one in other.threads]
        cpusets = [one for other in others for one in other.cpusets]
        known = {number for other in others for number in other.interrupts}
        return Affinity(
            threads=[one for one in self.threads if one not in threads],
            interrupts={n: cpus for n, cpus in self.interrupts.items() if n not in known},
            cpusets=[one for one in self.cpusets if one not in cpusets],
        )

    def _try(self, what: str, cpus: list[int], restore: Callable[[], None]) -> None:
        try:
            insist(restore, _PATIENCE)
        except (FileNotFoundError, ProcessLookupError):
            return  # it has ended
        except OSError as error:
            self._unrestored.append(
                f"{what} was bound to CPUs {ranges(cpus)} before they went offline, and cannot be "
                f"bound to them again ({error.strerror}); bind it, or restart what it belongs to"
            )


def find(online: Collection[int], remaining: Collection[int]) -> Affinity:
    """Find what has its last online CPU among those that are online and do not remain so."""
    left = {*remaining}
    going = {*online} - left
    cpusets = [_cpuset(path, left) for path in _cpusets()]

    def loses_last(cpus: list[int]) -> bool:
        return left.isdisjoint(cpus) and not going.isdisjoint(cpus)

    threads = [thread for tid in _tids() if (thread := _thread(tid))]
    return Affinity(
        threads=[thread for thread in threads if loses_last(thread.cpus)],
        interrupts={number: cpus for number, cpus in _interrupts() if loses_last(cpus)},
        cpusets=[one for one in cpusets if not going.isdisjoint(one.cpus)],
    )


def _tids() -> list[int]:
    tids: list[int] = []
    for process in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            tids += [int(task.name) for task in (process / "task").iterdir()]
    return sorted(tids)


def _stat(tid: int) -> tuple[int, int] | None:
    """A thread's flags and start time; None if it has ended."""
    fields = (text(PROC / str(tid) / "stat") or "").rpartition(")")[2].split()
    return (int(fields[6]), int(fields[19])) if len(fields) > 19 else None


def _thread(tid: int) -> Thread | None:
    stat = _stat(tid)
    if stat is None or stat[0] & _PF_NO_SETAFFINITY:
        return None
    name = printable(text(PROC / str(tid) / "comm") or "")
    return Thread(tid=tid, started=stat[1], name=name, cpus=_allowed(tid))


def _allowed(tid: int) -> list[int]:
    """The CPUs of a thread, also those that are offline, which sched_getaffinity(2) leaves out."""
    found = _ALLOWED.search(text(PROC / str(tid) / "status") or "")
    return cpu_list(found[1]) if found else []


def _interrupts() -> Iterator[tuple[int, list[int]]]:
    for directory in _INTERRUPTS.glob("[0-9]*"):
        yield int(directory.name), cpu_list(text(directory / "smp_affinity_list") or "")


def _bind(number: int, cpus: list[int], do: Executor) -> None:
    """Bind an interrupt, unless it is bound so: the kernel binds those that it manages itself."""
    file = _INTERRUPTS / str(number) / "smp_affinity_list"
    if cpu_list(text(file) or "") != cpus:
        do.write(file, ranges(cpus))


def _cpusets() -> Iterator[Path]:
    """The cpusets of cgroup v1 below the root, parents first; those of v2 forget no CPU."""
    if root := cgroups.mount_point("cpuset"):
        for directory, _, _ in os.walk(root):
            if directory != str(root):
                yield Path(directory)


def _cpuset(path: Path, left: set[int]) -> CpuSet:
    cpus = cpu_list(text(path / "cpuset.cpus") or "")
    members = _tasks(path) if cpus and left.isdisjoint(cpus) else []
    threads = [thread for tid in members if (thread := _thread(tid))]
    return CpuSet(path=path, cpus=cpus, threads=threads)


def _tasks(group: Path) -> list[int]:
    return [int(tid) for tid in (text(group / "tasks") or "").split()]
