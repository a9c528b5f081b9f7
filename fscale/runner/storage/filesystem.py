# SPDX-License-Identifier: GPL-2.0-only
"""Formats, mounts and checks a file system as described by its TOML file."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from fscale.model.config import FileSystem
from fscale.model.errors import FscaleError
from fscale.model.mount import group, without_effect
from fscale.model.results import Mounted
from fscale.runner.machine import numa
from fscale.runner.machine.changes import Mount
from fscale.runner.storage import lazy
from fscale.system.environment import of_children
from fscale.system.executor import CommandFailed, Executor, which

EXT = ("ext2", "ext3", "ext4")


def missing(fs: FileSystem) -> str | None:
    """Return why this machine cannot use the file system, and what to do; None if it can."""
    tools = [*fs.mkfs[:1], *fs.check[:1], *fs.needs]
    absent = [tool for tool in tools if which(tool) is None]
    if absent:
        hint = f"; apt-get install {fs.package}" if fs.package else ""
        if fs.source:
            hint = "; guests build it from source: fscale vm run"
        verb = "is" if len(absent) == 1 else "are"
        return f"{', '.join(absent)} {verb} not installed{hint}"
    if not kernel_has(fs.kernel):
        return f"this kernel does not support {fs.kernel} (not in /proc/filesystems, no module)"
    return None


def kernel_has(name: str) -> bool:
    """Return whether the kernel supports a file system, or has a module for it."""
    known = [line.split()[-1] for line in Path("/proc/filesystems").read_text().splitlines()]
    if name in known:
        return True
    if which("modprobe") is None:
        return False
    try:
        Executor().run(["modprobe", "--dry-run", "--quiet", f"fs-{name}"])
    except CommandFailed:
        return False
    return True


def make(fs: FileSystem, device: str, do: Executor) -> None:
    """Format a device, and wait until udev has examined it.

    Raises:
        CommandFailed: mkfs failed.
    """
    argv = [argument.replace("{device}", device) for argument in fs.mkfs]
    try:
        do.run(argv, timeout=600)
    except CommandFailed as error:
        raise CommandFailed(_hinted(fs, str(error)), fault=error.blamed) from None
    settle(device, do)


def settle(device: str, do: Executor) -> None:
    """Wait until what was written to a device is there, and udev has examined it."""
    _flush(device, do)
    if Path("/run/udev/control").exists() and which("udevadm"):
        do.run(["udevadm", "settle", "--timeout=10"])


def _flush(device: str, do: Executor) -> None:
    """Write back and drop a device's page cache.

    The kernel does this on the last close of the device, but a run keeps the device open. Without
    it, a file system that bypasses this cache would miss what mkfs wrote, and its checker would
    read the state from before the mount.
    """
    do.run(["blockdev", "--flushbufs", device])


def mount(fs: FileSystem, device: str | None, target: Path, size: int) -> Mount:
    """Describe the mount of a file system of `size` bytes; without a device it is in memory."""
    options = [option.replace("{size}", str(size)) for option in fs.mount_options]
    options += numa.mount_options(fs.numa)
    return Mount(source=device or "fscale", target=target, fstype=fs.kernel, options=options)


def without_lazy_writes(fs: FileSystem, node: Path, options: list[str]) -> list[str]:
    """Return mount options with which no kernel thread writes what mkfs deferred.

    Raises:
        FscaleError: the options request that thread.
    """
    left = lazy.unwritten(node) if fs.kernel in EXT else 0
    if not left or "noinit_itable" in options:
        return options
    if any(option.startswith("init_itable") for option in options):
        raise FscaleError(
            f"{left} inode tables of {fs.title} are not initialised, and with init_itable a kernel "
            "thread writes them during the load; leave init_itable out, or add "
            "-E lazy_itable_init=0 to mkfs",
            fault="user",
        )
    return [*options, "noinit_itable"]


def refuse_without_effect(fs: FileSystem, mounted: Mounted) -> None:
    """Check that the mount options of the TOML file are in effect.

    Raises:
        FscaleError: the kernel shows another value for one of them.
    """
    asked = [option for option in fs.mount_options if "{size}" not in option]
    if wrong := without_effect(asked, mounted.options):
        groups = {group(option) for option in wrong}
        shown = [option for option in mounted.options if group(option) in groups]
        raise FscaleError(
            f"mount option {', '.join(wrong)} of {fs.title} had no effect: the kernel shows "
            f"{', '.join(shown) or 'no such option'}; leave it out or correct it",
            fault="user",
        )


@contextlib.contextmanager
def checked(fs: FileSystem, device: str | None, do: Executor) -> Iterator[None]:
    """Check the file system after the `with` block, which mounts and unmounts it.

    There is no check if the block raises an error.

    Raises:
        CommandFailed: the checker finds damage; the text contains its output.
    """
    yield
    if device and fs.check:
        _flush(device, do)
        argv = [argument.replace("{device}", device) for argument in fs.check]
        try:
            do.run(argv, timeout=600)
        except CommandFailed as error:
            raise CommandFailed(
                f"{fs.title} is damaged after the cell: {error}", fault=error.blamed
            ) from None


def _hinted(fs: FileSystem, message: str) -> str:
    return f"{message}; {fs.error_hint}" if fs.error_hint else message


def version(fs: FileSystem) -> str | None:
    """Return the first line that mkfs prints about its version; None if unknown."""
    program = which(fs.version[0]) if fs.version else None
    if program is None:
        return None
    # Some programs print it on standard error, which Executor.run does not return.
    done = subprocess.run(
        [program, *fs.version[1:]],
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
        env=of_children(),
    )
    said = (done.stdout.strip() or done.stderr.strip()).splitlines()
    return said[0].strip() if said and not done.returncode else None
