# SPDX-License-Identifier: GPL-2.0-only
"""The JSON that one run of the C microbenchmark prints: the contract with `microbench/`."""

import re
from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

_NUMBER = re.compile(r"-?[0-9]{1,18}")
End = Literal["time", "exhausted", "no_space", "error", "interrupted"]
Mode = Literal["buffered", "direct", "dontcache"]


class Strict(BaseModel):
    """A model that refuses unknown keys, so that a misspelt key is an error and not a default."""

    model_config = ConfigDict(extra="forbid")


def _plain(text: str) -> str:
    if not text.isprintable():
        raise ValueError(
            f"{text[:60]!r} contains characters that cannot be printed; use printable ones only"
        )
    return text


Plain = Annotated[str, AfterValidator(_plain)]
"""A name that is shown in titles and on terminals. Results may come from a stranger, so it must not
contain escape sequences."""


def _time(text: str) -> str:
    datetime.fromisoformat(text)
    return text


Time = Annotated[str, AfterValidator(_time)]
"""A time in ISO 8601."""


class OptionHelp(Strict):
    """One option of a workload, as its C descriptor declares it.

    It takes one of its choices, a whole number if it has a least one, or any text.
    """

    name: str
    default: int | str
    help: str
    choices: list[str] = []
    least: int | None = Field(default=None, description="the least number that it takes")
    most: int | None = Field(default=None, description="the greatest number that it takes")
    multiple_of: int | None = Field(default=None, description="what divides each number")

    def accepts(self, value: int | str) -> bool:
        """Whether it can have this value."""
        if self.choices:
            return str(value) in self.choices
        if self.least is None:
            return True
        if not _NUMBER.fullmatch(str(value)):
            return False
        number = int(value)
        return (
            self.least <= number
            and (self.most is None or number <= self.most)
            and number % (self.multiple_of or 1) == 0
        )

    def refusal(self, value: int | str) -> str:
        """What to tell a user whose value it does not accept."""
        kind = f"a multiple of {self.multiple_of}" if self.multiple_of else "a whole number"
        if self.choices:
            takes = " or ".join(self.choices)
        elif self.most is None:
            takes = f"{kind}, {self.least} or more"
        else:
            takes = f"{kind} from {self.least} to {self.most}"
        return f"option {self.name} cannot be {str(value) or 'empty'}; give {takes}"


class Descriptor(Strict):
    """A workload as its C descriptor declares it (`fscale-bench --list` prints a list of these)."""

    id: Plain
    title: Plain
    operation: Plain = Field(description="one operation, as in FxMark's Table 2")
    paper: str | None = Field(
        description="row of FxMark's Table 2, or another source of the workload"
    )
    type: Literal["data", "metadata"]
    action: Literal["read", "write"]
    sharing: Literal["low", "medium", "high"]
    contention: str = Field(description="the expected contention, as in FxMark's Table 2")
    setup: str = Field(description="what exists when the timed window begins")
    consumes: bool = Field(description="each operation uses up a part of a stock or of a budget")
    background: bool = Field(description="a writer process runs beside the readers")
    puts_off: bool = Field(
        default=False,
        description="defers work that would otherwise run in the turns of another workload",
    )
    defers_frees: bool = Field(
        default=False,
        description="frees memory after an RCU grace period, possibly in another workload's turns",
    )
    apart: bool = Field(
        default=False, description="measured only if it is named; `all` does not include it"
    )
    control: bool = Field(
        default=False, description="touches no file: measures how the machine itself scales"
    )
    mounts: str | None = Field(
        default=None,
        description="the kernel's file system, perhaps a module, that the workload itself mounts",
    )
    min_cores: int
    least_seconds: float = Field(
        default=0.0, description="a shorter duration is lengthened to this many seconds"
    )
    partitions: bool = Field(default=False, description="can be spread over several file systems")
    modes: list[Mode]
    options: list[OptionHelp]
    definition: dict[str, str] | None = Field(
        default=None,
        description="file name -> content of the files that define a load of a user's own",
    )


class CpuTimes(Strict):
    """CPU time in seconds, summed over the CPUs under test and over the timed windows."""

    user: float
    system: float
    idle: float
    iowait: float
    irq: float
    softirq: float
    steal: float

    @property
    def total(self) -> float:
        """The sum of all fields: CPUs under test x timed seconds, to the precision of the tick."""
        return (
            self.user + self.system + self.idle + self.iowait + self.irq + self.softirq + self.steal
        )


class Window(Strict):
    """One timed window, common to all workers; `ops` has one count per worker."""

    start_ns: int = Field(description="CLOCK_MONOTONIC, nanoseconds")
    seconds: float
    ops: list[int]
    end: End


class Worker(Strict):
    """One worker process, with its own CPU times over the timed windows."""

    id: int
    cpu: int
    ops: int
    user_seconds: float
    system_seconds: float
    voluntary_switches: int
    involuntary_switches: int


class Background(Strict):
    """The writer that runs beside the readers of a `_bg` workload, during their windows."""

    cpu: int
    ops: int = Field(description="writes or renames")
    ops_per_second: float | None = Field(
        default=None, description="null in results that were written before this key existed"
    )


class Intervals(Strict):
    """Operations of all workers in consecutive slices of the timed windows."""

    seconds: list[float]
    ops: list[int]


class Latency(Strict):
    """Latency histograms of the operations; each list has one entry per worker."""

    files: list[str] = Field(
        description="files of little-endian uint64 pairs: the lower bound of a bucket in "
        "nanoseconds, and its count; in older results the uint32 nanoseconds of each operation"
    )
    samples: list[int] = Field(description="operations that the histogram counts")
    dropped: list[int] = Field(description="operations of the timed windows that it does not count")
    turns: str | None = Field(
        default=None,
        description="in turns: file of little-endian uint64 triples: the number of the turn, the "
        "lower bound of a bucket, and its count of all workers; null without turns",
    )


class BenchError(Strict):
    """The system call that failed, the path and the worker it failed for, and its errno."""

    call: str
    path: str | None
    errno: int
    name: str
    message: str
    worker: int | None


class Stock(Strict):
    """How the stock of a consuming workload was sized."""

    unit: str = Field(description="file, block, ...")
    steady: bool = Field(
        default=False,
        description="operations leave the units in place, so the stock is not used up",
    )
    per_worker: int
    wanted: int = Field(
        description="units per worker that the pilot's rate, or the option keep, calls for, before "
        "bounds apply"
    )
    bound: Literal["pilot", "space", "inodes", "maximum"] = Field(
        description="what bounded the stock; pilot: nothing did, it is as large as wanted"
    )
    pilot_ops_per_second: float | None = Field(description="null if no pilot ran")
    restocks: int


class BenchOutput(Strict):
    """The one JSON object that `fscale-bench` prints."""

    schema_: Literal[1] = Field(alias="schema")
    workload: str
    mode: Mode
    options: dict[str, int | str]
    seed: int
    status: Literal["ok", "invalid", "error", "interrupted"]
    reason: str | None
    end: End
    ops: int = Field(description="operations of all workers inside the timed windows")
    executed_ops: int = Field(
        description="operations of all workers while they were named fscale-run, which includes "
        "the warm-up and the edges of the windows; divide by this what was traced by that name"
    )
    seconds: float = Field(description="sum of the timed windows")
    ops_per_second: float
    setup_seconds: float
    warmup_seconds: float
    clock: str
    cpus: list[int]
    windows: list[Window]
    workers: list[Worker]
    background: Background | None
    intervals: Intervals
    cpu: CpuTimes
    cgroup_cpu_seconds: float | None = Field(
        description="CPU time of the cell's cgroup over the windows; null if no cgroup was given"
    )
    busy_cpu_seconds: float = Field(
        description="CPU time that everything used on the CPUs under test over the windows, "
        "without steal"
    )
    stock: Stock | None
    latency: Latency | None
    backlog: int | None = Field(
        default=None,
        description="operations of the option rate that arrived before a window ended and had not "
        "begun then, summed over windows and workers; null without that option",
    )
    counters: dict[str, int] = Field(
        default={},
        description="name of a counter file of the file system -> by how much the counter grew "
        "from the start of the first window to the end of the last",
    )
    error: BenchError | None
