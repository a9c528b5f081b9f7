# SPDX-License-Identifier: GPL-2.0-only
"""The result files: `run.json` and `cells/<id>.json`."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field

from fscale.model.bench import BenchOutput, CpuTimes, Mode, Plain, Strict, Time
from fscale.model.fault import Fault
from fscale.model.limits import MOST_CORES, MOST_WORKERS_PER_CPU
from fscale.model.simulation import Simulation

CpuControl = Literal["hotplug", "affinity"]
CpuType = Literal["core", "atom", "lowpower"]
CpuPlacement = Literal["packed", "spread"]
NO_FILESYSTEM = "none"  # the file system of control cells, which touch no file
NO_MEDIUM = "none"  # the medium of file systems that live in memory
UNKNOWN = "unknown"  # a name that the files of an imported run do not tell
WHATIF_SIDE = "free-"  # then the rank of the object whose sharing costs nothing
_CREW: dict[str, int | str] = {"workers_per_cpu": 1, "placement": "packed"}
Status = Literal["ok", "invalid", "error", "skipped", "interrupted"]


class CellKey(Strict):
    """The identity of a cell: every parameter that changes what is measured."""

    workload: Plain
    filesystem: Plain
    medium: Plain
    mode: Mode
    cores: int = Field(ge=1, le=MOST_CORES)
    repetition: int = Field(ge=1)
    workers_per_cpu: int = Field(
        default=1,
        ge=1,
        le=MOST_WORKERS_PER_CPU,
        description="workers pinned to each CPU under test",
    )
    placement: CpuPlacement = Field(
        default="packed", description="the CPUs that a core count takes, as in the suite"
    )
    duration: float = Field(
        gt=0,
        description="requested timed seconds; 1 for a simulated cell, whose windows count "
        "operations, and for an imported one whose file does not tell",
    )
    options: dict[Plain, int | Plain] = Field(default_factory=dict, description="workload options")
    side: Plain | None = Field(
        default=None,
        description="A or B in a paired comparison; free-N in a simulation that removes sharing of "
        "the N-th hottest object",
    )
    profile: Plain | None = Field(
        default=None, description="profiler of a profiling repetition, which is never scored"
    )

    @property
    def point(self) -> str:
        """The cell without its repetition: statistics are taken over the cells of one point."""
        # Defaults are left out, so that cells from before these fields existed keep their names.
        data = self.model_dump(exclude={"repetition", *_CREW}) | self.crew
        digest = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:8]
        parts = [self.workload, self.filesystem, self.medium, self.mode, f"{self.cores}c"]
        parts += [f"{self.workers_per_cpu}w"] if "workers_per_cpu" in self.crew else []
        parts += [self.placement] if "placement" in self.crew else []
        parts += [p for p in (self.side, self.profile) if p]
        return "-".join([*parts, digest])

    @property
    def crew(self) -> dict[str, int | str]:
        """How many workers a CPU has and where they are, as far as they are not the defaults."""
        chosen = {name: getattr(self, name) for name in _CREW}
        return {name: value for name, value in chosen.items() if value != _CREW[name]}

    @property
    def open_loop(self) -> bool:
        """Whether operations arrive at the option `rate`, and do not follow one another."""
        return bool(self.options.get("rate"))

    @property
    def variant(self) -> str:
        """The options, and the crew, by which points of a workload differ: "block=4096"."""
        return " ".join(f"{k}={v}" for k, v in [*sorted(self.options.items()), *self.crew.items()])

    @property
    def load(self) -> str:
        """The workload with its variant."""
        return f"{self.workload} {self.variant}".strip()

    @property
    def control(self) -> bool:
        """Whether it is a control cell, which measures the machine itself and is never scored."""
        return self.filesystem == NO_FILESYSTEM

    @property
    def whatif(self) -> bool:
        """Whether it is a cell of a what-if, which no file system can reach and is never scored."""
        return self.side is not None and self.side.startswith(WHATIF_SIDE)

    @property
    def id(self) -> str:
        """A readable name with a hash of the parameters, the same in every run."""
        return f"{self.point}-r{self.repetition}"


class Command(Strict):
    """A command that was executed; `seconds` is its wall time."""

    argv: list[str]
    seconds: float
    returncode: int


class Slice(Strict):
    """One turn of one side of a sliced pair, without the first tenth of the turn."""

    block: int = Field(description="number of the block of four turns, A B B A or B A A B, from 0")
    ops: int
    seconds: float = Field(
        description="time that a worker took on average for its part of the operations; 0 if the "
        "edges of the turn were not known precisely enough"
    )
    cpu_seconds: float = Field(description="CPU time of the workers")
    settle_seconds: float = Field(
        default=0,
        description="time to write back what the whole turn deferred; 0 if this was not done",
    )


class Mounted(Strict):
    """The mount that a cell worked on, as the kernel shows it."""

    fstype: Plain
    source: Plain = Field(description="the mounted device, or another source")
    root: Plain = Field(
        description="the directory of the file system that is mounted; / is the whole"
    )
    options: list[Plain] = Field(
        description="effective options, sorted, of the mount and of the file system; ext4: with "
        "defaults; overlay: those of the upper file system too, with the prefix `upper:`; options "
        "that name a path or a peer are left out"
    )


class Cell(Strict):
    """One measured cell. Statistics use only cells with `status == "ok"`."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    id: str
    key: CellKey
    status: Status
    reason: str | None = None
    fault: Fault | None = Field(
        default=None,
        description="whose fault an error is: filesystem and load are findings about the side "
        "that was measured, machine and user are not; null without an error, or if not recorded",
    )
    disturbed: str | None = Field(
        default=None,
        description="why load of others makes this figure unreliable; null if it does not",
    )
    replaces: str | None = Field(
        default=None,
        description="why this measurement replaced an earlier one, which is in replaced/; null if "
        "it is the first",
    )
    started: str = Field(description="UTC, ISO 8601; empty if it was not recorded")
    wall_seconds: float | None = Field(
        default=None,
        description="time of the whole cell, with mkfs, mount and set-up; null if not recorded",
    )
    unit: Plain = Field(default="ops", description="unit of the figure: ops, messages, MB, ...")
    ops: float = 0
    seconds: float = 0
    ops_per_second: float = 0
    cpu: CpuTimes | None = None
    own_cpu_seconds: float | None = Field(default=None, description="CPU time of the cell's cgroup")
    others_cpu_seconds: float | None = Field(
        default=None,
        description="CPU time of everything else on the CPUs under test, with kernel threads",
    )
    throttled_seconds: float | None = Field(
        default=None,
        description="time that a CPU quota throttled the cell's cgroup or one above it, summed "
        "over CPUs, with warm-up; null if no quota is counted or it was not recorded",
    )
    frequency_khz: int | None = Field(
        default=None,
        description="mean frequency of the CPUs under test while busy: from APERF and MPERF over "
        "the whole command, or from cpufreq near its end (extra.frequency_from says which); null "
        "if the machine does not report it",
    )
    thermal_throttled: int | None = Field(
        default=None,
        description="how often heat throttled a core or package under test during the cell: the "
        "largest of their counters; null if the machine does not count it",
    )
    watts: float | None = Field(
        default=None,
        description="mean power of all processor packages and their memory (RAPL) over the whole "
        "command, in watts; null if the machine does not report it to this user",
    )
    caches_dropped: bool | None = Field(
        default=None,
        description="whether page cache, dentries and inodes were dropped before the cell; null if "
        "not recorded",
    )
    cpu_control: CpuControl = "affinity"
    cpus: list[int] = Field(default_factory=list)
    commands: list[Command] = Field(default_factory=list)
    bench: BenchOutput | None = None
    latency: dict[str, Any] | None = Field(
        default=None,
        description="HdrHistogram (V2, base64) and quantiles in nanoseconds; quantiles are null if "
        "the histogram is empty or lacks more than 1% of the operations. In turns, those of the "
        "whole blocks, and the standard errors of the quantiles' logarithms (`errors`)",
    )
    geometry: dict[str, str] | None = Field(
        default=None,
        description="parameters that mkfs chose, as requested by the file system's TOML file; for "
        "an existing directory also block size and size in bytes",
    )
    mount: Mounted | None = Field(
        default=None, description="null if it was not recorded, or cannot be seen"
    )
    counts: dict[str, float] | None = Field(
        default=None,
        description="kernel tracepoints, or instructions, per operation, without set-up",
    )
    profiles: dict[str, str] = Field(
        default_factory=dict, description="profiler name -> path relative to the run directory"
    )
    slices: list[Slice] | None = Field(
        default=None,
        description="turns, if the sides of the pair were mounted at once and took turns",
    )
    simulation: Simulation | None = Field(
        default=None, description="set if the manycore simulator produced the cell"
    )
    extra: dict[str, Any] = Field(
        default_factory=dict, description="values of the application drivers and of accounting"
    )

    @property
    def end(self) -> str:
        """The status, and whose fault an error is: "error (machine)"."""
        return f"{self.status} ({self.fault})" if self.fault else self.status


class Cpu(Strict):
    """One logical CPU, from lscpu."""

    cpu: int
    core: int
    socket: int
    node: int | None = Field(description="NUMA node; null if not recorded")
    l3: int | None = Field(
        default=None, description="lowest CPU that shares its L3 cache; null if there is none"
    )
    type: CpuType | None = Field(
        default=None, description="PMU of the core on a hybrid x86 processor; null on others"
    )
    capacity: int | None = Field(
        default=None, description="cpu_capacity of the kernel, at most 1024; null if unknown"
    )
    max_mhz: float | None = Field(
        default=None, description="highest frequency that cpufreq reports; null if unknown"
    )


class KernelBuild(Strict):
    """The build of the kernel. Two builds of one release are two kernels."""

    version: str = Field(description="`uname -v`: number and time of the build")
    id: str | None = Field(description="GNU build id, hexadecimal")
    taint: int | None = Field(description="/proc/sys/kernel/tainted at the start")
    debug: list[str] = Field(description="enabled kernel options that reduce speed")
    debug_from: str = Field(
        description="file of the kernel configuration that shows `debug`; `signs` if there is none"
    )


class Tuning(Strict):
    """Settings of the machine that affect figures; null if it has no such setting."""

    turbo: bool | None
    idle_driver: str | None
    idle_governor: str | None
    idle_states: dict[str, bool] = Field(description="C-state -> whether every CPU may enter it")
    numa_balancing: str | None
    huge_pages: str | None = Field(description="transparent huge pages: always, madvise, never")
    shmem_huge_pages: str | None = Field(description="the same for tmpfs without huge=")
    preempt: str | None = Field(
        default=None,
        description="preemption model: none, voluntary, full, lazy, or rt; null if unknown",
    )
    preempt_from: str | None = Field(
        default=None,
        description="source of preempt; for PREEMPT_DYNAMIC only debugfs shows the current model",
    )
    sched_features: str | None = Field(default=None, description="/sys/kernel/debug/sched/features")
    lsms: list[str] | None = Field(default=None, description="enabled Linux security modules")
    lsm_state: dict[str, str] = Field(default={}, description="state of SELinux and AppArmor")
    sysctls: dict[str, str] = Field(
        default={}, description="sysctls of memory, writeback, scheduler and watchdogs, by name"
    )
    frequency_driver: str | None = Field(default=None, description="cpufreq scaling_driver")
    energy_preference: str | None = Field(
        default=None,
        description="energy_performance_preference of the CPUs, each distinct value once",
    )
    energy_bias: str | None = Field(
        default=None, description="energy_perf_bias of the CPUs, each distinct value once"
    )
    irq_affinity: str | None = Field(default=None, description="/proc/irq/default_smp_affinity")
    irqbalance: bool | None = Field(default=None, description="whether irqbalance is running")
    isolated_cpus: str | None = Field(default=None, description="CPUs of isolcpus=; empty for none")
    nohz_full_cpus: str | None = Field(
        default=None, description="CPUs of nohz_full=; empty for none"
    )
    rcu_nocbs_cpus: str | None = Field(default=None, description="rcu_nocbs= of the command line")
    workqueue_scope: str | None = Field(
        default=None, description="default_affinity_scope of unbound workqueues"
    )
    clocksource: str | None = None
    timer_slack_ns: str | None = Field(
        default=None, description="timer slack of the run's processes"
    )
    same_page_merging: str | None = Field(default=None, description="/sys/kernel/mm/ksm/run")
    multi_generation_lru: str | None = Field(
        default=None, description="/sys/kernel/mm/lru_gen/enabled"
    )
    zswap: str | None = Field(default=None, description="Y or N")

    @property
    def flat(self) -> dict[str, Any]:
        """The recorded settings by name, with `sysctls.NAME` and `lsm_state.NAME`."""
        found = self.model_dump(exclude_unset=True)
        for table in ("lsm_state", "sysctls"):
            for name, value in found.pop(table, {}).items():
                found[f"{table}.{name}"] = value
        return found


class Confinement(Strict):
    """The part of the machine that a container, or the cgroups of the run, leave to it."""

    cgroups: Literal["v1", "v2", "hybrid", "none"] = Field(description="mounted cgroup hierarchies")
    cpus: float | None = Field(
        description="the smallest CPU quota, in CPUs (cpu.max, cpu.cfs_quota_us); null if there "
        "is none"
    )
    cpus_found: float | None = Field(
        default=None,
        description="an estimate of a hidden CPU quota, in CPUs: a short spin on all CPUs was "
        "throttled",
    )
    memory_bytes: int | None = Field(
        description="the smallest limit (memory.max, memory.high, memory.limit_in_bytes); null if "
        "there is none"
    )
    swap_bytes: int | None = Field(description="the smallest memory.swap.max; null if none")
    cpuset: str | None = Field(description="CPUs of the run's cpuset; null if it cannot be read")
    namespaces: dict[str, bool | None] = Field(
        description="kind -> whether the run is in the initial namespace; null if unknown"
    )
    denied: dict[str, str] = Field(
        description="action that the run is not allowed (mount, hotplug, drop caches) -> why"
    )
    hidden: list[str] = Field(description="facts about load and limits that the run cannot read")

    @property
    def limits(self) -> dict[str, float | str | None]:
        """The limits that bound the figures, by name."""
        return {
            "cpus_limit": self.cpus,
            "memory_limit": self.memory_bytes,
            "swap_limit": self.swap_bytes,
            "cpuset": self.cpuset,
        }


class Machine(Strict):
    """The machine as it was when the run began."""

    hostname: str
    kernel: str = Field(description="`uname -r`")
    build: KernelBuild | None = Field(default=None, description="null if not recorded")
    kernel_cmdline: str
    architecture: str
    cpu_model: str
    memory_bytes: int = Field(ge=0, lt=1 << 63, description="0 if not recorded")
    topology: list[Cpu]
    cpu_order: list[int] = Field(
        description="CPUs in the order in which they are added to a measurement: by `placement`, "
        "without those of `kept_free`"
    )
    placement: CpuPlacement = Field(
        default="packed",
        description="packed: socket by socket; spread: from sockets, NUMA nodes and L3 caches in "
        "turn",
    )
    kept_free: list[int] = Field(default=[], description="CPUs that stay online and get no worker")
    governor: str | None
    tuning: Tuning | None = None
    confinement: Confinement | None = Field(default=None, description="null if not recorded")
    inherited: dict[str, str] = Field(
        default={},
        description="what the run got from its caller and loads inherit, unless it is plain: "
        "nice, scheduling, memory policy, limits of resources",
    )
    mitigations: dict[str, str]
    virtualization: str | None
    boots: list[str] | None = Field(
        default=None,
        description="the kernel's boot_id of each boot in which cells were measured, in order; "
        "null if one was not recorded",
    )
    guest: dict[str, Any] | None = Field(
        default=None,
        description="set if the cells were measured in a guest that fscale started; `accelerator` "
        "is kvm, tcg, tcg-icount (instructions are counted) or simulated",
    )

    @property
    def known(self) -> bool:
        """Whether the run names the machine; one that was imported may not."""
        return self.hostname != UNKNOWN

    @property
    def usable_memory(self) -> int:
        """Bytes of memory that the run may use; sizes given as a share refer to this."""
        limit = self.confinement.memory_bytes if self.confinement else None
        return self.memory_bytes if limit is None else min(self.memory_bytes, limit)

    @property
    def kind(self) -> str:
        """How the figures were produced: "native", or the accelerator of the guest."""
        return str(self.guest.get("accelerator", "unknown")) if self.guest else "native"

    @property
    def simulated(self) -> bool:
        """Whether the figures come from the manycore simulator."""
        return self.kind == "simulated"

    @property
    def labels(self) -> bool:
        """Whether SELinux or AppArmor may have labelled files; not every kernel has one."""
        if self.simulated:
            return "lsm=none" not in self.kernel_cmdline.split()
        return self.tuning is not None and bool(self.tuning.lsm_state)

    @property
    def host(self) -> str:
        """The name of the machine itself, also if the cells were measured in a guest of it."""
        return str(self.guest.get("host", self.hostname)) if self.guest else self.hostname

    @property
    def identity(self) -> str:
        """The identity of the machine; a history contains figures of one identity only."""
        return (
            f"{self.host} ({self.cpus}, {self.kind})"
            if self.guest
            else f"{self.host} ({self.cpus})"
        )

    @property
    def cpus(self) -> str:
        """Number and model of the CPUs; an imported run may not record them."""
        return f"{len(self.cpu_order)} x {self.cpu_model}" if self.cpu_order else "unknown CPUs"

    @property
    def cores(self) -> int:
        """Physical cores with an online CPU; fewer than CPUs if SMT is on."""
        return len({(cpu.socket, cpu.core) for cpu in self.topology})

    @property
    def max_mhz(self) -> float | None:
        """The highest frequency of its fastest CPU; None if no CPU has one."""
        return max((cpu.max_mhz for cpu in self.topology if cpu.max_mhz), default=None)


def all_boots(machines: Iterable[Machine]) -> list[str] | None:
    """Join the boots of several machines, in order; None if one did not record its boots."""
    boots: dict[str, None] = {}
    for machine in machines:
        if machine.boots is None:
            return None
        boots |= dict.fromkeys(machine.boots)
    return list(boots)


class Run(Strict):
    """`run.json`: everything about a run except its cells."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    id: str
    started: Time
    finished: Time | None = None
    state: Literal["running", "complete", "interrupted", "failed"]
    fscale_version: str
    revision: str | None = Field(
        description="commit of fscale, with `-dirty` if its files were changed"
    )
    command: list[str]
    seed: int
    suite: dict[str, Any] = Field(
        description="the validated suite, with the overrides of the command line"
    )
    filesystems: dict[str, dict[str, Any]]
    media: dict[str, dict[str, Any]]
    machine: Machine
    versions: dict[str, str]
    workloads: list[dict[str, Any]] = Field(description="descriptors as in `fscale-bench --list`")
    planned_cells: int
    warnings: list[str] = Field(default_factory=list)
    imported: str | None = Field(
        default=None,
        description="the files of another program from which the run was imported; what they do "
        "not contain is empty, null or 0",
    )
    loads: dict[str, list[str]] = Field(
        default={},
        description="in an imported run: workload -> its options that no cell's key has, because "
        "all its cells share them, as name=value",
    )

    @property
    def state_shown(self) -> str:
        """The state for a reader: "running" is also what a killed run said last."""
        return "unfinished" if self.state == "running" else self.state
