# SPDX-License-Identifier: GPL-2.0-only
"""The plan of a guest: its points, and the script that init.sh reads."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fscale.model.config import FileSystem, Medium, resolve_size
from fscale.model.errors import FscaleError
from fscale.model.results import NO_MEDIUM, CellKey
from fscale.sim.machine import SimulatedMachine

# Where init.sh mounts the file system.
MOUNT = "/mnt"
DEVICES = {"brd": "/dev/ram0", "null_blk": "/dev/nullb0"}


@dataclass(frozen=True)
class WindowPlan:
    """The length of a point's simulation."""

    count: int
    """with `precision` the most"""
    ops: int
    """operations per window of all workers together"""
    each: int
    """the least operations per window and worker"""
    ns: int
    """the least simulated nanoseconds of a window, by the rate of the warm-up"""
    precision: float | None = None
    """relative half-width of the 95% band of the throughput at which a point ends; None: never"""

    def of(self, cores: int) -> int:
        """Operations of a window of a point."""
        return max(self.ops, self.each * cores)

    @property
    def arguments(self) -> list[str]:
        """Those of the benchmark that do not depend on the point."""
        told = ["--windows", str(self.count), "--window-ns", str(self.ns)]
        if self.precision is not None:
            told += ["--precision", str(round(1000 * self.precision))]
        return told


def fixed(count: int, ops: int) -> WindowPlan:
    """So many windows, none left out.

    With fewer than four operations of each worker, a window would not include a second one of the
    same worker; in one of a few microseconds it would show when each worker was woken.
    """
    return WindowPlan(count, ops, each=4, ns=200_000)


def precise(precision: float) -> WindowPlan:
    """Short windows until the throughput is known so well (core/precision.h in the benchmark)."""
    return WindowPlan(48, ops=64, each=2, ns=25_000, precision=precision)


@dataclass(frozen=True)
class GuestPoint:
    """A cell to simulate. `number`: unique in its boot; `group`: that of its free objects."""

    number: int
    key: CellKey
    seed: int
    group: int = 0


@dataclass(frozen=True)
class Sockets:
    """The topology of QEMU's CPUs, so that the guest has the same sockets as the model."""

    vcpus: int
    sockets: int
    cores: int

    @property
    def option(self) -> str:
        """The value of QEMU's -smp."""
        most = self.sockets * self.cores
        return f"{self.vcpus},sockets={self.sockets},cores={self.cores},threads=1,maxcpus={most}"


def sockets(machine: SimulatedMachine, vcpus: int) -> Sockets:
    """The first `vcpus` cores of a machine; FscaleError if it has fewer."""
    if vcpus > machine.cores:
        raise FscaleError(
            f"{vcpus} cores were requested, but {machine.title} has {machine.cores}; give another "
            "--machine"
        )
    each = min(machine.cores_per_socket, vcpus)
    return Sockets(vcpus, -(-vcpus // each), each)


def order(points: Iterable[GuestPoint]) -> list[GuestPoint]:
    """The order within a boot: the most cores first, because CPUs are only taken offline."""
    return sorted(points, key=lambda point: -point.key.cores)


def script(
    points: Iterable[GuestPoint],
    filesystems: Mapping[str, FileSystem],
    media: Mapping[str, Medium],
    windows: WindowPlan,
    memory: int,
) -> str:
    """The shell script /host/plan. `memory` in bytes: sizes may be shares of it."""
    return "".join(
        shlex.join(
            _line(
                point,
                filesystems[point.key.filesystem],
                media.get(point.key.medium),
                windows,
                memory,
            )
        )
        + "\n"
        for point in points
    )


def _line(
    point: GuestPoint, fs: FileSystem, medium: Medium | None, windows: WindowPlan, memory: int
) -> list[str]:
    key = point.key
    arguments = ["--dir", MOUNT, "--cpus", f"0-{key.cores - 1}"]
    arguments += ["--workload", key.workload, "--mode", key.mode]
    arguments += [*windows.arguments, "--window-ops", str(windows.of(key.cores))]
    arguments += ["--roi", f"{point.number},{point.seed},{point.group}"]
    for name, value in key.options.items():
        arguments += ["--option", f"{name}={value}"]
    for path in fs.counter_files(_device(fs, medium)):
        arguments += ["--counter", path]
    return [*prepared(point, fs, medium, memory), "fscale-bench", *arguments]


def prepared(point: GuestPoint, fs: FileSystem, medium: Medium | None, memory: int) -> list[str]:
    """The first words of a point's line, which end before its program: a file system on MOUNT."""
    sized = fs if fs.nodev else medium
    assert sized is not None and sized.size is not None
    size = resolve_size(sized.size, sized.max_size, memory)
    device = _device(fs, medium)
    mkfs = [word.format(device=device) if "{device}" in word else word for word in fs.mkfs]
    options = ",".join(option.replace("{size}", str(size)) for option in fs.mount_options)
    return [
        *("point", str(point.number), str(point.key.cores), _kind(fs, medium), str(size >> 10)),
        *(fs.kernel, options, shlex.join(mkfs)),
    ]


def _kind(fs: FileSystem, medium: Medium | None) -> str:
    return medium.kind if medium is not None and not fs.nodev else NO_MEDIUM


def _device(fs: FileSystem, medium: Medium | None) -> str | None:
    return DEVICES.get(_kind(fs, medium))
