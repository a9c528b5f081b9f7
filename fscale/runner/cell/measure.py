# SPDX-License-Identifier: GPL-2.0-only
"""Runs the load of one cell in a mounted file system."""

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fscale.model.load import Load, LoadSettings, Outcome, Target
from fscale.model.results import CellKey
from fscale.runner.cell import accounting, power, speed
from fscale.runner.cell.child import Child, LoadTimeout
from fscale.runner.cell.span import Span, Watch
from fscale.runner.machine import confinement
from fscale.runner.machine.changes import Cgroup
from fscale.runner.profilers.context import CellProfiler, Context
from fscale.system.executor import Executor


@dataclass(frozen=True)
class Limits:
    """Time limits of a load in seconds, and an estimate of a hidden CPU quota in CPUs."""

    setup: float
    margin: float
    cpus: float | None = None


def seed_of(key: CellKey, seed: int) -> int:
    """Return the random seed of a cell's load.

    It is the same for all file systems and for both sides of a comparison.
    """
    text = f"{seed}:{key.workload}:{key.repetition}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])


def measure(
    load: Load,
    target: Target,
    settings: LoadSettings,
    limits: Limits,
    do: Executor,
    profiler: CellProfiler | None,
    context: Context,
) -> tuple[Outcome, str | None]:
    """Run the load once, bounded in time, and account for CPU time.

    Returns the outcome, and why the cell is disturbed or None. A load that hangs or fails gives an
    outcome with status "error"; if its processes cannot be killed, `extra["stuck"]` says where in
    the kernel they hang.
    """
    load.prepare(target, do.run)
    if do.dry:
        argv = load.command(target, settings, (3, 4) if load.synced else None)
        do.run(argv if load.synced else _bound(argv, target))
        return Outcome("skipped", "dry run"), None
    cgroup = Cgroup(path=target.cgroup) if target.cgroup else None
    child = Child(do, target.scratch, cgroup, load.synced)
    disturbed = None
    try:
        outcome, disturbed = _run(child, load, target, settings, limits, profiler, context)
    except LoadTimeout as error:
        outcome = Outcome("error", f"{error}; it was killed", error.fault)
    finally:
        left = child.end()
    if left:
        outcome = Outcome("error", f"the load hangs in the kernel: {'; '.join(left)}", "filesystem")
        outcome.extra["stuck"] = left
    return outcome, disturbed


def _run(
    child: Child,
    load: Load,
    target: Target,
    settings: LoadSettings,
    limits: Limits,
    profiler: CellProfiler | None,
    context: Context,
) -> tuple[Outcome, str | None]:
    argv = load.command(target, settings, child.sync)
    if load.synced:
        child.start(argv)
        if not child.wait_ready(limits.setup):
            return load.parse(target, *child.wait(10)), None
    quotas = confinement.Quotas(hidden=limits.cpus)
    watch = Watch(target)
    timed = settings.warmup + target.key.duration
    with (
        _attached(profiler, replace(context, pid=child.pid, named=load.named)),
        speed.measure_speed(target.cpus, timed) as ran,
        power.measure_power() as took,
    ):
        if load.synced:
            child.go()
        else:
            child.start(_bound(argv, target))
        result = child.wait(timed + limits.margin)
    span = watch.end()
    outcome = load.parse(target, *result)
    ran.enter(outcome)
    took.enter(outcome)
    _account(outcome, target, span)
    quotas.judge(outcome, len(target.cpus), span.seconds)
    outcome.extra["others_cpus"], disturbed = span.judge(outcome)
    return outcome, disturbed


@contextlib.contextmanager
def _attached(profiler: CellProfiler | None, context: Context) -> Iterator[None]:
    if profiler is None:
        yield
        return
    profiler.start(context)
    try:
        yield
    finally:
        profiler.stop()


def _bound(argv: list[str], target: Target) -> list[str]:
    """Wrap an argv so that it runs on the cell's CPUs and in its cgroup.

    This is for loads that do not join the cgroup themselves.
    """
    argv = ["taskset", "--cpu-list", ",".join(map(str, target.cpus)), *argv]
    if target.cgroup:
        join = 'echo $$ > "$0" && exec "$@"'
        argv = ["/bin/sh", "-c", join, str(target.cgroup / "cgroup.procs"), *argv]
    return argv


def _account(outcome: Outcome, target: Target, span: Span) -> None:
    """Add what the load does not report, over the whole time of the command."""
    before, after = span.before, span.after
    if outcome.cpu is None:
        outcome.cpu = accounting.between(before, after, target.cpus)
        idle = outcome.cpu.idle + outcome.cpu.iowait + outcome.cpu.steal
        if target.cgroup:
            outcome.own_cpu_seconds = span.used
            outcome.others_cpu_seconds = max(0.0, outcome.cpu.total - idle - span.used)
    outcome.extra["accounted_seconds"] = round(span.seconds, 4)
    outcome.extra["kernel_threads_cpu_seconds"] = round(accounting.kernel_seconds(before, after), 3)
    outcome.extra["other_processes_cpu_seconds"] = round(
        after.other_processes - before.other_processes, 3
    )
