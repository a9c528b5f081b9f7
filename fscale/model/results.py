# SPDX-License-Identifier: GPL-2.0-only
"""The result files: `run.json` and `cells/<id>.json`."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field

from fscale.model.bench import BenchOutput, CpuTimes, Mode, Plain, Strict, Time
from fscale.model.simulation import Simulation

MOST_CORES = 1 << 16  # eight times what Linux can be built for
Control = Literal["hotplug", "affinity"]
CpuType = Literal["core", "atom", "lowpower"]
NO_FILESYSTEM = "none"  # of a control, which touches no file
Status = Literal["ok", "invalid", "error", "skipped", "interrupted"]


class CellKey(Strict):
    """What identifies a cell: every parameter that changes what is measured."""

    workload: Plain
    filesystem: Plain
    medium: Plain
    mode: Mode
    cores: int = Field(ge=1, le=MOST_CORES)
    repetition: int = Field(ge=1)
    duration: float = Field(
        gt=0,
        description="timed seconds asked for; 1 of a simulated cell, whose windows are by count",
    )
    options: dict[Plain, int | Plain] = Field(default_factory=dict, description="workload options")
    side: Plain | None = Field(
        default=None,
        description="A or B of a paired comparison; free-N where a simulation asks what if the "
        "N-th of the hottest objects were not shared",
    )
    profile: Plain | None = Field(default=None, description="a profiling repetition, never scored")

    @property
    def point(self) -> str:
        """The cell without its repetition: the group that a statistic is taken over."""
        data = self.model_dump(exclude={"repetition"})
        digest = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:8]
        parts = [self.workload, self.filesystem, self.medium, self.mode, f"{self.cores}c"]
        parts += [p for p in (self.side, self.profile) if p]
        return "-".join([*parts, digest])

    @property
    def control(self) -> bool:
        """Whether it shows what the machine gives, beside the cells of a run; never scored."""
        return self.filesystem == NO_FILESYSTEM

    @property
    def id(self) -> str:
        """Stable across runs: a readable name and a hash of the parameters."""
        return f"{self.point}-r{self.repetition}"


class Command(Strict):
    """A command as it was executed."""

    argv: list[str]
    seconds: float
    returncode: int


class Slice(Strict):
    """One turn of a side of a sliced pair, without its first tenth."""

    block: int = Field(description="of four turns, A B B A or B A A B, from 0")
    ops: int
    seconds: float = Field(
        description="that so many operations take at the workers' rates; 0 where the edges were "
        "not known well enough"
    )
    cpu_seconds: float = Field(description="of the workers")
    settle_seconds: float = Field(
        default=0,
        description="that writing out took what the whole turn put off; 0 where nothing did",
    )


class Mounted(Strict):
    """The mount that a cell worked on, as the kernel showed it."""

    fstype: Plain
    source: Plain = Field(description="a device, or what else is mounted")
    root: Plain = Field(description="the directory of the file system that is mounted; / is all")
    options: list[Plain] = Field(
        description="in effect, sorted: of the mount and of the file system, of ext4 its defaults "
        "too; of an overlay with `upper:` those of the file system that is written to; without "
        "names of places"
    )


class Cell(Strict):
    """One measured cell. Only `status == "ok"` enters a statistic."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    id: str
    key: CellKey
    status: Status
    reason: str | None = None
    disturbed: str | None = Field(
        default=None, description="why others' load makes this figure doubtful; null when it is not"
    )
    started: str = Field(description="UTC, ISO 8601; empty where it was not recorded")
    wall_seconds: float | None = Field(
        default=None,
        description="the whole cell, with format, mount and set-up; null where it was not recorded",
    )
    unit: Plain = Field(default="ops", description="what is counted: ops, messages, MB, ...")
    ops: float = 0
    seconds: float = 0
    ops_per_second: float = 0
    cpu: CpuTimes | None = None
    own_cpu_seconds: float | None = Field(default=None, description="of the cell's cgroup")
    others_cpu_seconds: float | None = Field(
        default=None, description="of everything else on the CPUs under test, kernel threads too"
    )
    throttled_seconds: float | None = Field(
        default=None,
        description="that a CPU quota stopped the cell's group for, or one above, summed up over "
        "the CPUs, warm-up included; null where no quota is counted or it was not recorded",
    )
    frequency_khz: int | None = Field(
        default=None,
        description="at which the CPUs under test ran while they were busy, their mean: by APERF "
        "and MPERF over the whole command, or cpufreq's near its end (extra.frequency_from says "
        "which); null where the machine does not say it",
    )
    thermal_throttled: int | None = Field(
        default=None,
        description="how often heat throttled a core or package under test meanwhile, the largest "
        "of their counters; null where the machine does not count it",
    )
    caches_dropped: bool | None = Field(
        default=None,
        description="page cache, dentries and inodes, before the cell; null in results before it "
        "was recorded",
    )
    cpu_control: Control = "affinity"
    cpus: list[int] = Field(default_factory=list)
    commands: list[Command] = Field(default_factory=list)
    bench: BenchOutput | None = None
    latency: dict[str, Any] | None = Field(
        default=None,
        description="HdrHistogram (V2, base64) and quantiles in nanoseconds; quantiles are null "
        "where nearly all operations are not covered",
    )
    geometry: dict[str, str] | None = Field(
        default=None,
        description="what mkfs chose, where the file system's TOML file asks for it; of an "
        "existing directory block size and size in bytes too",
    )
    mount: Mounted | None = Field(
        default=None, description="null where it was not recorded, or cannot be seen"
    )
    counts: dict[str, float] | None = Field(
        default=None,
        description="kernel tracepoints, or instructions, per operation, set-up subtracted",
    )
    profiles: dict[str, str] = Field(
        default_factory=dict, description="profiler name -> path relative to the run directory"
    )
    slices: list[Slice] | None = Field(
        default=None, description="of a pair whose sides were mounted at once and took turns"
    )
    simulation: Simulation | None = Field(
        default=None, description="of a cell that the manycore simulator made"
    )
    extra: dict[str, Any] = Field(default_factory=dict, description="of the application drivers")


class Cpu(Strict):
    """One logical CPU, from lscpu."""

    cpu: int
    core: int
    socket: int
    node: int | None = Field(description="null where it was not recorded")
    type: CpuType | None = Field(
        default=None, description="its PMU of a hybrid x86 processor; null where there is no such"
    )
    capacity: int | None = Field(
        default=None, description="cpu_capacity of the kernel, at most 1024; null where unknown"
    )
    max_mhz: float | None = Field(
        default=None, description="highest frequency that cpufreq knows; null where unknown"
    )


class KernelBuild(Strict):
    """Which build of its release the kernel is: two builds are two kernels."""

    version: str = Field(description="`uname -v`: the number and time of the build")
    id: str | None = Field(description="GNU build id, hexadecimal")
    taint: int | None = Field(description="/proc/sys/kernel/tainted at the start")
    debug: list[str] = Field(description="options of the kernel that are on and cost speed")
    debug_from: str = Field(description="the configuration that says so, or `signs` without one")


class Tuning(Strict):
    """Settings of the machine that move its figures; null where it has no such setting."""

    turbo: bool | None
    idle_driver: str | None
    idle_governor: str | None
    idle_states: dict[str, bool] = Field(description="C-state -> whether all CPUs may enter it")
    numa_balancing: str | None
    huge_pages: str | None = Field(description="transparent huge pages: always, madvise, never")
    shmem_huge_pages: str | None = Field(description="the same for tmpfs without huge=")
    preempt: str | None = Field(
        default=None,
        description="preemption model: none, voluntary, full, lazy, or rt; null where nothing says",
    )
    preempt_from: str | None = Field(
        default=None,
        description="what says so; only debugfs knows the present model of PREEMPT_DYNAMIC",
    )
    sched_features: str | None = Field(default=None, description="/sys/kernel/debug/sched/features")
    lsms: list[str] | None = Field(default=None, description="Linux security modules that are on")
    lsm_state: dict[str, str] = Field(default={}, description="of SELinux and AppArmor")
    sysctls: dict[str, str] = Field(
        default={}, description="of memory, writeback, scheduler and watchdogs, by name"
    )
    frequency_driver: str | None = Field(default=None, description="cpufreq scaling_driver")
    energy_preference: str | None = Field(
        default=None, description="energy_performance_preference of the CPUs, each value once"
    )
    energy_bias: str | None = Field(default=None, description="energy_perf_bias, likewise")
    irq_affinity: str | None = Field(default=None, description="/proc/irq/default_smp_affinity")
    irqbalance: bool | None = Field(default=None, description="whether the daemon is seen running")
    isolated_cpus: str | None = Field(default=None, description="isolcpus=; empty for none")
    nohz_full_cpus: str | None = Field(default=None, description="nohz_full=; empty for none")
    rcu_nocbs_cpus: str | None = Field(default=None, description="rcu_nocbs= of the command line")
    workqueue_scope: str | None = Field(
        default=None, description="default_affinity_scope of unbound workqueues"
    )
    clocksource: str | None = None
    timer_slack_ns: str | None = Field(default=None, description="of the run's processes")
    same_page_merging: str | None = Field(default=None, description="/sys/kernel/mm/ksm/run")
    multi_generation_lru: str | None = Field(
        default=None, description="/sys/kernel/mm/lru_gen/enabled"
    )
    zswap: str | None = Field(default=None, description="Y or N")

    @property
    def flat(self) -> dict[str, Any]:
        """What was recorded, by name; sysctls and the states of LSMs by names of their own."""
        found = self.model_dump(exclude_unset=True)
        for table in ("lsm_state", "sysctls"):
            for name, value in found.pop(table, {}).items():
                found[f"{table}.{name}"] = value
        return found


class Confinement(Strict):
    """What a container, or the control groups of the run, leave it of the machine."""

    cgroups: Literal["v1", "v2", "hybrid", "none"] = Field(
        description="hierarchies that are mounted"
    )
    cpus: float | None = Field(
        description="for how many CPUs' time the smallest quota suffices (cpu.max, "
        "cpu.cfs_quota_us); null without one"
    )
    cpus_found: float | None = Field(
        default=None,
        description="the same, where quotas are hidden and a short spin on all CPUs was stopped",
    )
    memory_bytes: int | None = Field(
        description="the smallest limit (memory.max, memory.high, memory.limit_in_bytes); null "
        "without one"
    )
    swap_bytes: int | None = Field(description="the smallest memory.swap.max; null without one")
    cpuset: str | None = Field(description="CPUs of the own cpuset; null where it cannot be seen")
    namespaces: dict[str, bool | None] = Field(
        description="kind -> whether the run is in the initial one; null where nobody can say"
    )
    denied: dict[str, str] = Field(
        description="what the run may not do (mount, hotplug, drop caches) -> why"
    )
    hidden: list[str] = Field(description="what cannot be seen from here")

    @property
    def limits(self) -> dict[str, float | str | None]:
        """What bounds the figures, by name."""
        return {
            "cpus_limit": self.cpus,
            "memory_limit": self.memory_bytes,
            "swap_limit": self.swap_bytes,
            "cpuset": self.cpuset,
        }


class Machine(Strict):
    """The machine as it was found."""

    hostname: str
    kernel: str = Field(description="`uname -r`")
    build: KernelBuild | None = Field(default=None, description="null in results before it was")
    kernel_cmdline: str
    architecture: str
    cpu_model: str
    memory_bytes: int = Field(ge=0, lt=1 << 63, description="0 where it was not recorded")
    topology: list[Cpu]
    cpu_order: list[int] = Field(description="the order in which CPUs join: socket by socket")
    governor: str | None
    tuning: Tuning | None = None
    confinement: Confinement | None = Field(default=None, description="null before it was recorded")
    mitigations: dict[str, str]
    virtualization: str | None
    boots: list[str] | None = Field(
        default=None,
        description="the kernel's boot_id of each boot in which it was measured, in order; null "
        "where one was not recorded",
    )
    guest: dict[str, Any] | None = Field(
        default=None,
        description="set where the cells were measured in a guest of ours; its `accelerator` is "
        "the kind: kvm, tcg, tcg-icount (counted) or simulated",
    )

    @property
    def usable_memory(self) -> int:
        """Bytes of memory that the run may use: sizes that are a share are a share of it."""
        limit = self.confinement.memory_bytes if self.confinement else None
        return self.memory_bytes if limit is None else min(self.memory_bytes, limit)

    @property
    def kind(self) -> str:
        """How figures come about here: "native", or the accelerator of a guest of ours."""
        return str(self.guest.get("accelerator", "unknown")) if self.guest else "native"

    @property
    def simulated(self) -> bool:
        """Whether figures are of the manycore simulator."""
        return self.kind == "simulated"

    @property
    def identity(self) -> str:
        """What has to be the same for figures of two days to be a history."""
        host = self.guest.get("host", self.hostname) if self.guest else self.hostname
        cpus = f"{len(self.cpu_order)} x {self.cpu_model}"
        return f"{host} ({cpus}, {self.kind})" if self.guest else f"{host} ({cpus})"


def all_boots(machines: Iterable[Machine]) -> list[str] | None:
    """The boots of all of them, in order; None where one does not record its own."""
    boots: dict[str, None] = {}
    for machine in machines:
        if machine.boots is None:
            return None
        boots |= dict.fromkeys(machine.boots)
    return list(boots)


class Run(Strict):
    """`run.json`: everything about a run that is not a cell."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    id: str
    started: Time
    finished: Time | None = None
    state: Literal["running", "complete", "interrupted", "failed"]
    fscale_version: str
    revision: str | None = Field(description="of the fscale repository, `-dirty` when changed")
    command: list[str]
    seed: int
    suite: dict[str, Any] = Field(description="the suite as validated, overrides applied")
    filesystems: dict[str, dict[str, Any]]
    media: dict[str, dict[str, Any]]
    machine: Machine
    versions: dict[str, str]
    workloads: list[dict[str, Any]] = Field(description="the descriptors of `fscale-bench --list`")
    planned_cells: int
    warnings: list[str] = Field(default_factory=list)
    imported: str | None = Field(
        default=None,
        description="the logs of another program that it was made of; what they do not hold is "
        "empty, null or 0",
    )
