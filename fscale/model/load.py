# SPDX-License-Identifier: GPL-2.0-only
"""What a cell can run: the protocol of a load."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fscale.model.bench import BenchOutput, CpuTimes, Descriptor
from fscale.model.results import CellKey, Status

COMM = "fscale-run"  # the name that a worker bears while its gate is open


@dataclass(frozen=True)
class Target:
    """Where and on what a load runs."""

    key: CellKey
    directory: Path  # an empty one in the file system under test
    cpus: list[int]
    seed: int
    space: int  # bytes that the load may fill
    scratch: Path  # an empty directory outside of it, for configuration, logs and raw output
    cgroup: Path | None
    partitions: int = 1  # from 2 on the empty ones are 0/work, 1/work, ... below `directory`
    counters: tuple[str, ...] = ()  # of the file system: files with a growing number each


@dataclass(frozen=True)
class Settings:
    """What a suite says about the way of measuring, beyond what is in the cell's key."""

    warmup: float
    min_window: float | None = None
    interval: float | None = None
    max_stock: int | None = None
    latency: bool = False
    slice: float | None = None
    """seconds of a turn: the load works only when it is asked, again and again"""
    settle: bool = False
    """whether each turn ends with a syncfs()"""


@dataclass
class Outcome:
    """What a load achieved. `ops` and `seconds` are those of the timed part only."""

    status: Status
    reason: str | None = None
    unit: str = "ops"
    ops: float = 0
    seconds: float = 0
    cpu: CpuTimes | None = None  # None: the runner accounts over the whole command
    own_cpu_seconds: float | None = None
    others_cpu_seconds: float | None = None
    throttled_seconds: float | None = None  # by a CPU quota; None where none is counted
    frequency_khz: int | None = None  # of the CPUs under test; None where nothing says it
    thermal_throttled: int | None = None  # times; None where nothing counts them
    bench: BenchOutput | None = None
    latency: dict[str, Any] | None = None
    extra: dict[str, Any] = field(default_factory=dict)


class Load(Protocol):
    """Something that works in a file system and says how much it did.

    For each cell the runner makes a fresh file system, takes the CPUs that are not under test
    offline, and then calls, in this order:

    1. `prepare(target, run)`: writes configuration files and makes what the load works on.
       `run(argv)` executes a command to its end, records it in the cell and raises FscaleError
       when it fails. What is done here is not timed.
    2. `command(target, sync)`: returns the argv to start.
    3. `parse(target, returncode, stdout, stderr)`: turns the output into an Outcome. It must
       not raise for a load that failed: that is an Outcome with status "error" and a reason.

    A load with `synced = True` gets two file descriptors `sync = (read, write)`: it joins
    `target.cgroup` by itself, writes "ready\\n" to `write` when its set-up is done, and starts the
    timed part after it has read one byte from `read`. Profilers are attached in between. For any
    other load `sync` is None: it is started in the cgroup, bound to `target.cpus`, and profilers
    are attached just before; everything it does counts as timed.

    With `named = True` each worker bears the name COMM while it is timed, and profilers
    look at those. With False they look at all threads of `target.cgroup`, and it is the process
    that `command` starts that bears this name, from the beginning of the timed part to its end.

    With `sliced = True`, and a slice among the settings, the load takes a turn for each byte that
    it reads, and answers with "OPS SECONDS CPU END"; it ends when there is nothing more to read.

    `missing()` says which tool the machine lacks and what to install; such cells are skipped.
    """

    descriptor: Descriptor
    synced: bool
    named: bool
    sliced: bool

    def missing(self) -> str | None:
        """Why the load cannot run here; None when it can."""
        ...

    def prepare(self, target: Target, run: Callable[[list[str]], str]) -> None:
        """Set up, untimed."""
        ...

    def command(
        self, target: Target, settings: Settings, sync: tuple[int, int] | None
    ) -> list[str]:
        """The argv to start."""
        ...

    def parse(self, target: Target, returncode: int, stdout: str, stderr: str) -> Outcome:
        """What came of it."""
        ...
