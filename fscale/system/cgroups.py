# SPDX-License-Identifier: GPL-2.0-only
"""Reads the cgroups (v1 and v2) of this process: their limits and their counters."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fscale.system import mountinfo
from fscale.system.sysfs import text

_UNLIMITED = 1 << 62  # v1 writes a number of about 2^63
_WAYS, _UNITS = ("read", "write"), ("bps", "iops")
_MEMORY = ("memory.max", "memory.high", "memory.limit_in_bytes")
# Controller -> its settings that change figures without being a limit that is read below, and their
# values without effect. Weights count only beside other groups.
_SETTINGS = {
    "io": {"io.max": "", "io.latency": "", "io.prio.class": "no-change"},
    "cpu": {"cpu.idle": "0", "cpu.uclamp.min": "0.00", "cpu.uclamp.max": "max"},
    "blkio": {
        "blkio.prio.class": "no-change",
        **{f"blkio.throttle.{way}_{unit}_device": "" for way in _WAYS for unit in _UNITS},
    },
}
_MAX_GROUPS = 4096  # searched for the own group


@dataclass(frozen=True)
class Chain:
    """The cgroup of this process and its ancestors, as far as they are visible, own group first."""

    version: int
    groups: tuple[Path, ...]
    whole: bool
    """whether the last group is the root of the hierarchy, so that no ancestor is hidden"""


@dataclass(frozen=True)
class Limit:
    """The smallest limit of a chain, and the file that sets it."""

    value: float
    file: Path


@dataclass(frozen=True)
class Throttled:
    """How often, and for how long, a quota throttled a group since the group was created."""

    times: int
    seconds: float
    """summed over the CPUs on which it was throttled"""


@dataclass(frozen=True)
class _Mount:
    root: str
    directory: Path


def versions(root: Path = Path("/")) -> str:
    """Return which hierarchies are mounted: "v1", "v2", "hybrid" or "none"."""
    kinds = {kind for kind, _, _ in _mounts(root)}
    one, two = "cgroup" in kinds, "cgroup2" in kinds
    return "hybrid" if one and two else "v1" if one else "v2" if two else "none"


def own_path(root: Path = Path("/")) -> str | None:
    """Return the path of this process's v2 group in its cgroup namespace; None without v2."""
    return _memberships(root).get("")


def chain(controller: str, root: Path = Path("/")) -> Chain | None:
    """Return the groups of this process for a controller; None if none is visible.

    The controller "" means the v2 hierarchy itself. `root` is the directory with /proc and /sys.
    """
    path = _memberships(root).get(controller)
    version = 1 if controller and path is not None else 2
    if path is None:
        path = own_path(root)
    if path is None:
        return None
    # Of mounts over each other the last is seen. Those elsewhere may be a program's, for a while.
    usual = root / "sys/fs/cgroup"
    mounts = sorted(_mounts(root), key=lambda found: found[2].directory.is_relative_to(usual))
    for kind, options, mount in reversed(mounts):
        if (version, kind) not in ((1, "cgroup"), (2, "cgroup2")):
            continue
        if version == 1 and controller not in options:
            continue
        if own := _own(mount, path):
            up = own.relative_to(mount.directory).parts
            groups = tuple(mount.directory.joinpath(*up[:n]) for n in range(len(up), -1, -1))
            return Chain(version, groups, _is_root(groups[-1], version))
    return None


def mount_point(controller: str) -> Path | None:
    """Return where the v1 hierarchy of a controller is mounted; None if it is not."""
    for kind, options, mount in _mounts(Path("/")):
        if kind == "cgroup" and controller in options:
            return mount.directory
    return None


def cpu_quota(groups: Chain | None) -> Limit | None:
    """Return the smallest CPU quota, in CPUs; None without a quota."""
    return _smallest(groups, _quota)


def memory_limit(groups: Chain | None) -> Limit | None:
    """Return the bytes of memory that the groups may use; None without a limit.

    Beyond it, processes are throttled or killed. v1 also reports the limits of hidden ancestors.
    """

    def limits(group: Path) -> Iterator[Limit]:
        for name in _MEMORY:
            if (value := _bytes(group / name)) is not None:
                yield Limit(value, group / name)
        inherited = statistics(group / "memory.stat").get("hierarchical_memory_limit")
        if inherited is not None and inherited < _UNLIMITED:
            yield Limit(inherited, group / "memory.stat")

    return _smallest(groups, limits)


def swap_limit(groups: Chain | None) -> Limit | None:
    """Return the bytes of swap that the groups may use; None without a limit, and on v1."""

    def limits(group: Path) -> Iterator[Limit]:
        if (value := _bytes(group / "memory.swap.max")) is not None:
            yield Limit(value, group / "memory.swap.max")

    return _smallest(groups, limits)


def memory_left(groups: Chain | None) -> Limit | None:
    """Return the bytes that are still free below every limit; None without a limit.

    Page cache counts as free, because the kernel reclaims it.
    """

    def left(group: Path) -> Iterator[Limit]:
        used = text(group / "memory.current") or text(group / "memory.usage_in_bytes")
        for name in _MEMORY:
            most = _bytes(group / name)
            if most is not None and used is not None:
                cache = _file_cache(statistics(group / "memory.stat"))
                yield Limit(max(0, most - max(0, int(used) - cache)), group / name)

    return _smallest(groups, left)


def settings(root: Path = Path("/")) -> dict[str, str]:
    """Return the limits of I/O and CPU frequency that apply to this process, by name of the file.

    Only those that are not plain; of several groups the innermost counts.
    """
    found: dict[str, str] = {}
    for controller, plain in _SETTINGS.items():
        groups = chain(controller, root)
        for name, none in plain.items():
            values = [text(group / name) for group in (groups.groups if groups else ())]
            if told := [value for value in values if value is not None and value != none]:
                found[name] = "; ".join(told[0].splitlines())
    return found


def throttled(groups: Chain | None) -> dict[Path, Throttled]:
    """Return how much each group was throttled by its quota."""
    found = {}
    for group in groups.groups if groups else ():
        counted = statistics(group / "cpu.stat")
        if "nr_throttled" in counted:
            seconds = counted.get("throttled_usec", 0) / 1e6
            seconds += counted.get("throttled_time", 0) / 1e9  # v1
            found[group] = Throttled(counted["nr_throttled"], seconds)
    return found


def statistics(file: Path) -> dict[str, int]:
    """Parse the `NAME NUMBER` lines of a file; empty if it cannot be read."""
    pairs = (line.split() for line in (text(file) or "").splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def _smallest(groups: Chain | None, limits: Callable[[Path], Iterable[Limit]]) -> Limit | None:
    candidates = [limit for group in (groups.groups if groups else ()) for limit in limits(group)]
    return min(candidates, key=lambda limit: limit.value, default=None)


def _quota(group: Path) -> Iterator[Limit]:
    quota, period = (text(group / "cpu.max") or "max 0").split()[:2]
    name = "cpu.max"
    if quota == "max":
        name = "cpu.cfs_quota_us"
        quota = text(group / name) or "-1"
        period = text(group / "cpu.cfs_period_us") or "0"
    if int(quota) > 0 and int(period) > 0:
        yield Limit(int(quota) / int(period), group / name)


def _bytes(file: Path) -> int | None:
    value = text(file) or ""
    return int(value) if value.isdecimal() and int(value) < _UNLIMITED else None


def _file_cache(counted: dict[str, int]) -> int:
    # In v1 only the total_ counters include child groups.
    prefix = "total_" if "total_inactive_file" in counted else ""
    return sum(counted.get(f"{prefix}{name}", 0) for name in ("inactive_file", "active_file"))


def _memberships(root: Path) -> dict[str, str]:
    """Return controller -> path of the own group; the controller "" is v2."""
    paths: dict[str, str] = {}
    for line in (text(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        paths |= dict.fromkeys(controllers.split(","), path)
    return paths


def _mounts(root: Path) -> Iterator[tuple[str, list[str], _Mount]]:
    """Yield the mounts of cgroup file systems: type, options of the hierarchy, and place."""
    for line in mountinfo.read(root / "proc"):
        if line.fstype in ("cgroup", "cgroup2"):
            directory = root / line.target.lstrip("/")
            yield line.fstype, line.super_options.split(","), _Mount(line.root, directory)


def _own(mount: _Mount, path: str) -> Path | None:
    """Return the directory of the own group below a mount of its hierarchy."""
    within = os.path.relpath(path, mount.root)
    here = mount.directory / within if within != "." else mount.directory
    if not within.startswith("..") and _holds_us(here):
        return here
    # The mount predates the cgroup namespace, so it also shows what is above the namespace.
    return next((group for group in _below(mount.directory) if _holds_us(group)), None)


def _holds_us(group: Path) -> bool:
    try:
        return str(os.getpid()) in (group / "cgroup.procs").read_text().split()
    except OSError:  # cgroup.procs of a threaded group cannot be read
        return (text(group / "cgroup.type") or "").startswith("threaded")


def _below(directory: Path) -> Iterator[Path]:
    seen = 0
    for where, names, _ in os.walk(directory):
        for name in names:
            seen += 1
            if seen > _MAX_GROUPS:
                return
            yield Path(where) / name


def _is_root(group: Path, version: int) -> bool:
    # In v1 only the root has release_agent; in v2 only the root lacks cgroup.type.
    if version == 1:
        return (group / "release_agent").exists()
    with contextlib.suppress(OSError):
        return (group / "cgroup.procs").exists() and not (group / "cgroup.type").exists()
    return False
