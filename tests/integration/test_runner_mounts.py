# SPDX-License-Identifier: GPL-2.0-only
"""A user's own mount and those of the runner: what is in effect is recorded, compared, watched."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fscale.analysis.compare.definition import notes
from fscale.analysis.compare.sides import open_sides
from fscale.model.errors import FscaleError
from fscale.model.results import Cell
from fscale.model.store import Store
from fscale.runner.prepare import Prepared, prepare
from fscale.runner.request import Request
from fscale.runner.session import Session, machine_held, new_tag
from fscale.runner.signals import Signals
from fscale.system.executor import Executor
from tests.support.runner import STATE, fake_bench, fscale, suite

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("unchanged")]


class Place:
    """A file system of the user's, mounted as they like."""

    def __init__(self, root: Path) -> None:
        self.image, self.directory = root / "image", root / "mnt"
        self.directory.mkdir()

    def make(self, *mkfs: str) -> None:
        self.image.unlink(missing_ok=True)
        with self.image.open("wb") as file:
            file.truncate(512 << 20)
        subprocess.run([*mkfs, self.image], check=True, capture_output=True)

    def mount(self, options: str) -> None:
        subprocess.run(["mount", "-o", f"loop,{options}", self.image, self.directory], check=True)

    def remount(self, options: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{options}", self.directory], check=True)

    def unmount(self) -> None:
        for _ in range(50):  # busy while what a run left is on its way out
            subprocess.run(["umount", self.directory], check=False, capture_output=True)
            if not self.directory.is_mount():
                return
            time.sleep(0.1)
        raise AssertionError(f"{self.directory} is busy")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(tmp_path)
    found.make("mkfs.ext4", "-q", "-F")
    yield found
    found.unmount()


def prepared(tmp_path: Path, directory: Path, name: str, **changes: object) -> Prepared:
    request = Request(
        suite=suite(tmp_path, **changes),
        output=tmp_path / name,
        binary=fake_bench(tmp_path),
        directory=directory,
    )
    return prepare(request)


def measured(made: Prepared) -> list[Cell]:
    made.store.save_run(made.run)
    session = Session(made.setup, made.store, STATE, Executor(new_tag()), Signals())
    with session.opened():
        return [session.cell(key) for key in made.cells]


def run(tmp_path: Path, directory: Path, name: str) -> Path:
    with machine_held(STATE, print):
        (cell,) = measured(prepared(tmp_path, directory, name))
    assert cell.status == "ok", cell.reason
    return tmp_path / name


def differences(base: Path, new: Path) -> list[str]:
    ours, theirs = Store(base), Store(new)
    runs = ours.load_run(), theirs.load_run()
    assert runs[0]
    assert runs[1]
    return notes(runs[0], runs[1], ours.cells(), theirs.cells(), [])


@pytest.mark.parametrize(
    ("one", "other", "named"),
    [
        ("data=ordered", "data=journal", "data=journal"),
        ("defaults", "nobarrier", "nobarrier"),
        ("defaults", "noatime", "noatime"),
        ("commit=5", "commit=1", "commit=1"),
    ],
)
def test_another_mount_of_one_directory_is_named(
    tmp_path: Path, place: Place, one: str, other: str, named: str
) -> None:
    below = place.directory / "below"
    for name, options in (("one", one), ("other", other)):
        place.mount(options)
        below.mkdir(exist_ok=True)
        run(tmp_path, below, name)
        place.unmount()
    with pytest.raises(FscaleError) as caught:
        differences(tmp_path / "one", tmp_path / "other")
    assert "filesystems.ext4.mount_options" in str(caught.value)
    assert named in str(caught.value)


def test_the_same_mount_again_is_no_difference(tmp_path: Path, place: Place) -> None:
    for name, options in (("one", "noatime,data=journal"), ("other", "data=journal,noatime")):
        place.mount(options)
        run(tmp_path, place.directory, name)
        place.unmount()
    assert not [n for n in differences(tmp_path / "one", tmp_path / "other") if "mount" in n]


def test_a_bind_mount_of_its_own_options_and_another_geometry(tmp_path: Path, place: Place) -> None:
    place.mount("relatime")
    bound = tmp_path / "bound"
    bound.mkdir()
    run(tmp_path, place.directory, "one")
    subprocess.run(["mount", "--bind", place.directory, bound], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,noatime", bound], check=True)
        run(tmp_path, bound, "other")
    finally:
        subprocess.run(["umount", bound], check=True)
    with pytest.raises(FscaleError, match="noatime"):
        differences(tmp_path / "one", tmp_path / "other")
    place.unmount()
    place.make("mkfs.ext4", "-q", "-F", "-O", "^metadata_csum", "-b", "1024")
    place.mount("relatime")
    run(tmp_path, place.directory, "small")
    with pytest.raises(FscaleError) as caught:
        differences(tmp_path / "one", tmp_path / "small")
    assert "geometry.Filesystem features" in str(caught.value)
    assert "geometry.block size" in str(caught.value)


def test_a_run_goes_on_with_its_own_mount_only(tmp_path: Path, place: Place) -> None:
    place.mount("data=ordered")
    run(tmp_path, place.directory, "out")
    assert prepared(tmp_path, place.directory, "out").resumed
    place.unmount()
    place.mount("data=journal")
    with pytest.raises(FscaleError) as caught:
        prepared(tmp_path, place.directory, "out")
    assert "filesystems.ext4.mount_options" in str(caught.value)
    assert "data=journal" in str(caught.value)


def test_a_mount_that_changes_between_cells_or_under_one(tmp_path: Path, place: Place) -> None:
    place.mount("relatime")
    with machine_held(STATE, print):
        made = prepared(tmp_path, place.directory, "out", repetitions=3)
        bench = tmp_path / "fake-bench"
        plain = bench.read_text()
        remount = f'os.system("mount -o remount,nosuid {place.directory}")'
        bench.write_text(plain.replace("ops, seconds = 0,", f"{remount}\nops, seconds = 0,"))
        session = Session(made.setup, made.store, STATE, Executor(new_tag()), Signals())
        with session.opened():
            under = session.cell(made.cells[0])
            bench.write_text(plain)
            between = session.cell(made.cells[1])
            place.remount("suid")
            good = session.cell(made.cells[2])
    assert (under.status, between.status, good.status) == ("invalid", "error", "ok")
    for cell in (under, between):
        assert "nothing -> nosuid" in (cell.reason or "")
    assert under.mount
    assert "nosuid" not in under.mount.options


@pytest.mark.parametrize(
    ("fs", "options"),
    [
        ("ext4", {"noatime", "data=ordered", "init_itable=10"}),
        ("ext4:mount=relatime,data=journal", {"relatime", "data=journal"}),
        ("ext4:mount=strictatime", set()),
        ("ext4:mkfs=-E lazy_itable_init=1", {"noatime", "noinit_itable"}),
        ("ext4:2:mount=commit=9", {"commit=9"}),
        ("tmpfs:mount=relatime", {"relatime"}),
    ],
)
def test_what_is_in_effect_is_in_the_cell(tmp_path: Path, fs: str, options: set[str]) -> None:
    bench = fake_bench(tmp_path)
    bench.write_text(bench.read_text().replace("min_cores=cores,", "min_cores=1, partitions=True,"))
    request = Request(
        suite=suite(tmp_path, filesystems=[fs]), output=tmp_path / "out", binary=bench
    )
    with machine_held(STATE, print):
        (cell,) = measured(prepare(request))
    assert cell.status == "ok", cell.reason
    assert cell.mount
    assert options <= set(cell.mount.options)
    if "strictatime" in fs:
        assert not {"noatime", "relatime"} & set(cell.mount.options)


@pytest.mark.parametrize(
    "fs", ["ext4:mount=norelatime", "ext4:mkfs=-E lazy_itable_init=1:mount=init_itable=0"]
)
def test_an_option_without_effect_ends_the_run_before_its_first_cell(
    tmp_path: Path, fs: str
) -> None:
    own = suite(tmp_path, filesystems=[fs])
    given = ["--output", tmp_path / "out", "--binary", fake_bench(tmp_path)]
    done = fscale("run", own, *given)
    assert done.returncode == 2, done.stdout + done.stderr
    assert not list((tmp_path / "out" / "cells").glob("*"))


def test_the_command_compare_names_the_option(tmp_path: Path, place: Place) -> None:
    for name, options in (("one", "data=ordered"), ("other", "data=journal")):
        place.mount(options)
        run(tmp_path, place.directory, name)
        place.unmount()
    done = fscale("compare", tmp_path / "one", tmp_path / "other")
    assert done.returncode == 2
    assert "data=journal" in done.stderr
    assert open_sides(tmp_path / "one", tmp_path / "other")
