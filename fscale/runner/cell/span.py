# SPDX-License-Identifier: GPL-2.0-only
"""Accounts for the CPU time of a span of time in which loads run on the same CPUs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fscale.model.load import Outcome, Target
from fscale.runner.cell import accounting
from fscale.runner.cell.accounting import Others, Snapshot


@dataclass(frozen=True)
class Span:
    """What was counted at the beginning and at the end."""

    targets: Sequence[Target]
    before: Snapshot
    after: Snapshot
    used: float
    """CPU seconds of the loads' cgroups; 0 without cgroups"""

    @property
    def seconds(self) -> float:
        """The length."""
        return self.after.when - self.before.when

    def judge(self, outcome: Outcome | None = None) -> tuple[float | None, str | None]:
        """Return how many CPUs others took, None if unknown, and why that disturbed the loads.

        `outcome` is that of the only load. Without a cgroup it knows the load's own CPU time; that
        of several loads is unknown then, which matters if not all processes are visible.
        """
        if outcome is None and not self._grouped and not self.after.sees_all:
            return None, None
        others = self._estimate(outcome)
        limit = accounting.disturbance_limit(len(self.targets[0].cpus), self.seconds)
        return round(others.most, 4), others.disturb(limit)

    @property
    def _grouped(self) -> bool:
        return all(target.cgroup for target in self.targets)

    def _estimate(self, outcome: Outcome | None) -> Others:
        before, after, cpus = self.before, self.after, self.targets[0].cpus
        affected = accounting.affected_cpus(cpus)
        if outcome is None or self._grouped:
            rest = None
            if self._grouped:
                own = self.used + after.runner - before.runner
                rest = accounting.busy_seconds(before, after, affected) - own
            times = accounting.between(before, after, cpus)
            return accounting.estimate_others(rest, times, self.seconds, before, after, affected)
        # The load's own CPU time is known for the timed part only.
        rest = outcome.others_cpu_seconds
        if rest is not None:
            siblings = [cpu for cpu in affected if cpu not in cpus]
            share = outcome.seconds / self.seconds
            rest += accounting.busy_seconds(before, after, siblings) * share
        return accounting.estimate_others(
            rest, outcome.cpu, outcome.seconds, before, after, affected
        )


class Watch:
    """Begins a span."""

    def __init__(self, *targets: Target) -> None:
        self._targets = targets
        self._cgroups = [target.cgroup for target in targets]
        self._before = accounting.snapshot(*self._cgroups)
        self._used = self._used_now()

    def end(self) -> Span:
        """End the span."""
        after = accounting.snapshot(*self._cgroups)
        return Span(self._targets, self._before, after, self._used_now() - self._used)

    def _used_now(self) -> float:
        return sum(_cgroup_seconds(group) for group in self._cgroups if group)


def _cgroup_seconds(cgroup: Path) -> float:
    first = (cgroup / "cpu.stat").read_text().splitlines()[0]
    return int(first.removeprefix("usage_usec ")) / 1e6
