# SPDX-License-Identifier: GPL-2.0-only
"""What is on the device when an operation returns."""

import os

from tests.lanefs.functions.harness import Place, equal, long_test, run
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
