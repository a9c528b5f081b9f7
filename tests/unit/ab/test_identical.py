# SPDX-License-Identifier: GPL-2.0-only
"""Two texts that say the same thing are refused before they are measured; a difference is not."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from fscale.ab.identical import refuse_identical
from fscale.ab.point import PairedPoint
from fscale.model import catalogue, mkfs, mount
from fscale.model.errors import FscaleError
from fscale.model.results import Cell, CellKey, Mounted
from fscale.runner.session import Session
from tests.support.synthetic import cell, key

DEFAULTS = ["barrier", "commit=5", "data=ordered", "delalloc", "rw"]


class Machine:
    """In the place of a Session: mounts as an ext4 with these defaults would."""

    def __init__(self) -> None:
        self.setup: Any = None
        self.described: dict[str, str] = {}
        self.looked = 0
        self.fails = False
        self.shows: dict[str, str] = {"Filesystem features": "extent metadata_csum"}

    def look(self, asked: CellKey) -> Cell | None:
        self.looked += 1
        if self.fails:
            return None
        fs = self.setup.filesystems[asked.filesystem]
        self.described = {**self.shows, "Filesystem UUID": str(self.looked)}
        seen = [o for o in fs.mount_options if not o.startswith("journal_ioprio")]
        found = cell(asked, 1.0)
        found.mount = Mounted(
            fstype="ext4",
            source="/dev/loop0",
            root="/",
            options=sorted(mount.merge(DEFAULTS, seen)),
        )
        return found


def judged(base: str, new: str, machine: Machine | None = None, **versions: str) -> Machine:
    machine = machine or Machine()
    sides = {"A": base, "B": new}
    setups = {
        side: SimpleNamespace(filesystems={text: catalogue.load_filesystem(text)})
        for side, text in sides.items()
    }
    point = PairedPoint(key(filesystem=base), key(filesystem=new))
    run = SimpleNamespace(suite={"base": base, "new": new}, versions=versions)
    plan = SimpleNamespace(setups=setups, points=[point], run=run)
    refuse_identical(cast("Any", plan), cast("Session", machine))
    return machine


@pytest.mark.parametrize(
    "new",
    [
        "ext4:mount=noatime",
        "ext4:mount=data=ordered",
        "ext4:mount=barrier",
        "ext4:mount=delalloc,commit=5",
        "ext4:mkfs=-O metadata_csum",
        "ext4:mkfs=-q",
        "ext4:mkfs=-b 4096",
    ],
)
def test_the_same_thing_twice_is_refused(new: str) -> None:
    with pytest.raises(FscaleError, match="describe the same file system") as caught:
        judged("ext4", new)
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("new", "looked"),
    [
        ("ext4", 0),
        ("xfs", 0),
        ("ext4:2", 0),
        ("ext4:mkfs=-E stride=16", 0),
        ("ext4:mount=relatime", 2),
        ("ext4:mount=data=journal", 2),
        ("ext4:mount=journal_ioprio=3", 2),
    ],
)
def test_what_differs_is_measured(new: str, looked: int) -> None:
    assert judged("ext4", new).looked == looked


def test_another_microbenchmark_is_a_difference() -> None:
    assert judged("ext4", "ext4:mount=noatime", **{"fscale-bench of B": "x"}).looked == 0


def test_a_side_that_cannot_be_mounted_is_for_the_comparison_to_say() -> None:
    machine = Machine()
    machine.fails = True
    assert judged("ext4", "ext4:mount=noatime", machine).looked == 1


def test_other_arguments_without_a_description_are_a_difference() -> None:
    machine = Machine()
    machine.shows = {}
    machine.described = {}

    def look(asked: CellKey) -> Cell | None:
        found = Machine.look(machine, asked)
        machine.described = {}
        return found

    machine.look = look  # type: ignore[method-assign]
    assert judged("ext4", "ext4:mkfs=-O metadata_csum", machine).looked == 2


@pytest.mark.parametrize(
    ("one", "other", "unlike"),
    [
        (["mkfs.ext4", "{device}"], ["mkfs.ext4", "-O", "bigalloc", "{device}"], False),
        (["mkfs.ext4", "{device}"], ["mkfs.ext4", "-E", "stride=2", "{device}"], True),
        (["mkfs.ext4", "{device}"], ["mkfs.xfs", "{device}"], True),
        (["mkfs.btrfs", "{device}"], ["mkfs.btrfs", "-m", "single", "{device}"], True),
        (["mkfs.new", "-a", "{device}"], ["mkfs.new", "{device}"], True),
        (["mkfs.new", "{device}"], ["mkfs.new", "{device}"], False),
    ],
)
def test_what_a_description_does_not_show_is_a_difference(
    one: list[str], other: list[str], unlike: bool
) -> None:
    assert mkfs.options_differ(one, other) == unlike
