# SPDX-License-Identifier: GPL-2.0-only
import os
from pathlib import Path

import pytest

from fscale.model.errors import FscaleError
from fscale.runner import disk


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
    assert disk.changes(old, old) == ""
    assert disk.changes(old, new) == says


def test_what_is_no_block_device_is_refused_and_waits_for_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("")
    for name in ("pipe", "file"):
        with pytest.raises(FscaleError, match="is not a block device"):
            disk.check_device(tmp_path / name, name, tmp_path)
