# SPDX-License-Identifier: GPL-2.0-only
"""A file system on a RAM disk of the guest: made, mounted, checked."""

import ctypes
import fcntl
import os
import re
import struct
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fscale.model.config import FileSystem
from fscale.vm.crashtest import map_device

MOUNT = Path("/mnt")
RAM = [Path(f"/dev/ram{n}") for n in range(4)]
_NULL_BLK = Path("/sys/kernel/config/nullb/nullb0")
_MS_RDONLY = 1
_libc = ctypes.CDLL(None, use_errno=True)
_IOC_SHUTDOWN = 0x8004587D
# What a shutdown keeps: everything, the log, or what is on the device.
SHUTDOWN_SYNC, SHUTDOWN_LOG, SHUTDOWN_NOW = 0, 1, 2
QUEUE_DEPTH = 1023
"""requests that the slow disk takes at a time: as NVMe disks do"""


class Fault(Exception):  # noqa: N818 - it says what happened
    """The file system or one of its tools did something wrong."""


@dataclass(frozen=True)
class Volume:
    """A file system and the device that it is on."""

    fs: FileSystem
    device: str
    options: Sequence[str] = ()
    """more mount options"""

    def make(self, *arguments: str) -> None:
        """Run mkfs, with more arguments before the device."""
        argv = [a.replace("{device}", self.device) for a in self.fs.mkfs]
        command([*argv[:-1], *arguments, argv[-1]])

    def mount(self) -> None:
        """Mount at MOUNT."""
        options = ",".join([*self.fs.mount_options, *self.options])
        command(["mount", "-t", self.fs.kernel, "-o", options, self.device, str(MOUNT)])

    def unmount(self) -> None:
        """Unmount."""
        command(["umount", str(MOUNT)])

    def check(self) -> None:
        """Run fsck, which must find nothing; Fault with what it says."""
        command(self.checker())

    def checker(self) -> list[str]:
        """The check command."""
        argv = self.fs.check or self.fs.fsck
        return [a.replace("{device}", self.device) for a in argv]

    @contextmanager
    def mounted(self) -> Iterator[Path]:
        """Mounted, and afterwards unmounted and checked."""
        self.mount()
        try:
            yield MOUNT
        except BaseException:
            # The first fault counts.
            subprocess.run(["umount", str(MOUNT)], capture_output=True, check=False)
            raise
        self.unmount()
        self.check()


def command(argv: Sequence[str], timeout: float = 600) -> str:
    """Run a command that must succeed; Fault with its words."""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        raise Fault(f"{' '.join(argv)} did not end within {timeout:.0f} s") from None
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip()[-2000:]
        raise Fault(f"{' '.join(argv)} ends with {done.returncode}: {said}")
    return done.stdout


@contextmanager
def volume(fs: FileSystem, mib: int, options: Sequence[str]) -> Iterator[Volume]:
    """A device of `mib` MiB for the file system; nothing is on it."""
    with map_device("fscale-test", f"0 {mib * 2048} linear {RAM[0]} 0") as device:
        yield Volume(fs, device, options)


@contextmanager
def null_blk(disk: Path, mib: int, **settings: int) -> Iterator[None]:
    """A disk in memory with these settings; `disk` is its directory in configfs."""
    disk.mkdir()
    try:
        for name, value in {"size": mib, "memory_backed": 1, **settings, "power": 1}.items():
            (disk / name).write_text(str(value))
        yield
    finally:
        (disk / "power").write_text("0")
        disk.rmdir()


@contextmanager
def slow_disk(mib: int, milliseconds: int) -> Iterator[str]:
    """A disk in memory, each of whose reads, writes and flushes takes so long.

    It is a null_blk with a volatile cache, a timer for each request, and a queue that no load
    fills. (dm-delay's thread runs without a pause while a delay is short, on a CPU where a task
    is.)
    """
    command(["modprobe", "null_blk", "nr_devices=0"])
    timer = {"irqmode": 2, "completion_nsec": milliseconds * 1_000_000}
    with null_blk(_NULL_BLK, mib, cache_size=mib, hw_queue_depth=QUEUE_DEPTH, **timer):
        yield f"/dev/{_NULL_BLK.name}"


def shut_down(path: Path, keep: int) -> None:
    """Stop the file system that `path` is on; OSError where it cannot, or may not."""
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.ioctl(fd, _IOC_SHUTDOWN, struct.pack("=I", keep))
    finally:
        os.close(fd)


@contextmanager
def kernel_messages() -> Iterator[Callable[[], str]]:
    """What the kernel has said since the beginning, or since the last call; without a program."""
    fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    try:
        os.lseek(fd, 0, os.SEEK_END)
        yield lambda: "".join(_records(fd))
    finally:
        os.close(fd)


def _records(fd: int) -> Iterator[str]:
    """The text of each record of /dev/kmsg (Documentation/ABI/testing/dev-kmsg)."""
    with suppress(BlockingIOError):
        while record := os.read(fd, 8192):
            yield record.decode(errors="replace").partition(";")[2]


def mount_read_only(kind: str, device: str, options: str) -> None:
    """Mount at MOUNT without a program, which an emulated guest takes long to start; or Fault."""
    argument = (device.encode(), bytes(MOUNT), kind.encode(), _MS_RDONLY, options.encode())
    if _libc.mount(*argument) != 0:
        raise Fault(f"mount -t {kind} -o ro,{options}: {os.strerror(ctypes.get_errno())}")


def unmount() -> None:
    """Unmount MOUNT in the same way."""
    if _libc.umount2(bytes(MOUNT), 0) != 0:
        raise Fault(f"umount {MOUNT}: {os.strerror(ctypes.get_errno())}")


def make_ram_disks(mib: int) -> None:
    """The RAM disks of this guest; they take memory as they are filled."""
    command(["modprobe", "brd", f"rd_nr={len(RAM)}", f"rd_size={mib << 10}", "max_part=0"])


def warned() -> bool:
    """Whether the kernel has given a warning (its taint bit W) since it booted."""
    return bool(int(Path("/proc/sys/kernel/tainted").read_text()) & 1 << 9)


def lockdep_off() -> bool:
    """Whether the kernel has lockdep, and it watches no longer (it ends with its first report)."""
    stats = Path("/proc/lockdep_stats")
    return stats.exists() and re.search(r"debug_locks: +1$", stats.read_text(), re.M) is None


def drop_caches() -> None:
    """What is read next comes from the device."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")


def available() -> int:
    """Bytes of memory that can be had."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    found = dict(line.split(":") for line in lines)
    return int(found["MemAvailable"].split()[0]) << 10


def reads(device: str) -> int:
    """Requests to read that the device has ended."""
    return int(Path(f"/sys/block/{Path(device).name}/stat").read_text().split()[0])
