# SPDX-License-Identifier: GPL-2.0-only
"""The protocol of a load: a program that a cell can run and measure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fscale.model.bench import BenchOutput, CpuTimes, Descriptor
from fscale.model.fault import Fault
from fscale.model.results import CellKey, Status

COMM = "fscale-run"  # the name of a worker while it executes operations


@dataclass(frozen=True)
class Target:
    """The directory, CPUs and limits that a load runs with."""

    key: CellKey
    directory: Path  # an empty directory in the file system under test
    cpus: list[int]
    seed: int
    space: int  # bytes that the load may fill
    scratch: Path  # an empty directory outside of it, for configuration, logs and raw output
    cgroup: Path | None
    partitions: int = 1  # from 2 on, the empty directories are 0/work, ... below `directory`
    counters: tuple[str, ...] = ()  # files of the file system that each contain a growing number


@dataclass(frozen=True)
class LoadSettings:
    """Settings of a suite that are not part of a cell's key. Times are in seconds."""

    warmup: float
    min_window: float | None = None
    interval: float | None = None
    max_stock: int | None = None
    latency: bool = False
    slice: float | None = None
    """seconds per turn; the load works only while it has a turn"""
    settle: bool = False
    """whether each turn ends with a syncfs()"""


@dataclass
class Outcome:
    """The result of a load. `ops` and `seconds` cover the timed part only."""

    status: Status
    reason: str | None = None
    fault: Fault = "load"
    """whose fault it is if the status is error"""
    unit: str = "ops"
    ops: float = 0
    seconds: float = 0
    cpu: CpuTimes | None = None  # None: the runner accounts over the whole command
    own_cpu_seconds: float | None = None
    others_cpu_seconds: float | None = None
    throttled_seconds: float | None = None  # by a CPU quota; None if nothing counts it
    frequency_khz: int | None = None  # of the CPUs under test; None if unknown
    thermal_throttled: int | None = None  # times; None if nothing counts them
    watts: float | None = None  # of processors and memory; None if unknown
    bench: BenchOutput | None = None
    latency: dict[str, Any] | None = None
    turn_latencies: Mapping[int, Mapping[int, int]] | None = None
    """number of the turn -> nanoseconds -> operations; None if not recorded"""
    extra: dict[str, Any] = field(default_factory=dict)


class Load(Protocol):
    """A program that works in a file system and reports how much it did.

    For each cell the runner makes a fresh file system, takes the CPUs that are not under test
    offline, and then calls, in this order:

    1. `prepare(target, run)`: writes configuration files and makes what the load works on.
       `run(argv)` executes a command to its end, records it in the cell and raises FscaleError
       when it fails. This part is not timed.
    2. `command(target, sync)`: returns the argv to start.
    3. `parse(target, returncode, stdout, stderr)`: turns the output into an Outcome. It must
       not raise for a load that failed: that is an Outcome with status "error" and a reason.

    A load with `synced = True` gets two file descriptors `sync = (read, write)`: it joins
    `target.cgroup` by itself, writes "ready\\n" to `write` when its set-up is done, and starts the
    timed part after it has read one byte from `read`. Profilers attach in between. For any
    other load `sync` is None: it is started in the cgroup, bound to `target.cpus`, and profilers
    attach just before; everything it does counts as timed.

    With `named = True` each worker is named COMM while it is timed, and profilers look at threads
    of that name. With False they look at all threads of `target.cgroup`; the process that `command`
    starts is then named COMM during the timed part.

    With `sliced = True`, and a slice in the settings, the load takes a turn for each byte that it
    reads, and answers with "OPS SECONDS CPU SETTLED END"; it ends at the end of its input.

    With `oversubscribes = True` it starts `target.key.workers_per_cpu` workers on each CPU; any
    other load has one number of workers only, and suites that ask for another are refused.

    `missing()` says which tool the machine lacks and what to install; such cells are skipped.
    """

    descriptor: Descriptor
    synced: bool
    named: bool
    sliced: bool
    oversubscribes: bool
    user: str | None
    """the user as which it works in the directory, if fscale runs as root; None: as root"""

    def missing(self) -> str | None:
        """Return why the load cannot run here, and what to install; None if it can run."""
        ...

    def version(self) -> str | None:
        """Return the version of its program; None if there is none to be had."""
        ...

    def prepare(self, target: Target, run: Callable[[list[str]], str]) -> None:
        """Set up the load; this is not timed."""
        ...

    def command(
        self, target: Target, settings: LoadSettings, sync: tuple[int, int] | None
    ) -> list[str]:
        """Return the argv to start."""
        ...

    def parse(self, target: Target, returncode: int, stdout: str, stderr: str) -> Outcome:
        """Return the outcome from the exit code and the output."""
        ...
