# SPDX-License-Identifier: GPL-2.0-only
"""A load that works only when it is its turn, so that two can share the CPUs without meeting."""

import contextlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fscale.model.errors import FscaleError
from fscale.model.load import Load, Outcome, Settings, Target
from fscale.runner.cell.child import Child, TooLong
from fscale.runner.cell.measure import Limits
from fscale.runner.machine.confinement import Quotas
from fscale.runner.machine.settings import Cgroup
from fscale.system.executor import Executor

_SECONDS = r"(\d{1,9}\.\d{9})"
_ANSWER = re.compile(rf"(\d{{1,18}}) {_SECONDS} {_SECONDS} {_SECONDS} (time|exhausted)")


class Ended(Exception):  # noqa: N818
    """The load ended when it should have taken a turn; its outcome says why."""


@dataclass(frozen=True)
class Turn:
    """What a load did in one turn. `seconds` are 0 where its edges were not known well enough."""

    ops: int
    seconds: float
    cpu_seconds: float
    settle_seconds: float
    """of the syncfs() after it; 0 where there was none"""
    exhausted: bool

    @classmethod
    def read(cls, answer: str) -> "Turn":
        """The answer to a request, "OPS SECONDS CPU SETTLED END"; Ended where it is none."""
        words = _ANSWER.fullmatch(answer)
        if not words:
            raise Ended
        seconds, cpu, settled = (float(words[number]) for number in (2, 3, 4))
        return cls(int(words[1]), seconds, cpu, settled, words[5] == "exhausted")

    def written(self) -> str:
        """The same as an answer."""
        end = "exhausted" if self.exhausted else "time"
        lengths = (self.seconds, self.cpu_seconds, self.settle_seconds)
        return " ".join([str(self.ops), *(f"{length:.9f}" for length in lengths), end])


class Turns:
    """The process of a load between its set-up and its end."""

    def __init__(self, child: Child, load: Load, target: Target, limits: Limits) -> None:
        self._child = child
        self._load = load
        self._target = target
        self._limits = limits
        self._quotas = Quotas(hidden=limits.cpus)
        self._started = time.monotonic()

    def take(self) -> Turn:
        """Work for one slice; all its operations have come back, and are settled, on return.

        Raises Ended, and TooLong.
        """
        return Turn.read(self._child.ask(self._limits.margin).rstrip("\n"))

    def end(self) -> Outcome:
        """End the load; what it achieved in all its turns."""
        self._child.no_more()
        outcome = self._load.parse(self._target, *self._child.wait(self._limits.margin))
        wall = time.monotonic() - self._started
        self._quotas.judge(outcome, len(self._target.cpus), wall)
        return outcome


def cut(settings: Settings, seconds: float, *, settle: bool = False) -> Settings:
    """The settings of a load that takes turns of so many seconds, and settles after each."""
    return replace(settings, slice=seconds, warmup=0, min_window=seconds / 2, settle=settle)


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
        ready = child.wait_ready(limits.setup)
        turns = Turns(child, load, target, limits)
        if not ready:
            raise Ended(turns.end().reason)
        yield turns
    finally:
        left = child.end()
    if left:
        raise FscaleError(f"the load hangs in the kernel: {'; '.join(left)}")


__all__ = ["Ended", "TooLong", "Turn", "Turns", "cut", "in_turns"]
