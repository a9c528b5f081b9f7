# SPDX-License-Identifier: GPL-2.0-only
"""The models of the TOML files under `configs/`: suites, file systems, media, aging profiles."""

import re
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from fscale.model import corecounts, kernelfile
from fscale.model.alternatives import expand, first_twice
from fscale.model.bench import Mode, Strict
from fscale.model.limits import (
    MOST_CORES,
    MOST_COUNT,
    MOST_REPETITIONS,
    MOST_SECONDS,
    MOST_WORKERS_PER_CPU,
)
from fscale.model.results import CpuPlacement
from fscale.model.topology import Preset

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)


def parse_size(value: object) -> int:
    """Parse a size in bytes: `4096`, "6G" or "512 MiB". All units are powers of two.

    Raises:
        ValueError: the value is not a size.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if not match:
        raise ValueError(
            f"{str(value)[:60]!r} is not a size; give a number of bytes, or a number with K, M, G "
            "or T"
        )
    return int(float(match[1]) * _UNITS[match[2].upper()])


def _size_or_share(value: object) -> object:
    if isinstance(value, str) and value.strip().endswith("%"):
        return value.strip()
    return parse_size(value)


def _core_counts(value: object) -> object:
    if isinstance(value, str) and value in get_args(Preset):
        return value
    parts = value if isinstance(value, list) else [value]
    return [count for part in parts for count in corecounts.parse(part)]


def _number_or_share(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(r"[1-9]\d?%", value):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_CORES:
        return value
    raise ValueError(
        f"{value!r} is neither a number of CPUs nor a share of them; give 0 or more, or 1% to 99%"
    )


def _expanded(texts: list[str]) -> list[str]:
    return [one for text in texts for one in expand(text)]


def _once(value: int | list[int]) -> int | list[int]:
    if isinstance(value, list) and (twice := first_twice(value)):
        raise ValueError(f"{twice} is given twice; give each number once")
    return value


Bytes = Annotated[int, BeforeValidator(parse_size), Field(ge=1)]
SizeOrShare = Annotated[
    int | Annotated[str, Field(pattern=r"^[1-9]\d?%$")], BeforeValidator(_size_or_share)
]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+]*$")]
Options = dict[str, int | str]
"""the options of a workload in one cell"""
OptionValues = dict[str, int | str | Annotated[list[int | str], Field(min_length=1)]]
"""the options of a workload in a suite; a list makes a sweep"""
WorkerCount = Annotated[int, Field(ge=1, le=MOST_WORKERS_PER_CPU)]
Placement = Literal["interleave", "local"] | Annotated[int, Field(ge=0)]
ColourName = Literal["black", "blue", "vermillion", "green", "purple", "orange", "sky blue"]


class Suite(Strict):
    """`configs/suites/<name>.toml`: what is measured. The plan is the product of its lists."""

    title: str = Field(description="one line that reports show")
    workloads: Annotated[list[str], Field(min_length=1)] | Literal["all"] = Field(
        description="ids as in `fscale list workloads`"
    )
    filesystems: Annotated[list[str], AfterValidator(_expanded)] = Field(
        min_length=1,
        description="names or TOML files, with options as --fs takes them; "
        '"ext4:mount=commit={1,5}" is a sweep, as in a shell two file systems',
    )
    media: list[str] = Field(min_length=1, description="names or TOML files")
    modes: list[Mode] = Field(
        default=["buffered"], min_length=1, description="how workloads read and write files"
    )
    cores: Annotated[
        Annotated[list[int | str], Field(min_length=1)] | Preset, BeforeValidator(_core_counts)
    ] = Field(
        default="topology",
        description='core counts to measure: a list of numbers, ranges ("1-8", "2-16:2" for every '
        'second) and shares of the usable CPUs ("50%"), or a preset. "topology": powers of two, '
        'each full socket, all physical cores and all hardware threads; "powers": powers of two '
        'and all; "all": every count. Counts that the machine lacks are left out with a warning',
    )
    workers_per_cpu: Annotated[
        WorkerCount | Annotated[list[WorkerCount], Field(min_length=1)], AfterValidator(_once)
    ] = Field(
        default=1,
        description="workers pinned to each CPU under test; more than 1 oversubscribes the CPUs. A "
        "background writer keeps a CPU of its own. A list is a sweep: each number is measured",
    )
    placement: CpuPlacement = Field(
        default="packed",
        description='CPUs that a core count takes. "packed": the cores of a socket before those of '
        'the next; "spread": from sockets, NUMA nodes and L3 caches in turn. With both, second '
        "hardware threads come last",
    )
    keep_free: Annotated[int | str, BeforeValidator(_number_or_share)] = Field(
        default=0,
        description='number of CPUs, or a share of the usable ones such as "25%", that stay online '
        "without a worker, for kernel threads and interrupts; core counts refer to the others",
    )
    duration: float = Field(gt=0, le=MOST_SECONDS, description="timed seconds per cell")
    warmup: float = Field(
        default=0.1, ge=0, le=MOST_SECONDS, description="seconds before the timed window"
    )
    min_window: float | None = Field(
        default=None,
        gt=0,
        le=MOST_SECONDS,
        description="seconds; shorter timed windows are discarded",
    )
    interval: float | None = Field(
        default=None, gt=0, le=MOST_SECONDS, description="seconds per point of the time series"
    )
    repetitions: int = Field(
        ge=1, le=MOST_REPETITIONS, description="cells per point, each on a fresh file system"
    )
    order: Literal["random", "cores"] = Field(
        default="random",
        description='order of cells within a repetition; "cores" groups them by core count, which '
        "saves CPU hotplug",
    )
    latency: bool = Field(
        default=False,
        description="record the latency of every operation; always of those that arrive at a rate",
    )
    control: float = Field(
        default=0.3,
        ge=0,
        description="timed seconds of each control cell; they measure how the machine itself "
        "scales, at each core count of a run that has several; 0: no control cells",
    )
    profiles: list[str] = Field(
        default=[],
        description="profilers; each runs in repetitions of its own, which are never scored",
    )
    profile_repetitions: int = Field(
        default=1, ge=1, le=MOST_REPETITIONS, description="cells per point and profiler"
    )
    remeasure: float = Field(
        default=0.25,
        ge=0,
        le=1,
        description="cells that other load disturbed, and curves that are faster than linear, are "
        "measured again at the end, for up to this fraction of the run's estimated time; 0: none",
    )
    max_stock: int | None = Field(
        default=None,
        ge=1,
        le=MOST_COUNT,
        description="largest number of files or blocks in a stock",
    )
    setup_limit: float = Field(
        default=120,
        gt=0,
        le=MOST_SECONDS,
        description="seconds after which a load that is not ready is killed",
    )
    margin: float = Field(
        default=60,
        gt=0,
        le=MOST_SECONDS,
        description="seconds after warm-up and duration until a cell is killed",
    )
    options: dict[str, OptionValues] = Field(
        default_factory=dict,
        description='workload options: one table per id, or one for "all". A list of values is a '
        "sweep: each value is measured, with each one of other lists",
    )

    @property
    def worker_counts(self) -> list[int]:
        """The numbers of workers per CPU; several in a sweep."""
        given = self.workers_per_cpu
        return given if isinstance(given, list) else [given]


class Geometry(Strict):
    """How to read the parameters that mkfs chose from a fresh file system."""

    command: list[str] = Field(
        min_length=1, description="argv that describes an unmounted {device}"
    )
    keys: list[str] = Field(
        min_length=1,
        description="which lines of the output to keep: the words before a colon, a tab or two "
        "blanks; or SECTION.NAME for a line with NAME=VALUE",
    )


Weight = Annotated[int, Field(ge=0, le=MOST_COUNT)]


class Aging(Strict):
    """`configs/aging/<name>.toml`: how a file system is filled and used before it is measured."""

    title: str = Field(description="one line that messages show")
    source: str = Field(description="where the figures are from")
    seed: int = Field(default=1, ge=0, lt=1 << 63, description="random seed of all choices")
    utilisation: float = Field(gt=0, le=0.95, description="part of the space that files take")
    churn: float = Field(
        ge=0,
        le=1000,
        description="how often the space that files take is made anew once it is filled: files are "
        "deleted, and others created in their place; 0: it is only filled",
    )
    lifetime_sigma: float = Field(
        ge=0,
        le=10,
        description="standard deviation of the natural logarithm of the lifetimes of files, which "
        "are log-normal; the file whose lifetime ends first is deleted next; 0: the oldest one",
    )
    streams: int = Field(default=1, ge=1, le=64, description="files that grow at the same time")
    append: Bytes = Field(default=1 << 20, description="bytes by which a file grows at once")
    sizes: list[tuple[Bytes, Weight]] = Field(
        min_length=1,
        max_length=64,
        description="sizes of files in ascending order, each with the weight of files between the "
        "size before and this one; their logarithms are uniform there",
    )
    levels: list[tuple[Annotated[int, Field(ge=1, le=MOST_COUNT)], Weight]] = Field(
        min_length=1,
        max_length=64,
        description="levels of the directory tree, the top first: the number of directories, and "
        "the weight of the files in them",
    )

    @model_validator(mode="after")
    def _whole(self) -> "Aging":
        ends = [size for size, _ in self.sizes]
        if ends != sorted(set(ends)):
            raise ValueError("sizes must ascend; give each size once, the smallest first")
        for name, table in (("sizes", self.sizes), ("levels", self.levels)):
            if not any(weight for _, weight in table):
                raise ValueError(f"all weights of {name} are 0; give one of them a weight")
        return self

    @property
    def min_size(self) -> int:
        """Bytes of the smallest medium: files take room for sixteen of the largest ones."""
        return int(16 * self.sizes[-1][0] / self.utilisation)

    @property
    def arguments(self) -> list[str]:
        """The options of `fscale-age`."""
        tables = {"sizes": self.sizes, "levels": self.levels}
        words = [f"--{name}={','.join(f'{a}:{b}' for a, b in t)}" for name, t in tables.items()]
        for name in ("utilisation", "churn", "lifetime_sigma", "streams", "append", "seed"):
            words.append(f"--{name.replace('_', '-')}={getattr(self, name)}")
        return words


class FileSystem(Strict):
    """`configs/filesystems/<name>.toml`: how a file system is made, mounted and counted."""

    title: str = Field(description="one line that reports show")
    kernel: str = Field(description="name in /proc/filesystems and for mount -t")
    nodev: bool = Field(default=False, description="in memory, without a medium and without mkfs")
    mkfs: list[str] = Field(default=[], description="argv; {device} is replaced by the medium")
    mount_options: list[str] = Field(
        default=["noatime"], description="{size} is replaced by the medium's size in bytes"
    )
    settings: dict[str, str] = Field(
        default={},
        description="file below /sys or /proc/sys -> value that it has while the file system is "
        "mounted; {name} is replaced by the name of the medium, such as ram0",
    )
    sized_by_cpus: bool = Field(
        default=True,
        description="mkfs may size by the online CPUs: all CPUs are brought online before it runs",
    )
    size: SizeOrShare | None = Field(default=None, description="size of a nodev file system")
    max_size: Bytes | None = None
    min_size: Bytes | None = Field(
        default=None,
        description="smallest size that its mkfs accepts; where a share of memory is "
        "smaller, the file system is skipped",
    )
    numa: Placement | None = Field(
        default=None,
        description="tmpfs: NUMA nodes of its pages: all nodes with CPUs in turn "
        '("interleave"), the node of the writer ("local"), or one node; without it the kernel '
        "decides",
    )
    partitions: int = Field(
        default=1, ge=1, description="number of partitions of the medium, each with a file system"
    )
    package: str | None = Field(default=None, description="Debian package that contains its mkfs")
    check: list[str] = Field(
        default=[],
        description="argv that checks an unmounted {device} after each cell and changes nothing; "
        "if it fails, the cell is an error",
    )
    fsck: list[str] = Field(
        default=[],
        description="argv with which crash tests check an unmounted {device}; it changes nothing; "
        "not needed if check is given",
    )
    colour: ColourName | None = Field(
        default=None, description="colour in plots; without it one that is free"
    )
    functions: list[str] = Field(
        default=[],
        description="prefixes of the names of its kernel functions: the lock profile attributes "
        "locks of these functions to this file system alone",
    )
    structs: list[str] = Field(
        default=[],
        description="its structs that contain locks, which the lock profile names by their offset",
    )
    caches: dict[str, str] = Field(
        default={},
        description="slab cache -> struct in it, where their names differ; the struct counts among "
        "structs",
    )
    source: str | None = Field(
        default=None,
        description="directory with the sources of its module and tools, relative to this file; "
        "guests build and load them",
    )
    aged: Aging | None = Field(
        default=None,
        description="what it has been through before each cell; `aged=PROFILE` of --fs sets it",
    )
    geometry: Geometry | None = None
    version: list[str] = Field(default=[], description="argv that prints the mkfs version")
    needs: list[str] = Field(default=[], description="other commands that must be installed")
    counts: list[str] = Field(
        default=[], description="tracepoints that the counts profile counts per operation"
    )
    commit_seconds: float | None = Field(
        default=None,
        gt=0,
        description="seconds between two commits of its journal or log if nothing requests one; a "
        "mount option commit=N takes precedence",
    )
    counters: list[str] = Field(
        default=[],
        max_length=8,
        description="sysfs files that each contain a growing number; {name} is replaced by the "
        "name of the medium, such as ram0",
    )
    error_hint: str | None = Field(
        default=None, description="advice that is added to the error if mkfs fails"
    )

    @model_validator(mode="after")
    def _whole(self) -> "FileSystem":
        for path, value in self.settings.items():
            if reason := kernelfile.why_not_settable(path, value):
                raise ValueError(reason)
        if self.nodev:
            if self.mkfs or self.check or self.fsck or self.geometry or self.size is None:
                raise ValueError(
                    "a nodev file system has a size, no mkfs, check, fsck or geometry; set size "
                    "and remove the others"
                )
        elif not any("{device}" in argument for argument in self.mkfs):
            raise ValueError("mkfs must name {device}; add it where the medium belongs")
        if self.numa is not None and self.kernel != "tmpfs":
            raise ValueError(
                f"numa belongs to tmpfs, not to {self.kernel}; set numa in the medium's TOML file"
            )
        for name, argv in (("check", self.check), ("fsck", self.fsck)):
            if argv and not any("{device}" in argument for argument in argv):
                raise ValueError(f"{name} must name {{device}}; add it where the medium belongs")
        return self

    def counter_files(self, device: str | None) -> list[str]:
        """Return the paths of `counters` for the file system on a device; none without a device."""
        return [path.format(name=Path(device).name) for path in self.counters] if device else []


class Medium(Strict):
    """`configs/media/<name>.toml`: the storage below a file system."""

    title: str = Field(description="one line that reports show")
    kind: Literal["loop", "brd", "null_blk", "device", "dir"]
    size: SizeOrShare | None = Field(
        default=None, description='bytes, or a share of memory such as "25%"; device and dir: none'
    )
    max_size: Bytes | None = Field(default=None, description="upper bound of a share")
    backing: str | None = Field(
        default=None,
        description="loop: directory of the backing file; without it a tmpfs of fscale",
    )
    numa: Placement | None = Field(
        default=None,
        description="loop on fscale's tmpfs, brd, null_blk: NUMA nodes of its pages: all with "
        'CPUs in turn ("interleave"), the node of the runner ("local"), or one node; without it '
        "the kernel decides",
    )
    direct_io: bool = Field(
        default=False, description="loop: access the backing file with O_DIRECT"
    )
    path: str | None = Field(
        default=None, description="device: /dev/disk/by-id/...; dir: an existing directory"
    )

    latency_ns: int = Field(
        default=0, ge=0, description="null_blk: nanoseconds until a request completes"
    )
    queue_depth: int = Field(
        default=64, ge=1, description="null_blk: largest number of requests in flight"
    )

    @model_validator(mode="after")
    def _whole(self) -> "Medium":
        if self.kind != "null_blk" and (self.latency_ns or self.queue_depth != 64):
            raise ValueError(
                f"latency_ns and queue_depth belong to a null_blk medium, not to a {self.kind} "
                "medium; remove them"
            )
        if self.numa is not None and (self.kind in ("device", "dir") or self.backing):
            raise ValueError("numa belongs to a medium that is made in memory; remove it")
        if self.numa is not None and self.latency_ns:
            raise ValueError(
                "a null_blk with latency is not filled in advance, so its pages have no numa; "
                "remove numa or latency_ns"
            )
        if self.kind in ("loop", "brd", "null_blk") and self.size is None:
            raise ValueError(
                f'a {self.kind} medium needs a size, such as size = "4G" or size = "25%"'
            )
        if self.kind in ("device", "dir") and self.size is not None:
            raise ValueError(f"the size of a {self.kind} medium cannot be chosen; leave size out")
        return self


def resolve_size(size: int | str, most: int | None, memory: int) -> int:
    """Convert a size, or a share of `memory` bytes, to bytes: at most `most`, in whole MiB."""
    bytes_ = memory * int(size[:-1]) // 100 if isinstance(size, str) else size
    bytes_ = min(bytes_, most) if most is not None else bytes_
    return bytes_ & ~((1 << 20) - 1)
