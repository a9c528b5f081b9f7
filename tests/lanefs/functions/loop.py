# SPDX-License-Identifier: GPL-2.0-only
"""A second file system, on a loop device, for tests that need one of a size, or change it."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fscale.model import catalogue
from tests.lanefs.functions.harness import Place, run


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
    with tempfile.TemporaryDirectory(dir="/run") as directory:
        backing = Path(directory) / "backing"
        with backing.open("wb") as file:
            file.truncate(mib << 20)
        with attached(backing) as device:
            mkfs = catalogue.load_filesystem(place.filesystem).mkfs
            argv = [word.replace("{device}", device) for word in mkfs]
            if domains and place.filesystem == "lanefs":
                argv[-1:-1] = ["--domains", str(domains)]
            if journal and place.filesystem == "lanefs":
                argv[-1:-1] = ["--journal", journal]
            if inodes and place.filesystem == "lanefs":
                argv[-1:-1] = ["--inodes", str(inodes)]
            if alloc and place.filesystem == "lanefs":
                argv[-1:-1] = ["--alloc", alloc]
            run(*argv)
            yield device, backing


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
    finally:
        run("umount", str(point))
