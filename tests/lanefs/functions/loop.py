# SPDX-License-Identifier: GPL-2.0-only
"""A second file system, on a device of its own, for tests that need one of a size, or change it."""

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from fscale.model import catalogue
from tests.lanefs.device import null_blk
from tests.lanefs.functions.harness import Failed, Place, Skipped, run

_CONFIGFS = Path("/sys/kernel/config")
_NULL_BLK = _CONFIGFS / "nullb"


@contextmanager
def attached(backing: Path) -> Iterator[str]:
    """The loop device of a file."""
    subprocess.run(["modprobe", "loop"], capture_output=True, check=False)
    device = run("losetup", "--find", "--show", str(backing)).strip()
    try:
        yield device
    finally:
        run("losetup", "--detach", device)


@contextmanager
def loop_device(
    place: Place, mib: int, domains: int = 0, journal: str = "", inodes: int = 0, alloc: str = ""
) -> Iterator[tuple[str, Path]]:
    """A loop device with a new file system, and the file behind it.

    On lanefs, of so many domains, each with a journal of that size (`4M`), so many inodes, and
    allocation by `extent` or `log`.
    """
    place.own()
    options = {"domains": domains, "journal": journal, "inodes": inodes, "alloc": alloc}
    with tempfile.TemporaryDirectory(dir="/run") as directory:
        backing = Path(directory) / "backing"
        with backing.open("wb") as file:
            file.truncate(mib << 20)
        with attached(backing) as device:
            _make(place, device, options)
            yield device, backing


def _make(place: Place, device: str, options: Mapping[str, object]) -> None:
    """Run mkfs, on lanefs with those of the options that are set."""
    mkfs = catalogue.load_filesystem(place.filesystem).mkfs
    argv = [word.replace("{device}", device) for word in mkfs]
    if place.filesystem == "lanefs":
        chosen = [(f"--{name}", str(value)) for name, value in options.items() if value]
        argv[-1:-1] = [word for pair in chosen for word in pair]
    run(*argv)


@contextmanager
def _null_blk(place: Place, name: str, mib: int, **settings: int) -> Iterator[Path]:
    """The directory of a disk in memory with these settings, whose `power` is on."""
    place.own()
    subprocess.run(["modprobe", "null_blk", "nr_devices=0"], capture_output=True, check=False)
    if not _NULL_BLK.exists():
        subprocess.run(["mount", "-t", "configfs", "none", str(_CONFIGFS)], check=False)
    if not _NULL_BLK.exists():
        raise Skipped("no null_blk in this kernel")
    disk = _NULL_BLK / name
    with null_blk(disk, mib, blocksize=4096, **settings):
        yield disk


@contextmanager
def slow_device(
    place: Place,
    mib: int,
    seconds: float,
    domains: int = 0,
    *,
    cache: bool = False,
    alloc: str = "",
    queues: int = 1,
) -> Iterator[str]:
    """A disk in memory (null_blk) that takes so many seconds for a request, with a new file system.

    It does many requests at the same time; with `cache` it has a volatile cache, and FUA. With as
    many queues as there are CPUs, no request waits for another CPU. `alloc` is as for
    `loop_device()`.
    """
    timer = {"hw_queue_depth": 64, "irqmode": 2, "completion_nsec": round(seconds * 1e9)}
    timer["submit_queues"] = queues
    cached = {"cache_size": mib} if cache else {}
    with _null_blk(place, "nullb-slow", mib, **timer, **cached) as disk:
        device = f"/dev/{_name(disk)}"
        _make(place, device, {"domains": domains, "alloc": alloc})
        yield device


@contextmanager
def removable_device(place: Place, mib: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """A disk in memory with a new file system, and a function that removes the disk."""
    with _null_blk(place, "nullb-removable", mib) as disk:
        device = f"/dev/{_name(disk)}"
        _make(place, device, {})
        yield device, lambda: (disk / "power").write_text("0") and None


@contextmanager
def scsi_device(place: Place, mib: int) -> Iterator[str]:
    """A disk in memory (scsi_debug) with a new file system; it takes data from any word on."""
    place.own()
    # No udev loads the driver of what is found.
    for argv in (["sd_mod"], ["scsi_debug", f"dev_size_mb={mib}"]):
        if subprocess.run(["modprobe", *argv], capture_output=True, check=False).returncode:
            raise Skipped(f"no {argv[0]} in this kernel")
    try:
        device = f"/dev/{_scsi_name()}"
        _make(place, device, {})
        yield device
    finally:
        run("rmmod", "scsi_debug")


def _scsi_name() -> str:
    """The name of the disk, once the kernel has found it."""
    adapter = Path("/sys/bus/pseudo/drivers/scsi_debug")
    end = time.monotonic() + 10
    while time.monotonic() < end:
        for disk in adapter.glob("adapter*/host*/target*/*/block/*"):
            return disk.name
        time.sleep(0.05)
    raise Failed("the kernel finds no disk of scsi_debug")


def _name(disk: Path) -> str:
    """Linux before 6.4 names a disk by its index, not by its directory."""
    named = Path("/dev") / disk.name
    return named.name if named.exists() else f"nullb{(disk / 'index').read_text().strip()}"


def fsck(place: Place, device: str) -> None:
    """Check what is not mounted; Failed with what is wrong."""
    filesystem = catalogue.load_filesystem(place.filesystem)
    argv = filesystem.check or filesystem.fsck
    run(*[word.replace("{device}", device) for word in argv])


@contextmanager
def mounted(place: Place, device: str, *options: str) -> Iterator[Path]:
    """The device mounted below the test's directory."""
    point = place.directory / "m"
    point.mkdir(exist_ok=True)
    chosen = ["-o", ",".join(options)] if options else []
    run("mount", "-t", place.filesystem, *chosen, device, str(point))
    try:
        yield point
    except BaseException:
        # What a test has left open must not hide why it failed, nor fail those after it.
        run("umount", "--lazy", str(point))
        raise
    run("umount", str(point))
