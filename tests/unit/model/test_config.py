# SPDX-License-Identifier: GPL-2.0-only
from pathlib import Path

import pytest

from fscale.model import catalogue, paths
from fscale.model.config import FileSystem, Medium, Suite, parse_size, resolve_size
from fscale.model.errors import FscaleError

GOOD = """
title = "t"
workloads = ["DRBL"]
filesystems = ["ext4"]
media = ["ram"]
cores = [1]
duration = 1
repetitions = 1
"""


def load(tmp_path: Path, text: str) -> Suite:
    path = tmp_path / "s.toml"
    path.write_text(text)
    return catalogue.load_toml(path, Suite)


@pytest.mark.parametrize("name", catalogue.names(paths.SUITES))
def test_shipped_suites_name_what_there_is(name: str) -> None:
    suite = catalogue.load_suite(Path(name))
    for fs in suite.filesystems:
        catalogue.load_filesystem(fs)
    for medium in suite.media:
        catalogue.load_medium(medium)


@pytest.mark.parametrize("name", catalogue.names(paths.FILESYSTEMS))
def test_shipped_filesystems(name: str) -> None:
    fs = catalogue.load_filesystem(name)
    assert "noatime" in fs.mount_options
    assert all(":" in event for event in fs.counts)
    assert not set(fs.structs) & set(fs.caches.values())  # each struct once
    if not fs.nodev:
        assert fs.package or fs.source
        assert "fscale" in fs.mkfs  # the label by which a device is known to be ours


@pytest.mark.parametrize("name", catalogue.names(paths.MEDIA))
def test_shipped_media(name: str) -> None:
    assert catalogue.load_medium(name).title


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("title = ", "not valid TOML"),
        (GOOD + "repeat = 2\n", "repeat: is not a key"),
        (GOOD.replace("duration = 1", "duration = 0"), "duration: Input should be greater than 0"),
        (
            GOOD.replace("cores = [1]", "cores = [0]"),
            "cores: 0: a measurement needs at least 1 core",
        ),
        (GOOD.replace('"t"', "3"), "title: Input should be a valid string"),
        (GOOD.replace('media = ["ram"]', ""), "media: Field required"),
        (GOOD + 'modes = ["odirect"]\n', "modes.0"),
        (GOOD.replace("cores = [1]", "cores = []"), "cores: List should have at least 1 item"),
        (GOOD.replace("cores = [1]", 'cores = ["8-1"]'), "cores: '8-1' is not a range"),
        (GOOD.replace("cores = [1]", 'cores = ["101%"]'), "cores: '101%' is not a share"),
        (GOOD.replace("cores = [1]", 'cores = "most"'), "cores: 'most' is not a core count"),
        (GOOD + "workers_per_cpu = 0\n", "workers_per_cpu: Input should be greater than or"),
        (GOOD + 'placement = "far"\n', "placement: Input should be 'packed' or 'spread'"),
        (
            GOOD + 'keep_free = "100%"\n',
            "keep_free: '100%' is neither a number of CPUs nor a share",
        ),
        (GOOD + "keep_free = -1\n", "keep_free: -1 is neither"),
    ],
)
def test_errors_name_the_file_and_the_key(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(FscaleError) as caught:
        load(tmp_path, text)
    assert says in str(caught.value)
    assert "s.toml" in str(caught.value)


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(FscaleError, match="does not exist"):
        catalogue.load_suite(tmp_path / "none.toml")
    with pytest.raises(FscaleError, match="cannot be read"):
        catalogue.load_suite(tmp_path)
    (tmp_path / "bytes.toml").write_bytes(b"title = '\xff'")
    with pytest.raises(FscaleError, match="not valid TOML"):
        catalogue.load_suite(tmp_path / "bytes.toml")
    for value in (5000 * "9", 5000 * "["):
        (tmp_path / "long.toml").write_text(f"title = {value}")
        with pytest.raises(FscaleError, match="not valid TOML"):
            catalogue.load_suite(tmp_path / "long.toml")


def test_near_names_are_suggested() -> None:
    with pytest.raises(FscaleError, match=r"unknown file system ext5; did you mean ext4"):
        catalogue.load_filesystem("ext5")
    with pytest.raises(FscaleError, match=r"unknown medium rma; did you mean ram"):
        catalogue.load_medium("rma")
    with pytest.raises(FscaleError, match=r"there is no suite quikc; did you mean quick"):
        catalogue.load_suite(Path("quikc"))
    assert "did you mean" in catalogue.suggest("drbl", ["DRBL", "MWCM"])
    assert catalogue.suggest("zzz", ["DRBL"]) == "; known names: DRBL"


def test_a_filesystem_is_added_with_one_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('title = "m"\nkernel = "ext2"\nmkfs = ["mkfs.ext2", "{device}"]\n')
    assert catalogue.load_filesystem(str(path)).kernel == "ext2"
    assert catalogue.short_name(str(path)) == "mine"


def test_contradictions_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must name \{device\}"):
        FileSystem(title="t", kernel="ext4", mkfs=["mkfs.ext4"])
    with pytest.raises(ValueError, match="check must name"):
        FileSystem(title="t", kernel="ext4", mkfs=["m", "{device}"], check=["e2fsck"])
    with pytest.raises(ValueError, match="has a size, no mkfs, check, fsck or geometry"):
        FileSystem(title="t", kernel="tmpfs", nodev=True)
    with pytest.raises(ValueError, match="needs a size"):
        Medium(title="t", kind="loop")
    with pytest.raises(ValueError, match="leave size out"):
        Medium(title="t", kind="device", size=1)


def test_sizes() -> None:
    assert parse_size("6G") == 6 << 30
    assert parse_size("1.5 MiB") == 3 << 19
    assert parse_size(4096) == 4096
    for wrong in ("six", "-1G", True, 1.5, "9" * 400, "9" * 5000, "1." + "9" * 400):
        with pytest.raises(ValueError, match="is not a size"):
            parse_size(wrong)
    assert resolve_size("25%", None, 16 << 30) == 4 << 30
    assert resolve_size("25%", 1 << 30, 16 << 30) == 1 << 30
    assert resolve_size((5 << 20) + 1, None, 0) == 5 << 20
    with pytest.raises(ValueError, match="size"):
        Medium(title="t", kind="loop", size="0%")
