# SPDX-License-Identifier: GPL-2.0-only
"""The changes that fscale makes to a machine, one class each.

`apply` makes the change. `undo` restores the machine and may be called at any time after the change
was recorded in the journal: before `apply`, in the middle of it, or twice. `show` describes the
present state.
"""

import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pydantic import Field

from fscale.model.bench import Strict
from fscale.model.kernelfile import same_value
from fscale.system import mountinfo, processes, sysfs
from fscale.system.executor import CommandFailed, Executor
from fscale.system.kernellog import KernelLog
from fscale.system.powers import CPUS

NULLB = Path("/sys/kernel/config/nullb")

# Seconds for which an undo is retried. The limit is short, because waiting does not help what hangs
# in the kernel, and there may be ten more changes to undo.
_BUSY = 3.0
_DYING = 3.0


class NotUndone(CommandFailed):
    """A change could not be undone; the text says why."""


class MountFailed(CommandFailed):
    """The kernel refuses a mount."""


def insist(change: Callable[[], None], seconds: float) -> OSError | None:
    """Retry a change that the kernel may refuse for a while, as with EBUSY of a CPU.

    Returns the last refusal, or None if there was none.

    Raises:
        OSError: the kernel still refuses after `seconds`.
    """
    deadline = time.monotonic() + seconds
    refused = None
    while True:
        try:
            change()
        except OSError as error:
            if time.monotonic() >= deadline:
                raise
            refused = error
            time.sleep(0.1)
        else:
            return refused


def mountpoints(below: Path) -> list[Path]:
    """List the mount points at or below a directory, in mount order, one entry per mount."""
    targets = [Path(line.target) for line in mountinfo.read()]
    return [target for target in targets if target == below or below in target.parents]


class Change(Strict):
    """One change. The journal records the fields of the subclasses."""

    def show(self) -> str:
        """Describe the present state of what this change concerns, for the user."""
        raise NotImplementedError

    def apply(self, do: Executor) -> None:
        """Make the change."""
        raise NotImplementedError

    def undo(self, do: Executor) -> None:
        """Restore the machine.

        Raises:
            NotUndone: this failed.
        """
        raise NotImplementedError

    @property
    def unrestored(self) -> list[str]:
        """What `undo` gave up without a failure, one sentence each."""
        return []


class CpuOffline(Change):
    """An online CPU is taken offline."""

    kind: Literal["cpu_offline"] = "cpu_offline"
    cpu: int

    @property
    def _file(self) -> Path:
        return CPUS / f"cpu{self.cpu}" / "online"

    @property
    def online(self) -> bool:
        """Whether the CPU is online."""
        return self._file.read_text().strip() == "1"

    def show(self) -> str:
        """See Change."""
        return f"CPU {self.cpu} is {'online' if self.online else 'offline'}"

    def apply(self, do: Executor) -> None:
        """Take the CPU offline."""
        do.write(self._file, "0")

    def undo(self, do: Executor) -> None:
        """Bring the CPU online, retrying for a while if the kernel refuses."""
        try:
            if do.dry or not self.online:
                insist(lambda: do.write(self._file, "1"), _BUSY)
        except OSError as error:
            raise NotUndone(
                f"the kernel refuses to bring CPU {self.cpu} online ({error.strerror})"
            ) from None


class Mount(Change):
    """A file system is mounted, at a directory of fscale unless `own` is false."""

    kind: Literal["mount"] = "mount"
    source: str
    target: Path
    fstype: str
    options: list[str] = Field(default=[])
    own: bool = True

    def show(self) -> str:
        """See Change."""
        state = "mounted" if self.target in mountpoints(self.target) else "not mounted"
        return f"{self.target} is {state}"

    def apply(self, do: Executor) -> None:
        """Make the directory if it is `own`, and mount."""
        if self.own:
            do.mkdir(self.target)
        argv = ["mount", "-t", self.fstype]
        if self.options:
            argv += ["-o", ",".join(self.options)]
        with KernelLog() as log:
            try:
                do.run([*argv, self.source, str(self.target)])
            except CommandFailed as error:
                words = self.fstype, Path(self.source).name
                raise MountFailed(f"{error}{log.about(*words)}", fault=error.blamed) from None

    def undo(self, do: Executor) -> None:
        """Unmount, retrying for a while if it is busy, and remove the directory if it is `own`."""
        if do.dry:
            do.run(["umount", str(self.target)])
        deadline = time.monotonic() + _BUSY
        while not do.dry and self.target in mountpoints(self.target):
            try:
                # The first unmount writes back all dirty data of the workload, which takes time.
                do.run(["umount", str(self.target)], timeout=120)
            except CommandFailed as error:
                if time.monotonic() > deadline:
                    raise NotUndone(
                        f"{self.target} cannot be unmounted: {error}", fault=error.blamed
                    ) from None
                time.sleep(0.2)
        if self.own:
            do.rmdir(self.target)


class LoopDevice(Change):
    """A loop device is attached to a file of fscale."""

    kind: Literal["loop"] = "loop"
    file: Path
    direct_io: bool

    def devices(self) -> list[str]:
        """List the loop devices of this file."""
        out = Executor().run(["losetup", "--json", "--list", "--output", "NAME,BACK-FILE"])
        listed = json.loads(out)["loopdevices"] if out.strip() else []
        # The kernel adds " (deleted)" once the file is gone.
        names = {str(self.file), f"{self.file} (deleted)"}
        return [item["name"] for item in listed if item["back-file"] in names]

    def show(self) -> str:
        """See Change."""
        return f"{self.file} is attached to {', '.join(self.devices()) or 'no loop device'}"

    def apply(self, do: Executor) -> None:
        """Attach the first free device."""
        argv = ["losetup", "--find", "--show", "--nooverlap"]
        argv += [f"--direct-io={'on' if self.direct_io else 'off'}"]
        do.run([*argv, str(self.file)], dry_output="/dev/loopN\n")

    def undo(self, do: Executor) -> None:
        """Detach, and wait until the kernel has released the device."""
        if do.dry:
            do.run(["losetup", "--detach", "/dev/loopN"])
            return
        deadline = time.monotonic() + _BUSY
        tried = False
        while devices := self.devices():
            # Try at least once: in an emulated guest the clock may leap while losetup is loaded.
            if tried and time.monotonic() > deadline:
                raise NotUndone(f"{', '.join(devices)} is still in use")
            for device in devices:
                with contextlib.suppress(CommandFailed):
                    do.run(["losetup", "--detach", device])
            tried = True
            time.sleep(0.05)


class Partitions(Change):
    """A block device is split into equal partitions that only the kernel knows.

    No partition table is written: BLKPG tells the kernel their places.
    """

    kind: Literal["partitions"] = "partitions"
    device: str
    count: int
    size: int  # of the device, bytes

    def node(self, number: int) -> str:
        """Return the device node of partition `number`, from 1."""
        return f"{self.device}{'p' if self.device[-1].isdecimal() else ''}{number}"

    @property
    def each(self) -> int:
        """Bytes per partition: whole MiB, with 1 MiB left free at the start of the device."""
        return ((self.size >> 20) - 1) // self.count << 20

    def _extent(self, number: int) -> tuple[int, int]:
        """Return start and length of partition `number` in sectors."""
        return ((1 << 20) + (number - 1) * self.each) // 512, self.each // 512

    def _numbers(self) -> list[int]:
        """List the present partitions whose extents are exactly those that `apply` makes."""
        name = Path(self.device).name
        numbers = []
        for number in range(1, self.count + 1):
            base = Path("/sys/class/block") / name / Path(self.node(number)).name
            with contextlib.suppress(OSError):
                extent = int((base / "start").read_text()), int((base / "size").read_text())
                if extent == self._extent(number):
                    numbers.append(number)
        return numbers

    def show(self) -> str:
        """See Change."""
        return f"{self.device} has {len(self._numbers())} partitions"

    def apply(self, do: Executor) -> None:
        """Add the partitions."""
        for number in range(1, self.count + 1):
            start, length = self._extent(number)
            do.run(["addpart", self.device, str(number), str(start), str(length)])

    def undo(self, do: Executor) -> None:
        """Remove the partitions that are present."""
        numbers = range(1, self.count + 1) if do.dry else self._numbers()
        for number in numbers:
            try:
                do.run(["delpart", self.device, str(number)])
            except CommandFailed as error:
                raise NotUndone(f"{self.node(number)} cannot be removed: {error}") from None


class TempDir(Change):
    """A directory of fscale, which an undo removes with its content."""

    kind: Literal["temp_dir"] = "temp_dir"
    path: Path

    def show(self) -> str:
        """See Change."""
        return f"{self.path} {'exists' if self.path.exists() else 'does not exist'}"

    def apply(self, do: Executor) -> None:
        """Make the directory."""
        do.mkdir(self.path)

    def undo(self, do: Executor) -> None:
        """Remove the directory, unless something is mounted below it."""
        if mounted := mountpoints(self.path):
            raise NotUndone(f"{self.path} cannot be removed: {mounted[0]} is still mounted")
        do.rmtree(self.path)


class Cgroup(Change):
    """A cgroup (v2) of fscale, and the processes in it."""

    kind: Literal["cgroup"] = "cgroup"
    path: Path

    def show(self) -> str:
        """See Change."""
        return f"{self.path} has {len(processes.in_cgroup(self.path))} processes"

    def apply(self, do: Executor) -> None:
        """Make the cgroup."""
        do.mkdir(self.path)

    def kill(self, timeout: float = _DYING) -> list[int]:
        """Kill its processes; return those that do not die within `timeout` seconds."""
        with contextlib.suppress(OSError):  # before Linux 5.14 there is no cgroup.kill
            (self.path / "cgroup.kill").write_text("1")
        return processes.kill(lambda: processes.in_cgroup(self.path), timeout)

    def undo(self, do: Executor) -> None:
        """Kill its processes and remove it."""
        if do.dry:
            do.rmdir(self.path)
            return
        if left := self.kill():
            raise NotUndone(
                "; ".join(processes.describe_stuck(pid) for pid in left), fault="filesystem"
            )
        for attempt in range(50):  # a dead process keeps its cgroup busy for a moment
            try:
                do.rmdir(self.path)
                return
            except OSError as error:
                if attempt == 49:
                    raise NotUndone(f"{self.path} cannot be removed: {error.strerror}") from None
                time.sleep(0.02)


class RunProcesses(Change):
    """The processes of a run, identified by its tag."""

    kind: Literal["processes"] = "processes"
    tag: str

    def show(self) -> str:
        """See Change."""
        return f"{len(processes.tagged(self.tag))} processes of run {self.tag}"

    def apply(self, do: Executor) -> None:
        """Do nothing: the run starts its processes later."""

    def kill(self, timeout: float = _DYING) -> list[int]:
        """Kill them; return those that do not die within `timeout` seconds."""
        return processes.kill(lambda: processes.tagged(self.tag), timeout)

    def undo(self, do: Executor) -> None:
        """Kill them."""
        if not do.dry and (left := self.kill()):
            raise NotUndone("; ".join(processes.describe_stuck(pid) for pid in left))


class Module(Change):
    """A kernel module is loaded that was not loaded before."""

    kind: Literal["module"] = "module"
    name: str
    parameters: list[str]

    def show(self) -> str:
        """See Change."""
        loaded = (Path("/sys/module") / self.name).exists()
        return f"module {self.name} is {'loaded' if loaded else 'not loaded'}"

    def apply(self, do: Executor) -> None:
        """Load the module."""
        do.run(["modprobe", self.name, *self.parameters])

    def undo(self, do: Executor) -> None:
        """Unload the module."""
        if do.dry or (Path("/sys/module") / self.name).exists():
            try:
                do.run(["modprobe", "-r", self.name])
            except CommandFailed as error:
                raise NotUndone(str(error)) from None


class NullBlock(Change):
    """A memory-backed null_blk device, made in configfs. `size` is in bytes."""

    kind: Literal["null_blk"] = "null_blk"
    name: str
    size: int
    latency_ns: int = 0
    queue_depth: int = 64

    @property
    def _directory(self) -> Path:
        return NULLB / self.name

    def show(self) -> str:
        """See Change."""
        return f"{self._directory} {'exists' if self._directory.exists() else 'does not exist'}"

    def apply(self, do: Executor) -> None:
        """Make the device and power it on."""
        do.mkdir(self._directory)
        values = {
            "memory_backed": 1,
            "size": self.size >> 20,
            "hw_queue_depth": self.queue_depth,
        }
        if self.latency_ns:
            # irqmode 2: a timer completes each request (Documentation/block/null_blk.rst).
            values |= {"irqmode": 2, "completion_nsec": self.latency_ns}
        for key, value in {**values, "power": 1}.items():
            do.write(self._directory / key, str(value))

    def undo(self, do: Executor) -> None:
        """Power the device off and remove it."""
        if do.dry or self._directory.exists():
            do.write(self._directory / "power", "0")
            do.rmdir(self._directory)


class KernelFile(Change):
    """The value of a file below /sys or /proc/sys is changed."""

    kind: Literal["kernel_file"] = "kernel_file"
    path: Path
    value: str
    before: str

    def show(self) -> str:
        """See Change."""
        return f"{self.path} contains {sysfs.text(self.path)}"

    def apply(self, do: Executor) -> None:
        """Write the value."""
        do.write(self.path, self.value)

    def undo(self, do: Executor) -> None:
        """Write the previous value, unless the file has disappeared with its device."""
        if do.dry:
            do.write(self.path, self.before)
            return
        there = sysfs.text(self.path)
        if there is None or same_value(there, self.before):
            return
        try:
            do.write(self.path, self.before)
        except OSError as error:
            raise NotUndone(
                f"{self.path} cannot be set back to {self.before}: {error.strerror}"
            ) from None
        if not same_value(there := sysfs.text(self.path) or "", self.before):
            raise NotUndone(f"{self.path} still contains {there}, and not {self.before} as before")
