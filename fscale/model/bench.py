# SPDX-License-Identifier: GPL-2.0-only
"""What one run of the C microbenchmark prints: the JSON contract with `microbench/`."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

End = Literal["time", "exhausted", "no_space", "error", "interrupted"]
Mode = Literal["buffered", "direct", "dontcache"]


class Strict(BaseModel):
    """A model that refuses unknown keys, so that a misspelt key is an error and not a default."""

    model_config = ConfigDict(extra="forbid")


def _plain(text: str) -> str:
    if not text.isprintable():
        raise ValueError("has characters that cannot be printed")
    return text


Plain = Annotated[str, AfterValidator(_plain)]
"""a name that goes into titles and onto terminals; results may be a stranger's"""


def _time(text: str) -> str:
    datetime.fromisoformat(text)
    return text


Time = Annotated[str, AfterValidator(_time)]
"""ISO 8601"""


class OptionHelp(Strict):
    """One option of a workload, as its C descriptor declares it."""

    name: str
    default: int | str
    help: str
    choices: list[str] = []


class Descriptor(Strict):
    """A workload as its C descriptor declares it (`fscale-bench --list` prints a list of these)."""

    id: Plain
    title: Plain
    operation: Plain = Field(description="one operation, as in the paper's Table 2")
    paper: str | None = Field(description="row of FxMark's Table 2, or where it comes from")
    type: Literal["data", "metadata"]
    action: Literal["read", "write"]
    sharing: Literal["low", "medium", "high"]
    contention: str = Field(description="the expected contention, as in Table 2")
    setup: str = Field(description="what exists before the timed window")
    consumes: bool = Field(description="the operation uses up a stock or a budget")
    background: bool = Field(description="one writer process runs beside the readers")
    puts_off: bool = Field(
        default=False, description="leaves work for later that would fall into another's turns"
    )
    defers_frees: bool = Field(
        default=False, description="frees memory after an RCU grace period, also another's turns"
    )
    apart: bool = Field(default=False, description="measured only where it is named")
    control: bool = Field(
        default=False, description="touches no file: shows what the machine itself gives"
    )
    min_cores: int
    partitions: bool = Field(default=False, description="can be spread over several file systems")
    modes: list[Mode]
    options: list[OptionHelp]


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
        """All of it: CPUs under test x timed seconds, up to the kernel's tick."""
        return (
            self.user + self.system + self.idle + self.iowait + self.irq + self.softirq + self.steal
        )


class Window(Strict):
    """One timed window, common to all workers; `ops` has one count a worker."""

    start_ns: int = Field(description="CLOCK_MONOTONIC, nanoseconds")
    seconds: float
    ops: list[int]
    end: End


class Worker(Strict):
    """One worker process. CPU times are its own, over the timed windows."""

    id: int
    cpu: int
    ops: int
    user_seconds: float
    system_seconds: float
    voluntary_switches: int
    involuntary_switches: int


class Background(Strict):
    """The writer beside the readers of a `_bg` workload, in the readers' windows."""

    cpu: int
    ops: int = Field(description="writes or renames")
    ops_per_second: float | None = Field(
        default=None, description="null in results that are older than this key"
    )


class Intervals(Strict):
    """Operations of all workers in consecutive slices of the timed windows."""

    seconds: list[float]
    ops: list[int]


class Latency(Strict):
    """Histograms of the operations' latencies, one a worker; each list has an entry for each."""

    files: list[str] = Field(
        description="pairs of little-endian uint64: the least nanoseconds of a bucket, its count; "
        "in older results uint32 nanoseconds of each operation"
    )
    samples: list[int] = Field(description="operations that are in them")
    dropped: list[int] = Field(description="operations of the timed windows that are not")


class BenchError(Strict):
    """The system call that failed, and where."""

    call: str
    path: str | None
    errno: int
    name: str
    message: str
    worker: int | None


class Stock(Strict):
    """How the stock of a consuming workload was sized."""

    unit: str = Field(description="file, block, ...")
    steady: bool = Field(default=False, description="the units stay, and nothing is used up")
    per_worker: int
    wanted: int = Field(
        description="what the pilot's rate, or the option keep, asks for, before the bounds"
    )
    bound: Literal["pilot", "space", "inodes", "maximum"] = Field(
        description="pilot: no bound, it is as wanted"
    )
    pilot_ops_per_second: float | None = Field(description="null where there was no pilot")
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
    ops: int = Field(description="of all workers, inside the timed windows only")
    executed_ops: int = Field(
        description="of all workers while they bore the name fscale-run: warm-up and edges too; "
        "the divisor for anything that was traced by that name"
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
        description="CPU time of the cell's cgroup over the windows, where one was given"
    )
    busy_cpu_seconds: float = Field(
        description="CPU time of everything on the CPUs under test over the windows, steal left out"
    )
    stock: Stock | None
    latency: Latency | None
    counters: dict[str, int] = Field(
        default={},
        description="by how much the file system's own counters grew from the first window to the "
        "end of the last, by the names of their files",
    )
    error: BenchError | None
