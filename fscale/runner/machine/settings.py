# SPDX-License-Identifier: GPL-2.0-only
"""The changes that fscale makes to a machine, one class each.

`apply` makes the change. `undo` puts the machine back and may be called at any time after the
change was journaled: before `apply`, in the middle of it, or twice. `show` says what is there now.
"""

import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from fscale.model.bench import Strict
from fscale.model.kernelfile import same
from fscale.system import mountinfo, processes, sysfs
from fscale.system.executor import CommandFailed, Executor
from fscale.system.kernellog import KernelLog
from fscale.system.powers import CPUS

NULLB = Path("/sys/kernel/config/nullb")

# Seconds that an undo tries for. What hangs in the kernel does not get better by waiting, and there
# may be ten things to undo behind it.
_BUSY = 3.0
_DYING = 3.0


class NotUndone(CommandFailed):
    """A change is still there; the text says why."""


def insist(change: Callable[[], None], seconds: float) -> OSError | None:
    """Make a change that the kernel may refuse for a while, such as EBUSY of a CPU.

    Returns the last refusal, or None where there was none; raises it when they do not end within
    `seconds`.
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
    """Mount points at or below a directory, in mount order, one entry a mount."""
    targets = [Path(line.target) for line in mountinfo.read()]
    return [target for target in targets if target == below or below in target.parents]


class Setting(Strict):
    """One change. The subclasses' fields are what the journal keeps."""

    def show(self) -> str:
        """The state of the machine that this change is about, for people."""
        raise NotImplementedError

    def apply(self, do: Executor) -> None:
        """Make the change."""
        raise NotImplementedError

    def undo(self, do: Executor) -> None:
        """Put the machine back; raises NotUndone when it cannot."""
        raise NotImplementedError


class CpuOffline(Setting):
    """A CPU that was online is taken off."""

    kind: Literal["cpu_offline"] = "cpu_offline"
    cpu: int

    @property
    def _file(self) -> Path:
        return CPUS / f"cpu{self.cpu}" / "online"

    @property
    def online(self) -> bool:
        """Whether it is there."""
        return self._file.read_text().strip() == "1"

    def show(self) -> str:
        """Online or offline."""
        return f"CPU {self.cpu} is {'online' if self.online else 'offline'}"

    def apply(self, do: Executor) -> None:
        """Take it off."""
        do.write(self._file, "0")

    def undo(self, do: Executor) -> None:
        """Bring it back, trying for a while where the kernel refuses."""
        try:
            if do.dry or not self.online:
                insist(lambda: do.write(self._file, "1"), _BUSY)
        except OSError as error:
            raise NotUndone(
                f"the kernel refuses to bring CPU {self.cpu} online ({error.strerror})"
            ) from None


class Mount(Setting):
    """A file system is mounted, at a directory that is ours unless `own` is false."""

    kind: Literal["mount"] = "mount"
    source: str
    target: Path
    fstype: str
    options: list[str] = Field(default=[])
    own: bool = True

    def show(self) -> str:
        """Whether something is mounted there."""
        state = "mounted" if self.target in mountpoints(self.target) else "not mounted"
        return f"{self.target} is {state}"

    def apply(self, do: Executor) -> None:
        """Make the directory where it is ours, and mount."""
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
                raise CommandFailed(f"{error}{log.about(*words)}") from None

    def undo(self, do: Executor) -> None:
        """Unmount, trying for a while where it is busy, and remove the directory that is ours."""
        if do.dry:
            do.run(["umount", str(self.target)])
        deadline = time.monotonic() + _BUSY
        while not do.dry and self.target in mountpoints(self.target):
            try:
                # A first unmount writes back all that the workload left dirty.
                do.run(["umount", str(self.target)], timeout=120)
            except CommandFailed as error:
                if time.monotonic() > deadline:
                    raise NotUndone(f"{self.target} cannot be unmounted: {error}") from None
                time.sleep(0.2)
        if self.own:
            do.rmdir(self.target)


class LoopDevice(Setting):
    """A loop device is attached to a file of ours."""

    kind: Literal["loop"] = "loop"
    file: Path
    direct_io: bool

    def devices(self) -> list[str]:
        """The loop devices that have this file behind them."""
        out = Executor().run(["losetup", "--json", "--list", "--output", "NAME,BACK-FILE"])
        listed = json.loads(out)["loopdevices"] if out.strip() else []
        # The kernel adds " (deleted)" once the file is gone.
        names = {str(self.file), f"{self.file} (deleted)"}
        return [item["name"] for item in listed if item["back-file"] in names]

    def show(self) -> str:
        """The devices."""
        return f"{self.file} is behind {', '.join(self.devices()) or 'no loop device'}"

    def apply(self, do: Executor) -> None:
        """Attach the first free device."""
        argv = ["losetup", "--find", "--show", "--nooverlap"]
        argv += [f"--direct-io={'on' if self.direct_io else 'off'}"]
        do.run([*argv, str(self.file)], dry_output="/dev/loopN\n")

    def undo(self, do: Executor) -> None:
        """Detach, and wait until the kernel has really let go."""
        if do.dry:
            do.run(["losetup", "--detach", "/dev/loopN"])
            return
        deadline = time.monotonic() + _BUSY
        tried = False
        while devices := self.devices():
            # In an emulated guest the clock may leap while losetup is read from the disk.
            if tried and time.monotonic() > deadline:
                raise NotUndone(f"{', '.join(devices)} is still in use")
            for device in devices:
                with contextlib.suppress(CommandFailed):
                    do.run(["losetup", "--detach", device])
            tried = True
            time.sleep(0.05)


class Partitions(Setting):
    """A block device of ours is cut into equal partitions that only the kernel knows of.

    No partition table is written: BLKPG tells the kernel where they lie.
    """

    kind: Literal["partitions"] = "partitions"
    device: str
    count: int
    size: int  # of the device, bytes

    def node(self, number: int) -> str:
        """The device of partition `number`, from 1."""
        return f"{self.device}{'p' if self.device[-1].isdigit() else ''}{number}"

    @property
    def each(self) -> int:
        """Bytes of a partition: whole MiB, with 1 MiB left free at the start of the device."""
        return ((self.size >> 20) - 1) // self.count << 20

    def _extent(self, number: int) -> tuple[int, int]:
        """Start and length of partition `number` in sectors."""
        return ((1 << 20) + (number - 1) * self.each) // 512, self.each // 512

    def _numbers(self) -> list[int]:
        """Our partitions that are there: the ones that lie exactly where ours do."""
        name = Path(self.device).name
        found = []
        for number in range(1, self.count + 1):
            base = Path("/sys/class/block") / name / Path(self.node(number)).name
            with contextlib.suppress(OSError):
                extent = int((base / "start").read_text()), int((base / "size").read_text())
                if extent == self._extent(number):
                    found.append(number)
        return found

    def show(self) -> str:
        """How many partitions there are."""
        return f"{self.device} has {len(self._numbers())} partitions"

    def apply(self, do: Executor) -> None:
        """Add them."""
        for number in range(1, self.count + 1):
            start, length = self._extent(number)
            do.run(["addpart", self.device, str(number), str(start), str(length)])

    def undo(self, do: Executor) -> None:
        """Remove those that are there."""
        numbers = range(1, self.count + 1) if do.dry else self._numbers()
        for number in numbers:
            try:
                do.run(["delpart", self.device, str(number)])
            except CommandFailed as error:
                raise NotUndone(f"{self.node(number)} is still there: {error}") from None


class TempDir(Setting):
    """A directory of ours, removed with all that is in it."""

    kind: Literal["temp_dir"] = "temp_dir"
    path: Path

    def show(self) -> str:
        """Whether it is there."""
        return f"{self.path} {'exists' if self.path.exists() else 'does not exist'}"

    def apply(self, do: Executor) -> None:
        """Make it."""
        do.mkdir(self.path)

    def undo(self, do: Executor) -> None:
        """Remove it, unless something is mounted below."""
        if mounted := mountpoints(self.path):
            raise NotUndone(f"{self.path} is not removed: {mounted[0]} is still mounted")
        do.rmtree(self.path)


class Cgroup(Setting):
    """A cgroup (v2) of ours and the processes in it."""

    kind: Literal["cgroup"] = "cgroup"
    path: Path

    def show(self) -> str:
        """Its processes."""
        return f"{self.path} has {len(processes.in_cgroup(self.path))} processes"

    def apply(self, do: Executor) -> None:
        """Make it."""
        do.mkdir(self.path)

    def kill(self, timeout: float = _DYING) -> list[int]:
        """End its processes; returns the ones that cannot be ended."""
        with contextlib.suppress(OSError):  # before Linux 5.14 there is no cgroup.kill
            (self.path / "cgroup.kill").write_text("1")
        return processes.kill(lambda: processes.in_cgroup(self.path), timeout)

    def undo(self, do: Executor) -> None:
        """End its processes and remove it."""
        if do.dry:
            do.rmdir(self.path)
            return
        if left := self.kill():
            raise NotUndone("; ".join(processes.where(pid) for pid in left))
        for attempt in range(50):  # a dead process holds its cgroup for a moment
            try:
                do.rmdir(self.path)
                return
            except OSError as error:
                if attempt == 49:
                    raise NotUndone(f"{self.path} cannot be removed: {error.strerror}") from None
                time.sleep(0.02)


class Processes(Setting):
    """The processes of a run, known by their tag."""

    kind: Literal["processes"] = "processes"
    tag: str

    def show(self) -> str:
        """How many there are."""
        return f"{len(processes.tagged(self.tag))} processes of run {self.tag}"

    def apply(self, do: Executor) -> None:
        """Nothing yet: they come one by one."""

    def kill(self, timeout: float = _DYING) -> list[int]:
        """End them; returns the ones that cannot be ended."""
        return processes.kill(lambda: processes.tagged(self.tag), timeout)

    def undo(self, do: Executor) -> None:
        """End them."""
        if not do.dry and (left := self.kill()):
            raise NotUndone("; ".join(processes.where(pid) for pid in left))


class Module(Setting):
    """A kernel module that was not loaded is loaded."""

    kind: Literal["module"] = "module"
    name: str
    parameters: list[str]

    def show(self) -> str:
        """Loaded or not."""
        loaded = (Path("/sys/module") / self.name).exists()
        return f"module {self.name} is {'loaded' if loaded else 'not loaded'}"

    def apply(self, do: Executor) -> None:
        """Load it."""
        do.run(["modprobe", self.name, *self.parameters])

    def undo(self, do: Executor) -> None:
        """Unload it."""
        if do.dry or (Path("/sys/module") / self.name).exists():
            try:
                do.run(["modprobe", "-r", self.name])
            except CommandFailed as error:
                raise NotUndone(str(error)) from None


class NullBlock(Setting):
    """A null_blk device that keeps its data, made in configfs."""

    kind: Literal["null_blk"] = "null_blk"
    name: str
    size: int
    latency_ns: int = 0
    queue_depth: int = 64

    @property
    def _directory(self) -> Path:
        return NULLB / self.name

    def show(self) -> str:
        """Whether it is there."""
        return f"{self._directory} {'exists' if self._directory.exists() else 'does not exist'}"

    def apply(self, do: Executor) -> None:
        """Make it and switch it on."""
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
        """Switch it off and remove it."""
        if do.dry or self._directory.exists():
            do.write(self._directory / "power", "0")
            do.rmdir(self._directory)


class KernelFile(Setting):
    """A file below /sys or /proc/sys that holds one setting has another value."""

    kind: Literal["kernel_file"] = "kernel_file"
    path: Path
    value: str
    before: str

    def show(self) -> str:
        """What it says."""
        return f"{self.path} says {sysfs.text(self.path)}"

    def apply(self, do: Executor) -> None:
        """Write the value."""
        do.write(self.path, self.value)

    def undo(self, do: Executor) -> None:
        """Write what was there before; a file that is gone, with its device, has nothing left."""
        if do.dry:
            do.write(self.path, self.before)
            return
        there = sysfs.text(self.path)
        if there is None or same(there, self.before):
            return
        try:
            do.write(self.path, self.before)
        except OSError as error:
            raise NotUndone(f"{self.path} takes no {self.before}: {error.strerror}") from None
        if not same(there := sysfs.text(self.path) or "", self.before):
            raise NotUndone(f"{self.path} says {there}, and said {self.before} before")


AnySetting = Annotated[
    CpuOffline
    | Mount
    | LoopDevice
    | Partitions
    | TempDir
    | Cgroup
    | Processes
    | Module
    | NullBlock
    | KernelFile,
    Field(discriminator="kind"),
]
