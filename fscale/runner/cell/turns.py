# SPDX-License-Identifier: GPL-2.0-only
"""Runs a load in turns, so that two loads can alternate on the same CPUs."""

import contextlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fscale.model.errors import FscaleError
from fscale.model.load import Load, LoadSettings, Outcome, Target
from fscale.runner.cell.child import Child, LoadTimeout
from fscale.runner.cell.measure import Limits
from fscale.runner.machine.changes import Cgroup
from fscale.runner.machine.confinement import Quotas
from fscale.system.executor import Executor

_SECONDS = r"(\d{1,9}\.\d{9})"
_ANSWER = re.compile(rf"(\d{{1,18}}) {_SECONDS} {_SECONDS} {_SECONDS} (time|exhausted)")


class LoadEnded(FscaleError):  # noqa: N818
    """The load ended instead of taking a turn; its outcome says why."""


@dataclass(frozen=True)
class Turn:
    """The result of one turn. `seconds` is 0 if its edges were not known precisely enough."""

    ops: int
    seconds: float
    cpu_seconds: float
    settle_seconds: float
    """duration of the syncfs() after the turn; 0 without one"""
    exhausted: bool

    @classmethod
    def read(cls, answer: str) -> "Turn":
        """Parse the answer to a request, "OPS SECONDS CPU SETTLED END".

        Raises:
            LoadEnded: the text is not an answer.
        """
        words = _ANSWER.fullmatch(answer)
        if not words:
            raise LoadEnded
        seconds, cpu, settled = (float(words[number]) for number in (2, 3, 4))
        return cls(int(words[1]), seconds, cpu, settled, words[5] == "exhausted")

    def format_answer(self) -> str:
        """Format the turn as an answer."""
        end = "exhausted" if self.exhausted else "time"
        lengths = (self.seconds, self.cpu_seconds, self.settle_seconds)
        return " ".join([str(self.ops), *(f"{length:.9f}" for length in lengths), end])


class SlicedLoad:
    """A load that is set up and takes turns until it ends."""

    def __init__(self, child: Child, load: Load, target: Target, limits: Limits) -> None:
        self._child = child
        self._load = load
        self._target = target
        self._limits = limits
        self._quotas = Quotas(hidden=limits.cpus)
        self._started = time.monotonic()

    def take(self) -> Turn:
        """Let the load work for one slice; its operations are complete, and synced, on return.

        Raises:
            LoadEnded: the load ended instead.
            LoadTimeout: the turn exceeded its time limit.
        """
        return Turn.read(self._child.take_turn(self._limits.margin).rstrip("\n"))

    def end(self) -> Outcome:
        """End the load and return its outcome over all turns."""
        self._child.close_input()
        outcome = self._load.parse(self._target, *self._child.wait(self._limits.margin))
        wall = time.monotonic() - self._started
        self._quotas.judge(outcome, len(self._target.cpus), wall)
        return outcome


def turn_settings(settings: LoadSettings, seconds: float, *, settle: bool = False) -> LoadSettings:
    """Return the settings of a load with turns of `seconds`, with a syncfs() if `settle`."""
    return replace(settings, slice=seconds, warmup=0, min_window=seconds / 2, settle=settle)


@contextlib.contextmanager
def in_turns(
    load: Load, target: Target, settings: LoadSettings, limits: Limits, do: Executor
) -> Iterator[SlicedLoad]:
    """Set a load up, so that it takes turns inside the `with` block, and kill it at the end.

    Raises:
        LoadEnded: the load ended during its set-up; the text is its reason.
        LoadTimeout: the set-up exceeded its time limit.
        FscaleError: a process hangs in the kernel and cannot be killed.
    """
    load.prepare(target, do.run)
    cgroup = Cgroup(path=target.cgroup) if target.cgroup else None
    child = Child(do, target.scratch, cgroup, synced=True)
    try:
        child.start(load.command(target, settings, child.sync))
        ready = child.wait_ready(limits.setup)
        turns = SlicedLoad(child, load, target, limits)
        if not ready:
            outcome = turns.end()
            raise LoadEnded(outcome.reason or "", fault=outcome.fault)
        yield turns
    finally:
        left = child.end()
    if left:
        raise FscaleError(f"the load hangs in the kernel: {'; '.join(left)}", fault="filesystem")


__all__ = ["LoadEnded", "LoadTimeout", "SlicedLoad", "Turn", "in_turns", "turn_settings"]
