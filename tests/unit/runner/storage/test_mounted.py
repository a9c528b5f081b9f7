# SPDX-License-Identifier: GPL-2.0-only
"""Which mount holds a directory, and with which options; from mountinfo of several machines."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from fscale.model.results import Mounted
from fscale.runner.storage import geometry, lazy, mounted
from fscale.system.executor import Executor

LAZY = ("-E", "lazy_itable_init=1,nodiscard")

# Of a container on overlayfs with a volume of ext4, a bind mount of its subdirectory that is
# read-only, btrfs with a subvolume, and a mount beneath another one at the same place.
MOUNTINFO = """\
20 1 0:50 / / rw,relatime - overlay overlay rw,lowerdir=/l1:/l2,upperdir=UPPER,workdir=/w,metacopy=on
21 20 8:1 / /data rw,noatime master:1 - ext4 /dev/sda1 rw,data=journal
22 20 8:1 /sub /data/bind\\040mount ro,noatime - ext4 /dev/sda1 rw,data=journal
23 20 0:33 /home /home rw,relatime - btrfs /dev/sdb rw,ssd,subvolid=257,subvol=/home,compress=zstd:3
24 20 0:34 / /home rw - nfs server:/x rw,vers=4.2,addr=10.0.0.1,clientaddr=10.0.0.2,hard
26 20 0:36 / /odd rw - tmpfs a\\011b\\033[2J rw
25 20 0:35 / /se rw - tmpfs none rw,context="a:b:c0,c1",size=4k
"""  # noqa: E501 - as the kernel writes it


def machine(root: Path, upper: Path | None = None) -> tuple[Path, Path]:
    """/proc and /sys of it; UPPER is somewhere on this machine."""
    proc, sysfs = root / "proc", root / "sys"
    (proc / "self" / "fdinfo").mkdir(parents=True)
    (proc / "self" / "mountinfo").write_text(MOUNTINFO.replace("UPPER", str(upper or "/gone")))
    (proc / "fs" / "ext4" / "sda1").mkdir(parents=True)
    (proc / "fs" / "ext4" / "sda1" / "options").write_text("rw\ndelalloc\ndata=journal\ncommit=5\n")
    (sysfs / "devices" / "sda1").mkdir(parents=True)
    (sysfs / "dev" / "block").mkdir(parents=True)
    (sysfs / "dev" / "block" / "8:1").symlink_to(sysfs / "devices" / "sda1")
    return proc, sysfs


def described(root: Path, number: int) -> Mounted:
    proc, sysfs = machine(root)
    return mounted.describe(mounted.entries(proc)[number], proc, sysfs)


@pytest.mark.parametrize(
    ("number", "fstype", "source", "options"),
    [
        (20, "overlay", "overlay", ["metacopy=on", "relatime", "rw"]),
        (21, "ext4", "/dev/sda1", ["commit=5", "data=journal", "delalloc", "noatime", "rw"]),
        (22, "ext4", "/dev/sda1", ["commit=5", "data=journal", "delalloc", "noatime", "ro"]),
        (23, "btrfs", "/dev/sdb", ["compress=zstd:3", "relatime", "rw", "ssd"]),
        (24, "nfs", "server:/x", ["hard", "rw", "vers=4.2"]),
        (26, "tmpfs", "a?b?[2J", ["rw"]),
        (25, "tmpfs", "none", ['context="a:b:c0,c1"', "rw", "size=4k"]),
    ],
)
def test_all_options_in_effect_are_those_of_the_mount_the_file_system_and_its_defaults(
    tmp_path: Path, number: int, fstype: str, source: str, options: list[str]
) -> None:
    found = described(tmp_path, number)
    assert (found.fstype, found.source, found.options) == (fstype, source, options)


def test_a_bind_mount_says_what_of_the_file_system_it_is(tmp_path: Path) -> None:
    assert described(tmp_path / "a", 22).root == "/sub"
    assert described(tmp_path / "b", 21).root == "/"


def test_the_kernel_says_which_mount_holds_a_directory(tmp_path: Path) -> None:
    number = int(subprocess.run(
        ["findmnt", "-n", "-o", "ID", "--target", tmp_path],
        capture_output=True, text=True, check=True,
    ).stdout)  # fmt: skip
    assert mounted.holding(tmp_path) == mounted.entries()[number]
    assert mounted.holding(tmp_path / "gone") is None
    proc, _ = machine(tmp_path)
    assert mounted.holding(tmp_path, proc) is None  # a mount that cannot be seen


def test_an_overlay_has_what_its_files_are_written_to(tmp_path: Path) -> None:
    below = mounted.read(tmp_path)
    assert below is not None
    (tmp_path / "proc").mkdir()
    proc, sysfs = machine(tmp_path / "m", upper=tmp_path)
    # The file system below is this machine's own.
    (proc / "self" / "fdinfo").rmdir()
    (proc / "self" / "fdinfo").symlink_to("/proc/self/fdinfo")
    with (proc / "self" / "mountinfo").open("a") as file:
        file.write(Path("/proc/self/mountinfo").read_text())
    entry = next(e for e in mounted.entries(proc).values() if e.fstype == "overlay" and
                 e.value("upperdir") == str(tmp_path))  # fmt: skip
    options = mounted.describe(entry, proc, sysfs).options
    assert f"upper:{below.fstype}" in options


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, None),
        ({"options": ["rw", "data=journal"]}, "data=ordered -> data=journal"),
        ({"options": ["rw"]}, "data=ordered -> nothing"),
        ({"fstype": "xfs"}, "ext4 -> xfs"),
        ({"source": "/dev/b"}, "/dev/a / -> /dev/b /"),
    ],
)
def test_two_looks_at_a_mount(changes: dict[str, object], says: str | None) -> None:
    one = Mounted(fstype="ext4", source="/dev/a", root="/", options=["rw", "data=ordered"])
    assert mounted.changed(one, one.model_copy(update=changes)) == says
    assert mounted.changed(None, one) is None


def test_a_directory_has_a_geometry_for_every_user(tmp_path: Path) -> None:
    about = os.statvfs(tmp_path)
    found = geometry.of_directory(tmp_path, mounted.read(tmp_path), Executor())
    assert found["block size"] == str(about.f_bsize)
    assert found["size in bytes"] == str(about.f_blocks * about.f_frsize)


def test_what_comes_and_goes_on_a_mounted_file_system_is_no_geometry() -> None:
    text = "Filesystem features:      has_journal needs_recovery orphan_present extent\n"
    assert geometry.parse_all(text) == {"Filesystem features": "has_journal extent"}


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (["-E", "lazy_itable_init=0,nodiscard"], False),
        ([*LAZY], True),
        ([*LAZY, "-O", "^64bit"], True),
        ([*LAZY, "-b", "1024"], True),
        ([*LAZY, "-b", "4096"], True),
        ([*LAZY, "-O", "^metadata_csum,^uninit_bg"], False),
    ],
)
def test_inode_tables_that_mkfs_put_off_are_counted(
    tmp_path: Path, arguments: list[str], left: bool
) -> None:
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(344 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", *arguments, image], check=True)
    out = subprocess.run(["dumpe2fs", image], capture_output=True, text=True, check=True).stdout
    groups = re.findall(r"^Group \d+:", out, re.MULTILINE)
    found = lazy.unwritten(image)
    assert (found > 0) == left
    # Without checksums of the groups dumpe2fs says nothing of their tables: all are written.
    assert found in (0, len(groups) - out.count("ITABLE_ZEROED"))


def test_descriptors_that_are_spread_count_as_not_written(tmp_path: Path) -> None:
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    mkfs = ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0", "-O", "meta_bg,^resize_inode"]
    subprocess.run([*mkfs, image], check=True)
    assert lazy.unwritten(image) == 1


def test_what_is_no_ext4_has_no_inode_tables_to_write(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "zeros").write_bytes(bytes(4096))
    assert [lazy.unwritten(tmp_path / name) for name in ("empty", "zeros")] == [0, 0]


@pytest.mark.parametrize(("source", "device"), [("word", None), ("/dev/word", Path("/dev/word"))])
def test_only_a_path_is_a_device(
    monkeypatch: pytest.MonkeyPatch, source: str, device: Path | None
) -> None:
    """The source of tmpfs is a word, by which something else may lie where the user stands."""
    entry = mounted.Entry("0:45", "/", [], "tmpfs", source)
    monkeypatch.setattr(geometry, "holding", lambda _: entry)
    monkeypatch.setattr(geometry, "device_name", lambda _: "")
    monkeypatch.setattr(Path, "is_block_device", lambda _: True)
    monkeypatch.setattr(geometry.os, "access", lambda *_: True)
    assert geometry.node_below(Path("/")) == device
