# SPDX-License-Identifier: GPL-2.0-only
import os
from pathlib import Path

import pytest

from fscale.model.errors import FscaleError
from fscale.runner.storage import disk


def sysfs(root: Path, number: str, name: str, **files: str) -> Path:
    """A block device as sysfs shows it."""
    base = root / "devices" / name
    for file, text in files.items():
        path = base / file.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    (root / "dev" / "block").mkdir(parents=True, exist_ok=True)
    (root / "dev" / "block" / number).symlink_to(base)
    return base


def test_a_drive_is_known_by_what_it_says_of_itself(tmp_path: Path) -> None:
    sysfs(tmp_path, "8:0", "sda", size="2048", diskseq="7", device__wwid="naa.5000c500", dev="8:0")
    found = disk.identify("8:0", tmp_path)
    assert found == disk.Identity("8:0", "7", 1 << 20, {"device/wwid": "naa.5000c500"})
    assert found.recorded() == {"size": 1 << 20, "device/wwid": "naa.5000c500"}


def test_a_partition_is_known_by_its_drive_and_its_place(tmp_path: Path) -> None:
    sysfs(tmp_path, "8:0", "sda", size="2048", diskseq="7", device__serial="S1")
    sysfs(tmp_path, "8:1", "sda/sda1", size="1024", partition="1", start="64")
    found = disk.identify("8:1", tmp_path)
    assert (found.sequence, found.size) == ("7", 512 << 10)
    assert found.lasting == {"device/serial": "S1", "partition": "1", "start": "64"}


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"number": "8:16"}, "number 8:0 -> 8:16"),
        ({"sequence": "8"}, "sequence number 7 -> 8"),
        ({"size": 2}, "size 1 -> 2"),
        ({"lasting": {"wwid": "b"}}, "wwid a -> b"),
        ({"lasting": {}}, "wwid a -> none"),
        ({"lasting": {"wwid": "a", "serial": "S"}}, "serial none -> S"),
    ],
)
def test_every_difference_tells_two_devices_apart(changed: dict[str, object], says: str) -> None:
    known: dict[str, object] = {
        "number": "8:0",
        "sequence": "7",
        "size": 1,
        "lasting": {"wwid": "a"},
    }
    old, new = disk.Identity(**known), disk.Identity(**(known | changed))  # type: ignore[arg-type]
    assert disk.describe_changes(old, old) == ""
    assert disk.describe_changes(old, new) == says


def test_what_is_no_block_device_is_refused_and_waits_for_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("")
    for name in ("pipe", "file"):
        with pytest.raises(FscaleError, match="is not a block device"):
            disk.check_device(tmp_path / name, name, tmp_path)


def links(root: Path, **folders: str) -> Path:
    """/dev/disk with a link in each folder; by-id is what is returned."""
    for folder, name in folders.items():
        (root / folder.replace("_", "-")).mkdir(parents=True, exist_ok=True)
        if name:
            (root / folder.replace("_", "-") / name).symlink_to("/dev/null")
    return root / "by-id"


@pytest.mark.parametrize("folder", ["by-id", "by-path", "by-partuuid", "by-diskseq"])
def test_a_name_that_a_format_leaves_is_stable(tmp_path: Path, folder: str) -> None:
    disk.refuse_unstable(tmp_path / folder / "name", tmp_path / "by-id")


@pytest.mark.parametrize("name", ["by-uuid/1", "by-label/x", "sda", "by-id/../sda", "by-id/a/b"])
def test_other_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(FscaleError, match="is not a stable path") as caught:
        disk.refuse_unstable(tmp_path / name, tmp_path / "by-id")
    assert "serial=" in str(caught.value)
    assert ("formatting replaces" in str(caught.value)) == name.startswith(("by-uuid", "by-label"))


def test_the_names_of_a_device_are_the_links_to_it_and_its_sequence_number(tmp_path: Path) -> None:
    by_id = links(tmp_path / "disk", by_path="pci-1", by_id="", by_uuid="u")
    sysfs(tmp_path, "1:3", "null", size="8", diskseq="7")
    found = disk.stable_paths("1:3", by_id, tmp_path)
    assert [name.relative_to(tmp_path / "disk") for name in found] == [
        Path("by-path/pci-1"),
        Path("by-diskseq/7"),
    ]
    assert disk.stable_paths("8:0", by_id, tmp_path) == []


def test_the_name_to_take_is_said_of_a_device_that_cannot_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_id = links(tmp_path / "disk", by_id="disk-1")
    monkeypatch.setattr(disk, "number_of", lambda _: "1:3")
    with pytest.raises(FscaleError, match=r"name the device as .*/by-id/disk-1"):
        disk.refuse_unstable(tmp_path / "vda", by_id)


def test_a_partition_has_a_name_by_the_sequence_number_of_its_disk(tmp_path: Path) -> None:
    by_id = links(tmp_path / "disk", by_id="")
    part = tmp_path / "block" / "vdb" / "vdb2"
    part.mkdir(parents=True)
    (part / "partition").write_text("2\n")
    (part.parent / "diskseq").write_text("12\n")
    (tmp_path / "dev" / "block").mkdir(parents=True)
    (tmp_path / "dev" / "block" / "254:18").symlink_to(part)
    assert disk.stable_paths("254:18", by_id, tmp_path) == [
        by_id.parent / "by-diskseq" / "12-part2"
    ]


def test_a_sequence_number_is_found_where_udev_made_no_link(tmp_path: Path) -> None:
    for name, sequence in (("vda", "3"), ("vdb", "12"), ("cciss!c0d0", "5")):
        (tmp_path / "block" / name).mkdir(parents=True)
        (tmp_path / "block" / name / "diskseq").write_text(f"{sequence}\n")
    (tmp_path / "block" / "vdb" / "vdb1").mkdir()
    (tmp_path / "block" / "vdb" / "vdb1" / "partition").write_text("1\n")
    for name, node in (
        ("12", "/dev/vdb"),
        ("12-part1", "/dev/vdb1"),
        ("5", "/dev/cciss/c0d0"),
        ("12-part2", "by-diskseq/12-part2"),
        ("1", "by-diskseq/1"),
        ("x", "by-diskseq/x"),
    ):
        assert disk.find_node(Path("by-diskseq") / name, tmp_path) == Path(node)
    assert disk.find_node(Path("by-id/12"), tmp_path) == Path("by-id/12")
