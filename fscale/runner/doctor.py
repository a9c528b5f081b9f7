# SPDX-License-Identifier: GPL-2.0-only
"""Examines what this machine can do, and advises on what it lacks."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fscale.model import catalogue, paths
from fscale.model.load import Load
from fscale.runner.features import FEATURES
from fscale.runner.machine import confinement, host
from fscale.runner.profilers import kallsyms, usable
from fscale.runner.profilers.base import BTF, needs_event, needs_tracefs
from fscale.runner.storage import filesystem, medium
from fscale.system import powers
from fscale.system.programs import why_not


@dataclass(frozen=True)
class Finding:
    """One ability. `help` says how to get it; if it is `needed`, nothing works without it."""

    name: str
    good: bool
    detail: str
    help: str | None = None
    needed: bool = False

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


def _root() -> Iterator[Finding]:
    no_mount = powers.no_mount()
    yield Finding(
        "root",
        no_mount is None,
        no_mount or "may mount and format",
        "run as root of the machine, or in a privileged container; otherwise measure --dir "
        "DIRECTORY",
    )
    no_drop = powers.no_drop_caches()
    yield Finding(
        "caches",
        no_drop is None,
        no_drop or "are dropped before each cell",
        "run as root, with a writable /proc/sys",
    )


def _confinement() -> Iterator[Finding]:
    machine = host.read_machine()
    limits = confinement.warnings(machine)
    yield Finding(
        "confinement",
        not limits,
        "; ".join(limits) or "no CPU quota, no memory limit, all processes visible",
        "run outside the container or raise the limits; `fscale vm run` measures in a guest",
    )


def _kernel() -> Iterator[Finding]:
    no_hotplug = powers.no_hotplug()
    yield Finding(
        "CPU hotplug",
        no_hotplug is None,
        f"unused CPUs stay online: {no_hotplug}"
        if no_hotplug
        else "CPUs that are not under test are taken offline",
        "needs root, a writable /sys and a kernel with CONFIG_HOTPLUG_CPU",
    )
    group = host.own_cgroup()
    yield Finding(
        "cgroup v2",
        group is not None,
        f"cells run below {group}"
        if group
        else "not mounted, or this process's group is not writable",
        "mount -t cgroup2 none /sys/fs/cgroup/unified, as root",
    )
    for name, path, hint in (
        ("loop devices", "/dev/loop-control", "a kernel with CONFIG_BLK_DEV_LOOP"),
        ("BTF", str(BTF), "a kernel with CONFIG_DEBUG_INFO_BTF"),
        ("KVM device", "/dev/kvm", "hardware virtualization; guests are emulated without it"),
    ):
        there = Path(path).exists()
        yield Finding(name, there, path if there else f"no {path}", hint)
    no_tracefs = needs_tracefs()
    yield Finding(
        "tracefs",
        no_tracefs is None,
        no_tracefs or "is mounted, or a run with profiles mounts it",
        "run as root, on a kernel with CONFIG_TRACING",
    )
    no_event = needs_event("lock:contention_begin")
    yield Finding(
        "lock tracepoints",
        no_event is None,
        no_event or "lock:contention_begin and its end",
        "run as root, on Linux 5.19 or newer",
    )
    hidden = kallsyms.why_hidden()
    yield Finding(
        "kernel symbols",
        hidden is None,
        "functions and locks in profiles have names" if hidden is None else "are hidden",
        hidden,
    )


def _filesystems() -> Iterator[Finding]:
    for name in catalogue.names(paths.FILESYSTEMS):
        lacks = filesystem.missing(catalogue.load_filesystem(name))
        yield Finding(
            f"file system {name}", not lacks, lacks or "mkfs and kernel support it", lacks
        )


def _media() -> Iterator[Finding]:
    for name in catalogue.names(paths.MEDIA):
        lacks = medium.missing(name, catalogue.load_medium(name))
        yield Finding(f"medium {name}", not lacks, lacks or "possible", lacks)


def _features() -> Iterator[Finding]:
    for feature in FEATURES:
        missing = feature.missing()
        packages = sorted(set(missing.values()))
        failed = {} if missing else usable(feature.profilers)[1]
        bad = [f"{', '.join(missing)} not installed"] if missing else []
        bad += [f"{name}: {reason}" for name, reason in failed.items()]
        yield Finding(
            feature.name,
            not bad,
            "; ".join(bad) or "all that it needs is installed",
            f"apt-get install {' '.join(packages)}" if missing else None,
        )


def _bench() -> Iterator[Finding]:
    lacks = why_not(paths.BENCH)
    yield Finding("microbenchmark", not lacks, lacks or str(paths.BENCH), lacks, needed=True)


def _applications(loads: Sequence[Load]) -> Iterator[Finding]:
    for load in loads:
        lacks = load.missing()
        yield Finding(f"load {load.descriptor.id}", not lacks, lacks or "possible", lacks)


def examine(applications: Sequence[Load]) -> list[Finding]:
    """Return all findings, from general requirements to single features."""
    return [
        *_root(),
        *_confinement(),
        *_kernel(),
        *_bench(),
        *_filesystems(),
        *_media(),
        *_applications(applications),
        *_features(),
    ]
