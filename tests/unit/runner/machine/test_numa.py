# SPDX-License-Identifier: GPL-2.0-only
"""On which NUMA nodes memory is asked for, on made-up machines."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from fscale.model.catalogue import load_filesystem, load_medium
from fscale.model.config import FileSystem, Medium
from fscale.model.errors import FscaleError
from fscale.runner.machine import numa
from fscale.runner.machine.journal import Journal
from fscale.runner.storage import filesystem, medium
from fscale.system.executor import DryExecutor

GIB = 1 << 30


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that says which nodes have memory; two do."""
    path = tmp_path / "has_memory"
    path.write_text("0-1\n")
    monkeypatch.setattr(numa, "HAS_MEMORY", path)
    monkeypatch.setattr(numa, "STATUS", tmp_path / "status")
    return path


def made(tmp_path: Path, name: str, **changes: object) -> list[str]:
    """What it takes to make a medium, one command or write a line."""
    said: list[str] = []
    journal = Journal(tmp_path / "journal", DryExecutor(said.append))
    asked = load_medium(name).model_copy(update={"size": GIB, **changes})
    medium.prepare(name, asked, 8 * GIB, journal, tmp_path, "tag")
    return said


def tmpfs_options(**changes: object) -> list[str]:
    fs = load_filesystem("tmpfs").model_copy(update=changes)
    return filesystem.mount(fs, None, Path("/mnt"), GIB).options


def test_one_node_leaves_no_choice(tmp_path: Path, nodes: Path) -> None:
    for text in ("0\n", "1\n"):
        nodes.write_text(text)
        assert not any("mpol" in line for line in made(tmp_path, "ram"))
        assert not any("mpol" in option for option in tmpfs_options())
    nodes.unlink()
    assert numa.mount_options("interleave") == numa.prefix("interleave") == []


@pytest.mark.parametrize("text", ["0-1\n", "0,2\n"])
def test_the_image_of_the_loop_device_lies_on_all_nodes(
    tmp_path: Path, nodes: Path, text: str
) -> None:
    nodes.write_text(text)
    (mount,) = [line for line in made(tmp_path, "ram") if line.startswith("mount ")]
    assert "mpol=interleave" in mount.split()[4].split(",")


def test_a_tmpfs_under_test_lies_where_it_is_written(nodes: Path) -> None:
    assert "mpol=local" in tmpfs_options()
    assert "mpol=bind:1" in tmpfs_options(numa=1)
    assert not any("mpol" in option for option in tmpfs_options(numa=None))


@pytest.mark.parametrize("name", ["brd", "null_blk"])
def test_a_device_in_memory_is_filled_beforehand(tmp_path: Path, nodes: Path, name: str) -> None:
    copy = f"dd if=/dev/zero of={'/dev/ram0' if name == 'brd' else '/dev/fscale'} bs=1M count=1024"
    assert f"numactl --interleave=all {copy} oflag=direct" in made(tmp_path, name)
    assert f"numactl --membind=1 {copy} oflag=direct" in made(tmp_path, name, numa=1)
    assert f"{copy} oflag=direct" in made(tmp_path, name, numa=None)


@pytest.mark.parametrize(
    ("memory", "cpus", "allowed", "nodes_", "interleaved"),
    [
        ("0-2", "0-1", "0-2", [0, 1], "0-1"),  # memory behind CXL
        ("0-3", "0,2-3", "0-63", [0, 2, 3], "0,2-3"),
        ("0,8,252-255", "0,8", "0-1023", [0, 8], "0,8"),  # of GPUs
        ("0-3", "0-3", "0,3", [0, 3], "0,3"),  # a cpuset
        ("0-1", "0-1", "0-1", [0, 1], "all"),
        ("0,2", "0-2", "0-2", [0, 2], "all"),  # CPUs without memory
        ("0-1", "0", "0-1", [0], None),
        ("0-1", "0-1", "1", [1], None),
    ],
)
def test_what_is_interleaved_lies_where_cpus_are(
    tmp_path: Path,
    nodes: Path,
    memory: str,
    cpus: str,
    allowed: str,
    nodes_: list[int],
    interleaved: str | None,
) -> None:
    nodes.write_text(f"{memory}\n")
    nodes.with_name("has_cpu").write_text(f"{cpus}\n")
    numa.STATUS.write_text(f"Name:\tx\nMems_allowed:\t1\nMems_allowed_list:\t{allowed}\n")
    assert numa.nodes() == nodes_
    said = made(tmp_path, "ram")
    (mount,) = [line for line in said if line.startswith("mount ")]
    options = mount.split()[4].split(",")
    by_command = [line for line in said if "fallocate" in line and "numactl" in line]
    if interleaved is None:
        assert numa.prefix("interleave") == []
        assert "mpol" not in mount
        assert not by_command
    elif "," in interleaved:
        assert numa.prefix("interleave") == ["numactl", f"--interleave={interleaved}"]
        assert "mpol" not in mount
        assert len(by_command) == 1
        with pytest.raises(FscaleError, match=interleaved):
            numa.mount_options("interleave")
    else:
        only = "" if interleaved == "all" else f":{interleaved}"
        assert numa.prefix("interleave") == ["numactl", f"--interleave={interleaved}"]
        assert f"mpol=interleave{only}" in options
        assert not by_command
    # Asked for, any node will do.
    assert "mpol=bind:1" in tmpfs_options(numa=1)


def test_a_slow_device_is_not_filled(tmp_path: Path, nodes: Path) -> None:
    assert not any("dd " in line for line in made(tmp_path, "null_hdd"))


def test_numa_without_memory_of_our_own_is_refused() -> None:
    with pytest.raises(ValidationError, match="numa belongs to a medium"):
        Medium(title="t", kind="device", numa="local")
    with pytest.raises(ValidationError, match="numa belongs to a medium"):
        Medium(title="t", kind="loop", size=GIB, backing="/srv", numa="local")
    with pytest.raises(ValidationError, match="so its pages have no numa"):
        Medium(title="t", kind="null_blk", size=GIB, latency_ns=1, numa="local")
    with pytest.raises(ValidationError, match="numa belongs to tmpfs"):
        FileSystem(title="t", kernel="ext4", mkfs=["x", "{device}"], numa="local")
