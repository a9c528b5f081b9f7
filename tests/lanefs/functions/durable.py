# SPDX-License-Identifier: GPL-2.0-only
"""What is on the device when an operation returns."""

import mmap
import os
from pathlib import Path

from tests.lanefs.functions.files import BLOCK
from tests.lanefs.functions.harness import Place, check, equal, long_test, open_direct, run
from tests.lanefs.functions.loop import attached, loop_device, mounted


@long_test
def dirsync_makes_names_durable(place: Place) -> None:
    """A copy of the device, as after a power cut, has every name that an operation returned for."""
    with loop_device(place, 320) as (device, backing):
        copy = backing.with_name("copy")
        with mounted(place, device, "dirsync") as mount:
            (mount / "d").mkdir()
            for name in ("made", "moved", "removed", "linked"):
                (mount / "d" / name).touch()
            (mount / "d" / "moved").rename(mount / "renamed")
            os.link(mount / "d" / "linked", mount / "link")
            (mount / "d" / "removed").unlink()
            os.symlink("x" * 300, mount / "long")
            run("cp", "--sparse=always", str(backing), str(copy))
        with attached(copy) as again, mounted(place, again) as mount:
            equal(sorted(os.listdir(mount / "d")), ["linked", "made"], "names of the directory")
            names = set(os.listdir(mount)) - {"lost+found"}
            equal(names, {"d", "link", "long", "renamed"}, "names of the root")
            equal(os.readlink(mount / "long"), "x" * 300, "a long symbolic link")


def _flushes(device: str) -> int:
    """How often the cache of this disk was flushed."""
    return int(Path(f"/sys/block/{Path(device).name}/stat").read_text().split()[15])


@long_test
def a_synchronous_direct_write_flushes_once(place: Place) -> None:
    """An overwrite with O_DIRECT and O_DSYNC costs one flush."""
    writes = 200
    with loop_device(place, 320) as (device, _), mounted(place, device) as mount:
        path = mount / "f"
        path.write_bytes(b"x" * 16 * BLOCK)
        os.sync()
        fd = open_direct(path, os.O_RDWR | os.O_DSYNC)
        with mmap.mmap(-1, BLOCK) as block:
            os.pwritev(fd, [block], 0)
            before = _flushes(device)
            for number in range(writes):
                os.pwritev(fd, [block], number % 16 * BLOCK)
            flushes = _flushes(device) - before
        os.close(fd)
        check(writes <= flushes < writes * 1.2, f"{flushes} flushes for {writes} writes")
