# SPDX-License-Identifier: GPL-2.0-only
"""A load that works only when it is its turn, so that two can share the CPUs without meeting."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from fscale.model.errors import FscaleError
from fscale.model.load import Load, Outcome, Settings, Target
from fscale.runner.cell.child import Child, TooLong
from fscale.runner.cell.measure import Limits
from fscale.runner.machine.settings import Cgroup
from fscale.system.executor import Executor


class Ended(Exception):  # noqa: N818
    """The load ended when it should have taken a turn; its outcome says why."""


@dataclass(frozen=True)
class Turn:
    """What a load did in one turn. `seconds` are 0 where its edges were not known well enough."""

    ops: int
    seconds: float
    cpu_seconds: float
    exhausted: bool


class Turns:
    """The process of a load between its set-up and its end."""

    def __init__(self, child: Child, load: Load, target: Target, limits: Limits) -> None:
        self._child = child
        self._load = load
        self._target = target
        self._limits = limits

    def take(self) -> Turn:
        """Work for one slice; all its operations have come back when this returns.

        Raises Ended, and TooLong.
        """
        words = self._child.ask(self._limits.margin).split()
        if len(words) != 4:
            raise Ended
        ops, seconds, cpu, end = words
        return Turn(int(ops), float(seconds), float(cpu), end == "exhausted")

    def end(self) -> Outcome:
        """End the load; what it achieved in all its turns."""
        self._child.no_more()
        return self._load.parse(self._target, *self._child.wait(self._limits.margin))


@contextlib.contextmanager
def in_turns(
    load: Load, target: Target, settings: Settings, limits: Limits, do: Executor
) -> Iterator[Turns]:
    """Set a load up; inside the `with` block it takes turns. No process survives the block.

    Raises Ended where it does not get ready, with its reason, TooLong where that takes too long,
    and FscaleError where a process hangs in the kernel.
    """
    load.prepare(target, do.run)
    cgroup = Cgroup(path=target.cgroup) if target.cgroup else None
    child = Child(do, target.scratch, cgroup, synced=True)
    try:
        child.start(load.command(target, settings, child.sync))
        turns = Turns(child, load, target, limits)
        if not child.wait_ready(limits.setup):
            raise Ended(turns.end().reason)
        yield turns
    finally:
        left = child.end()
    if left:
        raise FscaleError(f"the load hangs in the kernel: {'; '.join(left)}")


__all__ = ["Ended", "TooLong", "Turn", "Turns", "in_turns"]
