# SPDX-License-Identifier: GPL-2.0-only
"""A second device that a command of a cell names: checked as the first, or left untouched."""

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fscale.model import catalogue
from fscale.model.errors import FscaleError
from fscale.runner import resources
from fscale.runner.prepare import prepare
from fscale.runner.request import Request
from fscale.runner.session import Session, machine_held, new_tag
from fscale.runner.signals import Signals
from fscale.runner.storage import named
from fscale.system.executor import Executor
from tests.support.runner import STATE, fake_bench, fscale, suite

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("unchanged")]
NAME = "wwn-2"


def content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def second(tmp_path: Path) -> Iterator[Path]:
    """A loop device with somebody's file system; a name in by-id, and others that lead to it."""
    backing = tmp_path / "backing"
    with backing.open("wb") as file:
        file.truncate(128 << 20)
    uuid = "6d1c44ce-0b0e-4a33-9c4e-3f0d6a1b2c3d"
    mkfs = ["mkfs.ext4", "-q", "-F", "-L", "precious", "-U", uuid, backing]
    subprocess.run(mkfs, check=True)
    attach = ["losetup", "--show", "--find", backing]
    node = Path(subprocess.run(attach, check=True, capture_output=True, text=True).stdout.strip())
    for folder, name in (("by-id", NAME), ("by-path", "pci-0:1"), ("by-uuid", uuid)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).symlink_to(node)
    (tmp_path / "link").symlink_to(node)
    yield tmp_path / "by-id" / NAME
    subprocess.run(["losetup", "--detach", node], check=True)


def written(directory: Path, mkfs: object, mount: object = ("noatime",), **keys: object) -> Path:
    """The TOML file of a file system."""
    told = {"title": "t", "kernel": "xfs", "mkfs": mkfs, "mount_options": mount, **keys}
    path = directory / "own.toml"
    path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in told.items()))
    return path


XFS = ["mkfs.xfs", "-q", "-f", "{device}"]


@pytest.mark.parametrize(
    ("mkfs", "keys"),
    [
        (["mkfs.xfs", "-f", "-l", "logdev=BY-ID,size=64m", "{device}"], {}),
        (["mkfs.xfs", "-f", "-llogdev=BY-ID", "{device}"], {}),
        (["mkfs.xfs", "-f", "-l", "size=64m,logdev=NODE", "{device}"], {}),
        (["mkfs.xfs", "-f", "-r", "rtdev=LINK", "{device}"], {}),
        (["mkfs.xfs", "-f", "-r", "rtdev=BY-PATH", "{device}"], {}),
        (["mkfs.xfs", "-f", "-l", "logdev=BY-UUID", "{device}"], {}),
        (["mkfs.ext4", "-F", "-J", "device=NODE", "{device}"], {}),
        (["mkfs.ext4", "-F", "-Jdevice=UUID=6d1c44ce-0b0e-4a33-9c4e-3f0d6a1b2c3d", "{device}"], {}),
        (["mkfs.ext4", "-F", "-J", "size=4,device=LABEL=precious", "{device}"], {}),
        (["mkfs.btrfs", "-f", "-d", "raid1", "{device}", "NODE"], {}),
        (["mkfs.btrfs", "-f", "BY-ID", "{device}"], {}),
        (["mkfs.f2fs", "-f", "-c", "NODE", "{device}"], {}),
        (["mkfs.f2fs", "-f", "-cNODE@fast", "{device}"], {}),
        (["bcachefs", "format", "--force", "--label=ssd", "NODE", "{device}"], {}),
        (["mdadm", "--create", "/dev/md/none", "{device}", "NODE"], {}),
        (["sh", "-c", "mkfs.xfs -f -l logdev=NODE {device}"], {}),
        (["sh", "-c", "dd if=/dev/zero of=NODE; mkfs.xfs {device}"], {}),
        (["sh", "-c", "D=/dev/; mkfs.xfs -l logdev=${D}loop0 {device}"], {}),
        (["sh", "-c", "cd /dev && mkfs.xfs -l logdev=loop0 {device}"], {}),
        (["nice", "mkfs.xfs", "-l", "logdev=RELATIVE", "{device}"], {}),
        (["python3", "-c", "import os", "{device}"], {}),
        (["mkfs.xfs", "{device}b"], {}),
        (["mkfs.xfs", "-l", "logdev=/dev/disk/by-id/NOT-YET", "{device}"], {}),
        (["mkfs.xfs", "-l", "logdev=BACKING", "{device}"], {}),
        (["mkfs.btrfs", "{device}", "BACKING"], {}),
        (["mkfs.btrfs", "{device}", "/tmp/not-yet-there"], {}),
        (["bcachefs", "format", "{device}", "./not-yet-there"], {}),
        (XFS, {"mount": ["noatime", "logdev=NODE"]}),
        (XFS, {"mount": ["noatime", "journal_path=BY-ID"]}),
        (XFS, {"mount": ["rtdev=LABEL=precious"]}),
        (XFS, {"mount": ["journal_dev=NUMBER"]}),
        (XFS, {"check": ["fsck.any", "{device}", "NODE"]}),
        (XFS, {"version": ["dump", "--log=NODE"]}),
    ],
)  # fmt: skip
def test_a_second_device_that_was_not_allowed_keeps_its_content(
    tmp_path: Path, second: Path, mkfs: list[str], keys: dict[str, object]
) -> None:
    node = second.resolve()
    number = node.stat().st_rdev
    said = {
        "BY-ID": second, "BY-PATH": tmp_path / "by-path" / "pci-0:1", "LINK": tmp_path / "link",
        "BY-UUID": next((tmp_path / "by-uuid").iterdir()), "BACKING": tmp_path / "backing",
        "RELATIVE": os.path.relpath(node), "NODE": node,
        "NUMBER": hex((os.major(number) << 8) | os.minor(number)),
    }  # fmt: skip
    path = written(tmp_path, **{"mkfs": mkfs, **keys})
    text = path.read_text()
    for word, value in said.items():
        text = text.replace(word, str(value))
    path.write_text(text)
    before = content(tmp_path / "backing")
    # Not all of the programs are installed; what a command names is looked at before it runs.
    request = Request(suite=path, output=tmp_path / "out", by_id=tmp_path / "by-id")
    with pytest.raises(FscaleError) as caught:
        resources.check_named(request, {"own": catalogue.load_filesystem(str(path))}, {})
    assert caught.value.code == 2
    assert content(tmp_path / "backing") == before


@pytest.mark.parametrize(
    ("mkfs", "mount"),
    [
        (["mkfs.xfs", "-q", "-f", "-l", "logdev=DEV,size=64m", "{device}"], ["logdev=DEV"]),
        (["mkfs.btrfs", "-q", "-f", "{device}", "DEV"], ["noatime"]),
        (["sh", "-c", "dd if=/dev/zero of=DEV; mkfs.xfs -q -f {device}"], ["noatime"]),
    ],
)
@pytest.mark.parametrize("name", ["node", "by-id"])
def test_the_whole_command_leaves_it_alone(
    tmp_path: Path, second: Path, mkfs: list[str], mount: list[str], name: str
) -> None:
    device = str(second if name == "by-id" else second.resolve())
    own = written(
        tmp_path,
        [word.replace("DEV", device) for word in mkfs],
        [option.replace("DEV", device) for option in mount],
        kernel="btrfs" if "btrfs" in mkfs[0] else "xfs",
    )
    (tmp_path / "ram.toml").write_text('title = "r"\nkind = "loop"\nsize = "320M"\n')
    before = content(tmp_path / "backing")
    for arguments in (
        ["run", "smoke", "--fs", own, "--workload", "DRBL", "--cores", "1"],
        ["ab", "--base", "tmpfs", "--new", own, "--workload", "DRBL", "--cores", "1"],
    ):
        given = ["--media", tmp_path / "ram.toml", "--output", tmp_path / f"out-{arguments[0]}"]
        done = fscale(*arguments, *given)
        assert done.returncode == 2, done.stdout + done.stderr
        assert content(tmp_path / "backing") == before


def test_a_second_device_that_is_allowed_is_used_recorded_and_watched(
    tmp_path: Path, second: Path
) -> None:
    log = f"logdev={second}"
    own = written(tmp_path, ["mkfs.xfs", "-q", "-f", "-l", f"{log},size=64m", "{device}"], [log])
    medium = tmp_path / "ram.toml"
    medium.write_text('title = "r"\nkind = "loop"\nsize = "320M"\n')
    request = Request(
        suite=suite(tmp_path, filesystems=[str(own)], media=[str(medium)], repetitions=3),
        output=tmp_path / "out",
        binary=fake_bench(tmp_path),
        yes_format=f"other,{NAME}",
        by_id=tmp_path / "by-id",
    )
    with machine_held(STATE, print):
        prepared = prepare(request)
        recorded = prepared.run.filesystems["own"]["devices"]
        assert recorded[str(second)]["size"] == 128 << 20
        session = Session(prepared.setup, prepared.store, STATE, Executor(new_tag()), Signals())
        with session.opened():
            for key in prepared.cells[:2]:
                cell = session.cell(key)
                assert cell.status == "ok", cell.reason
            subprocess.run(["mkfs.ext4", "-q", "-F", tmp_path / "backing"], check=True)
            subprocess.run(["blockdev", "--flushbufs", second], check=True)
            before = content(tmp_path / "backing")
            cell = session.cell(prepared.cells[2])
    assert cell.status == "error"
    assert "which was not there when it was checked" in (cell.reason or "")
    assert content(tmp_path / "backing") == before


def test_commands_of_the_suite_name_no_second_device() -> None:
    for fs in catalogue.filesystems():
        assert named.devices(fs) == []


@pytest.mark.parametrize(
    "mkfs",
    [
        ["mkfs.ext4", "-F", "-d", "/etc", "{device}", "1G"],
        ["sh", "-c", 'mkfs.ext4 -q -F "$0" 2>/dev/null', "{device}"],
        ["dd", "if=/dev/zero", "of={device}"],
        ["mkfs.xfs", "-f", "-l", "internal,size=64m", "-n", "ftype=1", "{device}"],
        ["mkfs.btrfs", "--label=UUID", "-f", "{device}"],
        ["mkfs.f2fs", "-c{device}", "-f", "{device}"],
    ],
)
def test_what_names_no_second_device_is_let_through(tmp_path: Path, mkfs: list[str]) -> None:
    path = written(tmp_path, mkfs)
    assert named.devices(catalogue.load_filesystem(str(path))) == []
