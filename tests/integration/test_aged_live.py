# SPDX-License-Identifier: GPL-2.0-only
"""Aged file systems: layouts as other tools see them, one image for all cells, and bad ends."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fscale.model import catalogue, paths
from fscale.model.errors import Exit
from fscale.model.results import Cell
from fscale.model.store import Store
from fscale.system.programs import made
from tests.support.runner import command, environment, fake_bench, fscale, suite

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("unchanged")]

PROFILE = """
title = "small"
source = "a test"
utilisation = {utilisation}
churn = {churn}
lifetime_sigma = 1.0
streams = 3
append = "256K"
sizes = [[4096, {small}], [65536, 5], ["2M", 1]]
levels = [[1, 1], [4, 3]]
"""
MKFS = {
    "ext4": ["mkfs.ext4", "-q", "-F", "-b", "4096"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "btrfs": ["mkfs.btrfs", "-q", "-f"],
}
BYTES = 320 << 20  # mkfs.xfs accepts no less than 300 MiB


def profile(root: Path, churn: float = 3, utilisation: float = 0.7, small: int = 5) -> Path:
    path = root / "small_age.toml"
    path.write_text(PROFILE.format(churn=churn, utilisation=utilisation, small=small))
    return path


class Aged:
    """A file system that `fscale-age` has aged: its device, layout, and files by name and bytes."""

    def __init__(
        self, image: Path, layout: dict[str, dict[str, int]], files: dict[str, int]
    ) -> None:
        self.image, self.layout, self.files = image, layout, files


def age(root: Path, kind: str, toml: Path, *more: str) -> Aged:
    image, mount = root / f"{kind}.image", root / "mnt"
    image.unlink(missing_ok=True)
    mount.mkdir(exist_ok=True)
    with image.open("wb") as file:
        file.truncate(BYTES)
    subprocess.run([*MKFS[kind], str(image)], check=True, capture_output=True)
    asked = catalogue.load_filesystem(f"ext4:aged={toml}").aged
    assert asked
    with mounted(mount, "-o", "loop", str(image)):
        argv = [str(made(paths.AGE)), *asked.arguments, *more, str(mount)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            raise OSError(done.stderr)
        files = {
            str(path.relative_to(mount)): path.stat().st_size
            for path in mount.rglob("f*")
            if path.is_file()
        }
    return Aged(image, json.loads(done.stdout), files)


@contextmanager
def mounted(where: Path, *argv: str) -> Iterator[None]:
    subprocess.run(["mount", *argv, str(where)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(where)], check=True)


def output(*argv: object) -> str:
    return subprocess.run(list(map(str, argv)), capture_output=True, text=True, check=True).stdout


def test_free_runs_are_those_that_the_tools_of_ext4_and_xfs_count(fast: Path) -> None:
    toml = profile(fast)
    ext4 = age(fast, "ext4", toml)
    shown = output("e2freefrag", ext4.image)
    runs, largest = (
        re.search(rf"{name}[^:]*:\s*(\d+)", shown) for name in ("Num. free extent", "Max. free")
    )
    assert runs
    assert largest
    assert ext4.layout["aged"]["free_runs"] == int(runs[1])
    assert ext4.layout["aged"]["largest_free_run"] == int(largest[1]) << 10
    xfs = age(fast, "xfs", toml)
    total = re.search(
        r"total free extents (\d+)", output("xfs_db", "-r", "-c", "freesp -s", xfs.image)
    )
    assert total
    # It counts what an allocation group keeps for its own trees, too.
    assert xfs.layout["aged"]["free_runs"] == pytest.approx(int(total[1]), rel=0.1)


@pytest.mark.parametrize("kind", sorted(MKFS))
def test_files_are_as_full_and_as_many_as_asked_and_lie_in_more_runs(fast: Path, kind: str) -> None:
    # Where extents lie depends on when a journal commits; three turns may leave XFS as it was.
    aged = age(fast, kind, profile(fast, churn=6))
    filled, churned = aged.layout["filled"], aged.layout["aged"]
    assert churned["files"] == len(aged.files) > 100
    assert churned["bytes"] == sum(aged.files.values())
    assert churned["bytes"] == pytest.approx(filled["bytes"], rel=0.05)
    assert churned["extents"] / churned["files"] > filled["extents"] / filled["files"]
    if kind == "btrfs":
        assert "free_runs" not in churned
    else:
        assert churned["free_runs"] > 2 * filled["free_runs"]
        assert churned["largest_free_run"] < filled["largest_free_run"]


def test_the_seed_decides_which_files_there_are(fast: Path) -> None:
    toml = profile(fast, churn=1)
    first = age(fast, "ext4", toml)
    assert age(fast, "ext4", toml).files == first.files
    assert age(fast, "ext4", toml, "--seed=2").files != first.files
    # Without churn nothing happens after the fill.
    filled = age(fast, "ext4", profile(fast, churn=0))
    assert filled.layout["aged"] == filled.layout["filled"]


def test_no_room_is_an_error(fast: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        age(fast, "xfs", profile(fast), "--utilisation=1")


SIZE = 'title = "small"\nkind = "loop"\nsize = "320M"\n'


def measure(
    tmp_path: Path, *filesystems: str, more: tuple[str, ...] = ()
) -> tuple[list[Cell], str]:
    """Run a suite whose images are kept in `tmp_path`; returns its cells and what it said."""
    planned = suite(tmp_path, filesystems=list(filesystems), repetitions=2)
    (tmp_path / "small.toml").write_text(SIZE)
    given = ["--output", tmp_path / "out", "--binary", fake_bench(tmp_path), *more]
    done = fscale("run", planned, *given)
    assert done.returncode == Exit.GOOD, done.stdout + done.stderr
    return Store(tmp_path / "out").cells(), done.stdout + done.stderr


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "fscale" / "aged"


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_each_cell_gets_the_one_image_unharmed(tmp_path: Path, cache: Path, kind: str) -> None:
    source = (paths.FILESYSTEMS / f"{kind}.toml").read_text()
    own = tmp_path / f"{kind}.toml"  # one whose checker runs after each cell
    own.write_text(re.sub(r"^fsck =", "check =", source, flags=re.MULTILINE))
    aged = f"{own}:aged={profile(tmp_path)}"
    cells, said = measure(tmp_path, str(own), aged)
    assert said.count("aging ") >= 1
    assert said.count("kept as ") == 1
    assert [cell.status for cell in cells] == ["ok"] * 4
    layouts = [c.geometry for c in cells if "aged" in c.key.filesystem and c.geometry]
    assert len(layouts) == 2
    assert layouts[0] == layouts[1]
    assert int(layouts[0]["aged files"]) > 100
    assert not any(
        "aged files" in (c.geometry or {}) for c in cells if "aged" not in c.key.filesystem
    )
    (image,) = cache.glob("*.image")
    assert BYTES < image.stat().st_size < BYTES + (1 << 20)
    assert sorted(path.suffix for path in cache.iterdir()) == [".image", ".json"]
    # A later run restores it, too.
    store = tmp_path / "out"
    store.rename(tmp_path / "first")
    again, said = measure(tmp_path, str(own), aged)
    assert "aging " not in said
    assert next(c.geometry for c in again if "aged" in c.key.filesystem) == layouts[0]


def test_a_dry_run_says_that_an_image_is_made(tmp_path: Path, cache: Path) -> None:
    planned = suite(tmp_path, filesystems=[f"ext4:aged={profile(tmp_path)}"])
    (tmp_path / "small.toml").write_text(SIZE)
    given = ["--output", tmp_path / "out", "--binary", fake_bench(tmp_path), "--dry-run"]
    done = fscale("run", planned, *given)
    assert done.returncode == Exit.GOOD, done.stderr
    assert "once, before the first cell" in done.stdout
    assert not cache.exists()


def test_ctrl_c_leaves_no_half_image(tmp_path: Path, cache: Path) -> None:
    planned = suite(tmp_path, filesystems=[f"ext4:aged={profile(tmp_path, churn=900)}"])
    (tmp_path / "small.toml").write_text(SIZE)
    argv = ["env", "--default-signal"]  # a background job of a script has SIGINT ignored
    argv += command("run", planned, "--output", tmp_path / "out", "--binary", fake_bench(tmp_path))
    with subprocess.Popen(argv, env=environment(), stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr
        said = ""
        while " left" not in said.partition("aging")[2]:
            line = child.stderr.readline()
            assert line, said
            said += line
        child.send_signal(signal.SIGINT)
        said += child.stderr.read()
    assert child.returncode == Exit.INTERRUPTED, said
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "size", "says"),
    [
        # The inodes of so many small files take more space than is left.
        ({"utilisation": 0.95, "small": 50_000}, "320M", "No space left on device"),
        ({}, "40M", "needs at least"),
    ],
)
def test_a_profile_that_does_not_fit_ends_the_run_before_a_cell(
    tmp_path: Path, cache: Path, changes: dict[str, Any], size: str, says: str
) -> None:
    planned = suite(tmp_path, filesystems=[f"xfs:aged={profile(tmp_path, **changes)}"])
    (tmp_path / "small.toml").write_text(SIZE.replace("320M", size))
    given = ["--output", tmp_path / "out", "--binary", fake_bench(tmp_path)]
    done = fscale("run", planned, *given)
    assert done.returncode == Exit.USAGE, done.stdout + done.stderr
    assert says in done.stderr
    assert not list(tmp_path.glob("out/cells/*"))
    assert not list(cache.glob("*"))


def test_a_full_disk_for_the_image_ends_the_run(tmp_path: Path, cache: Path) -> None:
    cache.mkdir(parents=True)
    planned = suite(tmp_path, filesystems=[f"ext4:aged={profile(tmp_path)}"])
    (tmp_path / "small.toml").write_text(SIZE)
    given = ["--output", tmp_path / "out", "--binary", fake_bench(tmp_path)]
    with mounted(cache, "-t", "tmpfs", "-o", "size=1M", "fscale-test"):
        done = fscale("run", planned, *given)
        assert list(cache.iterdir()) == []
    assert done.returncode == Exit.USAGE, done.stdout + done.stderr
    assert os.strerror(28) in done.stderr
