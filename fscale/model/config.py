# SPDX-License-Identifier: GPL-2.0-only
"""What the TOML files under `configs/` may say."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from fscale.model import kernelfile
from fscale.model.bench import Mode, Strict
from fscale.model.limits import MOST_COUNT, MOST_REPETITIONS, MOST_SECONDS
from fscale.model.topology import Preset

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)


def parse_size(value: object) -> int:
    """Bytes from `4096`, "6G", "512 MiB": powers of two, whatever the spelling."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if not match:
        raise ValueError("a size is a number of bytes, or a number with K, M, G or T")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def _size_or_share(value: object) -> object:
    if isinstance(value, str) and value.strip().endswith("%"):
        return value.strip()
    return parse_size(value)


Bytes = Annotated[int, BeforeValidator(parse_size), Field(ge=1)]
SizeOrShare = Annotated[
    int | Annotated[str, Field(pattern=r"^[1-9]\d?%$")], BeforeValidator(_size_or_share)
]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+]*$")]
Options = dict[str, int | str]
Placement = Literal["interleave", "local"] | Annotated[int, Field(ge=0)]
ColourName = Literal["black", "blue", "vermillion", "green", "purple", "orange", "sky blue"]


_OLDER_KEYS = {"repeats": "repetitions", "profile_repeats": "profile_repetitions"}


class Suite(Strict):
    """`configs/suites/<name>.toml`: what is measured; the plan is the product of its lists."""

    @model_validator(mode="before")
    @classmethod
    def _older(cls, data: Any) -> Any:
        """Suites that were written before two keys got the words of the results are suites."""
        if not isinstance(data, dict):
            return data
        return {_OLDER_KEYS.get(key, key): value for key, value in data.items()}

    title: str
    workloads: list[str] | Literal["all"] = Field(description="ids of `fscale list workloads`")
    filesystems: list[str] = Field(min_length=1)
    media: list[str] = Field(min_length=1)
    modes: list[Mode] = Field(default=["buffered"], min_length=1)
    cores: list[Annotated[int, Field(ge=1)]] | Preset = Field(
        default="topology",
        description='a list; "topology": powers of two, each full socket, all physical cores and '
        'all hardware threads; "powers": powers of two and all; "all": every count',
    )
    duration: float = Field(gt=0, le=MOST_SECONDS, description="timed seconds a cell")
    warmup: float = Field(
        default=0.1, ge=0, le=MOST_SECONDS, description="seconds before the timed window"
    )
    min_window: float | None = Field(
        default=None, gt=0, le=MOST_SECONDS, description="shortest window to trust, seconds"
    )
    interval: float | None = Field(
        default=None, gt=0, le=MOST_SECONDS, description="of the time series, seconds"
    )
    repetitions: int = Field(
        ge=1, le=MOST_REPETITIONS, description="cells a point, each on a fresh file system"
    )
    order: Literal["random", "cores"] = Field(
        default="random",
        description='within a repetition; "cores" groups by core count, which saves CPU hotplug',
    )
    latency: bool = Field(default=False, description="time every operation")
    control: float = Field(
        default=0.3,
        ge=0,
        description="timed seconds of a cell that shows what the machine itself gives, at each "
        "core count of a run with several; 0: none",
    )
    profiles: list[str] = Field(
        default=[], description="profilers; each gets repetitions of its own, which never score"
    )
    profile_repetitions: int = Field(
        default=1, ge=1, le=MOST_REPETITIONS, description="cells a point and profiler"
    )
    max_stock: int | None = Field(
        default=None, ge=1, le=MOST_COUNT, description="most files or blocks of a stock"
    )
    setup_limit: float = Field(
        default=120, gt=0, le=MOST_SECONDS, description="seconds until a load must be ready"
    )
    margin: float = Field(
        default=60,
        gt=0,
        le=MOST_SECONDS,
        description="seconds beyond warm-up and duration until a cell is killed",
    )
    options: dict[str, Options] = Field(
        default_factory=dict, description='workload options: a table for each id, or for "all"'
    )


class Geometry(Strict):
    """How to ask a fresh file system what its mkfs chose."""

    command: list[str] = Field(
        min_length=1, description="argv that describes an unmounted {device}"
    )
    keys: list[str] = Field(
        min_length=1,
        description="what of it is kept: the words before a colon, a tab or two blanks; or "
        "SECTION.NAME where a line has NAME=VALUE",
    )


class FileSystem(Strict):
    """`configs/filesystems/<name>.toml`: how a file system is made, mounted and counted."""

    title: str
    kernel: str = Field(description="its name in /proc/filesystems and for mount -t")
    nodev: bool = Field(default=False, description="lives in memory: no medium and no mkfs")
    mkfs: list[str] = Field(default=[], description="argv; {device} stands for the medium")
    mount_options: list[str] = Field(
        default=["noatime"], description="{size} stands for the medium's size in bytes"
    )
    settings: dict[str, str] = Field(
        default={},
        description="files below /sys or /proc/sys, and what is written into them while it is "
        "mounted; {name} stands for the medium, such as ram0",
    )
    sized_by_cpus: bool = Field(
        default=True,
        description="mkfs may look at the CPUs that are online: all are while it runs",
    )
    size: SizeOrShare | None = Field(default=None, description="of a nodev file system")
    max_size: Bytes | None = None
    min_size: Bytes | None = Field(
        default=None, description="the least that its mkfs takes; left out where a share is less"
    )
    numa: Placement | None = Field(
        default=None,
        description="tmpfs: its pages lie on all NUMA nodes that have CPUs in turn "
        '("interleave"), on that of the writer ("local") or on one; without it as the kernel does '
        "it",
    )
    partitions: int = Field(
        default=1, ge=1, description="the medium is cut into that many, a file system on each"
    )
    package: str | None = Field(default=None, description="the Debian package with its mkfs")
    check: list[str] = Field(
        default=[],
        description="argv that checks an unmounted {device} and changes nothing, after each cell; "
        "a failure makes the cell an error",
    )
    fsck: list[str] = Field(
        default=[],
        description="argv that checks an unmounted {device} and changes nothing, for crash tests; "
        "not needed beside check",
    )
    colour: ColourName | None = Field(default=None, description="in plots; else one that is free")
    functions: list[str] = Field(
        default=[],
        description="how the names of its kernel functions begin: the lock profile then takes "
        "their locks for no other file system's",
    )
    structs: list[str] = Field(
        default=[],
        description="its structs that hold locks: the lock profile tells these by their offset",
    )
    caches: dict[str, str] = Field(
        default={},
        description="slab caches that are named otherwise than the struct that they hold, which "
        "counts among structs",
    )
    source: str | None = Field(
        default=None,
        description="directory with the sources of its module and tools, from this file; guests "
        "build and load them",
    )
    geometry: Geometry | None = None
    version: list[str] = Field(default=[], description="argv that prints the mkfs version")
    needs: list[str] = Field(default=[], description="further commands that must be installed")
    counts: list[str] = Field(
        default=[], description="tracepoints that show the work of one operation"
    )
    commit_seconds: float | None = Field(
        default=None,
        gt=0,
        description="seconds between two commits of its journal or log where nothing asks for "
        "one; a mount option commit=N comes first",
    )
    counters: list[str] = Field(
        default=[],
        max_length=8,
        description="files of sysfs with a growing number each; {name} stands for the medium, "
        "such as ram0",
    )
    error_hint: str | None = Field(
        default=None, description="what to look at when mkfs or mount fails"
    )

    @model_validator(mode="after")
    def _whole(self) -> "FileSystem":
        for path, value in self.settings.items():
            if reason := kernelfile.why_not(path, value):
                raise ValueError(reason)
        if self.nodev:
            if self.mkfs or self.check or self.fsck or self.geometry or self.size is None:
                raise ValueError("a nodev file system has a size, no mkfs, check, fsck or geometry")
        elif not any("{device}" in argument for argument in self.mkfs):
            raise ValueError("mkfs must name {device}")
        if self.numa is not None and self.kernel != "tmpfs":
            raise ValueError("numa belongs to tmpfs; what lies on a medium has the medium's")
        for name, argv in (("check", self.check), ("fsck", self.fsck)):
            if argv and not any("{device}" in argument for argument in argv):
                raise ValueError(f"{name} must name {{device}}")
        return self

    def counter_files(self, device: str | None) -> list[str]:
        """`counters` of the file system on a device; none where there is no device."""
        return [path.format(name=Path(device).name) for path in self.counters] if device else []


class Medium(Strict):
    """`configs/media/<name>.toml`: what a file system lies on."""

    title: str
    kind: Literal["loop", "brd", "null_blk", "device", "dir"]
    size: SizeOrShare | None = Field(
        default=None, description='bytes, or a share of memory such as "25%"'
    )
    max_size: Bytes | None = Field(default=None, description="upper bound of a share")
    backing: str | None = Field(
        default=None, description="loop: directory of the file; without it our own tmpfs"
    )
    numa: Placement | None = Field(
        default=None,
        description="loop on our own tmpfs, brd, null_blk: its pages lie on all NUMA nodes that "
        'have CPUs in turn ("interleave"), on that of the runner ("local") or on one; without it '
        "where they come to",
    )
    direct_io: bool = Field(default=False, description="loop: open the file with O_DIRECT")
    path: str | None = Field(
        default=None, description="device: /dev/disk/by-id/...; dir: an existing directory"
    )

    latency_ns: int = Field(
        default=0, ge=0, description="null_blk: completes each request after this time"
    )
    queue_depth: int = Field(
        default=64, ge=1, description="null_blk: requests that are under way at once"
    )

    @model_validator(mode="after")
    def _whole(self) -> "Medium":
        if self.kind != "null_blk" and (self.latency_ns or self.queue_depth != 64):
            raise ValueError("latency_ns and queue_depth belong to a null_blk medium")
        if self.numa is not None and (self.kind in ("device", "dir") or self.backing):
            raise ValueError("numa belongs to a medium that is made in memory")
        if self.numa is not None and self.latency_ns:
            raise ValueError("a null_blk with latency is not filled, so its pages have no numa")
        if self.kind in ("loop", "brd", "null_blk") and self.size is None:
            raise ValueError(f"a {self.kind} medium needs a size")
        if self.kind in ("device", "dir") and self.size is not None:
            raise ValueError(f"a {self.kind} medium has the size that it has; leave size out")
        return self


def resolve_size(size: int | str, most: int | None, memory: int) -> int:
    """Bytes of a size or share of `memory` bytes, at most `most`, rounded down to 1 MiB."""
    bytes_ = memory * int(size[:-1]) // 100 if isinstance(size, str) else size
    bytes_ = min(bytes_, most) if most is not None else bytes_
    return bytes_ & ~((1 << 20) - 1)
