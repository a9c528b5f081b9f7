# SPDX-License-Identifier: GPL-2.0-only
"""Bad input: a sentence that says what to do, the right exit code, nothing changed."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fscale.model.errors import Exit, FscaleError, MissingTool
from fscale.runner.prepare import prepare
from fscale.runner.request import Request
from fscale.runner.storage import disk
from fscale.system import powers
from fscale.system.executor import which
from tests.support.files import write_program
from tests.support.runner import fake_bench, fscale, state, suite, temporary_state


@pytest.fixture(autouse=True, scope="module")
def clean() -> Iterator[None]:
    with temporary_state():
        yield


@pytest.fixture
def small(tmp_path: Path) -> Request:
    # A directory needs no root.
    return Request(
        suite=suite(tmp_path, filesystems=["any"]),
        output=tmp_path / "out",
        directory=tmp_path,
        binary=fake_bench(tmp_path),
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--workload", "DRLB"], "unknown workload DRLB; did you mean DRBL"),
        (["--cores", "0"], "at least 1 core"),
        (["--cores", "9999"], "9999 cores are asked for, but this run may use"),
        (["--cores", "one"], "'one' is not a core count"),
        (["--set", "keep_free=9999"], "keep_free = 9999 leaves no CPU for a worker"),
        (
            ["--mode", "odirect"],
            "--mode odirect: no such mode; give one of buffered, direct, dontcache",
        ),
        (["--option", "open"], "give NAME=VALUE"),
        (["--option", "opne=stat"], "no option opne"),
        (["--repetitions", "0"], "'--repetitions'"),
        (["--duration", "-1"], "'--duration'"),
        (["--fs", "ext5"], "leave --fs out"),
        (["--workload", "MWCL", "--mode", "direct"], "nothing to measure"),
        (["--dir", "/nowhere"], "/nowhere is not a directory"),
        (["--dir", "/proc"], "no space: /proc has 0 MiB free"),
        (["--output", "/dev/null"], "it is not a directory"),
        (["--output", "/etc"], "/etc is not empty"),
        (["--binary", "/nowhere"], "/nowhere does not exist"),
    ],
)
def test_the_command_line(tmp_path: Path, arguments: list[str], says: str) -> None:
    before = state()
    given = ["--dir", tmp_path, "--output", tmp_path / "out", "--binary", fake_bench(tmp_path)]
    done = fscale("run", suite(tmp_path), *given, *arguments)
    assert says in done.stderr
    assert done.returncode == Exit.USAGE
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
    assert state()["cpus"] == before["cpus"]


def test_a_directory_whose_mount_is_not_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a chroot, where "/" is no mount point."""
    findmnt = tmp_path / "findmnt"
    write_program(findmnt, "#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    given = ["--dir", tmp_path, "--output", tmp_path / "out", "--binary", fake_bench(tmp_path)]
    done = fscale("run", suite(tmp_path, filesystems=["any"]), *given, "--dry-run")
    assert done.returncode == Exit.GOOD, done.stderr


def test_broken_toml(tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text("title = [")
    done = fscale("run", path, "--output", tmp_path / "out", "--dir", tmp_path)
    assert done.returncode == Exit.USAGE
    assert "broken.toml is not valid TOML" in done.stderr


def test_missing_mkfs_and_kernel(
    small: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(powers, "no_mount", lambda: None)
    small.directory = None
    small.overrides = {"filesystems": ["ext4", "xfs"]}
    small.explicit = {"ext4", "xfs"}
    monkeypatch.setattr(
        "fscale.runner.storage.filesystem.which",
        lambda tool: None if tool == "mkfs.xfs" else which(tool),
    )
    monkeypatch.setattr("fscale.runner.storage.medium.missing", lambda name, medium: None)
    with pytest.raises(MissingTool, match=r"xfs: mkfs.xfs is not installed; apt-get install xfsp"):
        prepare(small)
    # Not asked for by name, it is skipped with the reason, and the rest is measured.
    small.explicit = set()
    made = prepare(small)
    assert set(made.setup.missing) == {"xfs"}
    assert any("xfs is skipped: mkfs.xfs is not installed" in w for w in made.run.warnings)
    # Nothing is left: the command is skipped as a whole.
    small.overrides = {"filesystems": ["xfs"]}
    with pytest.raises(MissingTool):
        prepare(small)


def test_no_root(small: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(powers, "no_mount", lambda: "it needs root")
    small.directory = None
    small.overrides = {"filesystems": ["tmpfs"]}
    with pytest.raises(FscaleError, match=r"it needs root; .* directory"):
        prepare(small)


@pytest.fixture
def tmpfs(tmp_path: Path) -> Iterator[Path]:
    target = tmp_path / "tmpfs"
    target.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "t", target], check=True)
    yield target
    subprocess.run(["umount", target], check=True)


@pytest.mark.root
def test_read_only_directory(small: Request, tmpfs: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", tmpfs], check=True)
    small.directory = tmpfs
    with pytest.raises(FscaleError, match="is read-only for this user; give another --dir"):
        prepare(small)
    small.directory, small.output = tmpfs.parent, tmpfs / "out"
    with pytest.raises(FscaleError, match="is not writable; give another --output"):
        prepare(small)


@pytest.mark.root
def test_no_space(small: Request, tmpfs: Path) -> None:
    small.directory = tmpfs
    with pytest.raises(FscaleError, match=r"no space: .* has \d MiB free"):
        prepare(small)
    small.directory, small.output = tmpfs.parent, tmpfs / "out"
    with pytest.raises(FscaleError, match=r"no space left in .* for results"):
        prepare(small)


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Path]:
    """A loop device with a stable path, as a disk has."""
    image = tmp_path / "disk"
    with image.open("wb") as file:
        file.truncate(32 << 20)
    argv = ["losetup", "--find", "--show", image]
    node = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()
    by_id = tmp_path / "by-id"
    by_id.mkdir()
    (by_id / "wwn-1").symlink_to(node)
    yield by_id / "wwn-1"
    subprocess.run(["losetup", "--detach", node], check=True)


def contents(device: Path) -> bytes:
    return device.read_bytes()


@pytest.mark.root
def test_a_foreign_device_is_not_formatted(device: Path, tmp_path: Path) -> None:
    subprocess.run(["mkfs.ext4", "-q", "-L", "precious", device], check=True)
    before = contents(device)
    with pytest.raises(FscaleError) as caught:
        disk.check_device(device, None, device.parent)
    assert "ext4 precious" in str(caught.value)
    assert "--yes-format wwn-1" in str(caught.value)
    with pytest.raises(FscaleError, match="not formatted by fscale"):
        disk.check_device(device, "wwn-2", device.parent)
    assert disk.check_device(device, "wwn-1", device.parent).node == device.resolve()
    assert contents(device) == before


@pytest.mark.root
def test_our_own_label_needs_no_word(device: Path) -> None:
    with pytest.raises(FscaleError, match="no signature that wipefs knows"):
        disk.check_device(device, None, device.parent)
    subprocess.run(["mkfs.ext4", "-q", "-L", disk.LABEL, device], check=True)
    assert disk.check_device(device, None, device.parent).node == device.resolve()


@pytest.mark.root
def test_a_mounted_device_is_never_formatted(device: Path, tmp_path: Path) -> None:
    subprocess.run(["mkfs.ext4", "-q", "-L", disk.LABEL, device], check=True)
    target = tmp_path / "mnt"
    target.mkdir()
    subprocess.run(["mount", device, target], check=True)
    try:
        with pytest.raises(FscaleError, match=rf"is mounted at {target}"):
            disk.check_device(device, "wwn-1", device.parent)
    finally:
        subprocess.run(["umount", target], check=True)


@pytest.mark.root
def test_a_held_device_is_never_formatted(device: Path) -> None:
    fd = os.open(device, os.O_RDONLY | os.O_EXCL)
    try:
        with pytest.raises(FscaleError, match="cannot be opened exclusively"):
            disk.check_device(device, "wwn-1", device.parent)
    finally:
        os.close(fd)


@pytest.mark.root
def test_only_stable_paths(device: Path) -> None:
    with pytest.raises(FscaleError, match="is not a stable path"):
        disk.check_device(device.resolve(), "loop0", device.parent)
    with pytest.raises(FscaleError, match="is not a stable path"):
        disk.check_device(device, "wwn-1")  # the real by-id directory
    with pytest.raises(FscaleError, match="No such file"):
        disk.check_device(device.parent / "none", None, device.parent)
    (device.parent / "file").symlink_to("/etc/passwd")
    with pytest.raises(FscaleError, match="is not a block device"):
        disk.check_device(device.parent / "file", "file", device.parent)
