# SPDX-License-Identifier: GPL-2.0-only
"""A device that is another one by the next cell: nothing of others is ever written to."""

import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fscale.model.config import FileSystem
from fscale.model.errors import FscaleError
from fscale.model.results import Cell
from fscale.runner.prepare import Prepared, prepare
from fscale.runner.request import Request
from fscale.runner.session import Session, machine_held, new_tag
from fscale.runner.signals import Signals
from fscale.runner.storage import disk, filesystem
from fscale.system.executor import Executor
from tests.support.runner import STATE, fake_bench, suite

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("unchanged")]
NAME = "wwn-1"


def attached(image: Path, *where: object) -> Path:
    argv = ["losetup", "--show", *map(str, where or ["--find"]), str(image)]
    return Path(subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip())


def detach(node: Path) -> None:
    subprocess.run(["losetup", "--detach", node], check=False, capture_output=True)


def image(path: Path, label: str | None = None) -> Path:
    with path.open("wb") as file:
        file.truncate(64 << 20)
    if label:
        subprocess.run(["mkfs.ext4", "-q", "-F", "-L", label, path], check=True)
    return path


def content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[Path]:
    """The stable path of a loop device with our label, as a disk of ours has."""
    node = attached(image(tmp_path / "ours", disk.LABEL))
    (tmp_path / "by-id").mkdir()
    (tmp_path / "by-id" / NAME).symlink_to(node)
    yield tmp_path / "by-id" / NAME
    detach(node)


@pytest.fixture
def others(tmp_path: Path) -> Iterator[Path]:
    """Another one with our label: only what the device is tells it from ours."""
    node = attached(image(tmp_path / "others", disk.LABEL))
    yield node
    detach(node)


def made(tmp_path: Path, device: Path, **changes: object) -> Prepared:
    bench = fake_bench(tmp_path)
    bench.write_text(bench.read_text().replace("min_cores=cores,", "min_cores=1, partitions=True,"))
    request = Request(
        suite=suite(tmp_path, **{"repetitions": 3, **changes}),
        output=tmp_path / "out",
        binary=bench,
        device=device,
        by_id=device.parent,
    )
    return prepare(request)


def opened(prepared: Prepared) -> Session:
    return Session(prepared.setup, prepared.store, STATE, Executor(new_tag()), Signals())


def programs(cell: Cell) -> list[str]:
    return [command.argv[0] for command in cell.commands]


@pytest.mark.parametrize("filesystem", ["ext4", "ext4:2", "xfs", "btrfs"])
def test_a_device_is_formatted_again_and_again(tmp_path: Path, ours: Path, filesystem: str) -> None:
    if filesystem in ("xfs", "btrfs"):
        with (tmp_path / "ours").open("r+b") as file:
            file.truncate(512 << 20)
        subprocess.run(["losetup", "--set-capacity", ours], check=True)
    with machine_held(STATE, print):
        prepared = made(tmp_path, ours, filesystems=[filesystem])
        session = opened(prepared)
        with session.opened():
            for key in prepared.cells:
                cell = session.cell(key)
                assert cell.status in ("ok", "skipped"), cell.reason
                if cell.status == "ok":
                    assert f"mkfs.{filesystem.partition(':')[0]}" in programs(cell)


@pytest.mark.parametrize("filesystem", ["ext4", "ext4:2"])
def test_a_name_that_leads_to_another_device_is_not_followed(
    tmp_path: Path, ours: Path, others: Path, filesystem: str
) -> None:
    before = content(others)
    with machine_held(STATE, print):
        prepared = made(tmp_path, ours, filesystems=[filesystem])
        session = opened(prepared)
        with session.opened():
            assert session.cell(prepared.cells[0]).status == "ok"
            after_first = content(tmp_path / "ours")
            home = ours.resolve()
            ours.unlink()
            ours.symlink_to(others)
            cell = session.cell(prepared.cells[1])
            assert cell.status == "error"
            assert "is not the device that was checked (number" in (cell.reason or "")
            assert programs(cell) == []
            ours.unlink()
            ours.symlink_to(home)
            assert content(tmp_path / "ours") == after_first
            assert session.cell(prepared.cells[2]).status == "ok"
    assert content(others) == before


def test_a_device_with_the_same_name_and_another_serial_is_left_alone(
    tmp_path: Path, ours: Path
) -> None:
    prepared = made(tmp_path, ours)
    node = ours.resolve()
    replacement = image(tmp_path / "replacement", disk.LABEL)
    before = content(replacement)
    detach(node)
    attached(replacement, node)
    with machine_held(STATE, print):
        session = opened(prepared)
        with session.opened():
            cell = session.cell(prepared.cells[0])
    assert cell.status == "error"
    assert "sequence number" in (cell.reason or "")
    assert f"loop/backing_file {tmp_path / 'ours'} -> {replacement}" in (cell.reason or "")
    assert programs(cell) == []
    detach(node)
    assert content(replacement) == before


def test_no_other_device_gets_the_name_while_the_run_has_it(tmp_path: Path, ours: Path) -> None:
    node = ours.resolve()
    replacement = image(tmp_path / "replacement", disk.LABEL)
    before = content(replacement)
    with machine_held(STATE, print):
        prepared = made(tmp_path, ours)
        session = opened(prepared)
        with session.opened():
            assert session.cell(prepared.cells[0]).status == "ok"
            detach(node)  # as unplugging it: the kernel lets go when all have
            with pytest.raises(subprocess.CalledProcessError):
                attached(replacement, node)
            assert session.cell(prepared.cells[1]).status == "ok"
    assert content(replacement) == before


def test_nobody_else_can_take_the_device_between_cells(tmp_path: Path, ours: Path) -> None:
    with machine_held(STATE, print):
        prepared = made(tmp_path, ours)
        session = opened(prepared)
        with session.opened():
            assert session.cell(prepared.cells[0]).status == "ok"
            with pytest.raises(OSError, match="busy"):
                os.open(ours, os.O_RDONLY | os.O_EXCL)
            done = subprocess.run(["mkfs.ext4", "-q", "-F", ours], capture_output=True, check=False)
            assert done.returncode != 0
            assert session.cell(prepared.cells[1]).status == "ok"
    os.close(os.open(ours, os.O_RDONLY | os.O_EXCL))


def test_what_others_left_on_the_device_between_cells_is_kept(tmp_path: Path, ours: Path) -> None:
    with machine_held(STATE, print):
        prepared = made(tmp_path, ours)
        session = opened(prepared)
        with session.opened():
            assert session.cell(prepared.cells[0]).status == "ok"
            subprocess.run(["e2label", ours, "precious"], check=True)
            before = content(ours)
            cell = session.cell(prepared.cells[1])
    assert cell.status == "error"
    assert "ext4 precious" in (cell.reason or "")
    assert content(ours) == before


def test_a_device_that_is_mounted_between_check_and_run_is_left_alone(
    tmp_path: Path, ours: Path
) -> None:
    prepared = made(tmp_path, ours)
    target = tmp_path / "mnt"
    target.mkdir()
    subprocess.run(["mount", ours, target], check=True)
    try:
        with machine_held(STATE, print):
            session = opened(prepared)
            with session.opened():
                cell = session.cell(prepared.cells[0])
    finally:
        subprocess.run(["umount", target], check=True)
    assert cell.status == "error"
    assert f"is mounted at {target}" in (cell.reason or "")
    assert programs(cell) == []


def test_a_run_goes_on_with_its_own_device_only(tmp_path: Path, ours: Path, others: Path) -> None:
    before = content(others)
    with machine_held(STATE, print):
        prepared = made(tmp_path, ours, repetitions=1)
        prepared.store.save_run(prepared.run)
        session = opened(prepared)
        with session.opened():
            assert session.cell(prepared.cells[0]).status == "ok"
        assert made(tmp_path, ours, repetitions=1).resumed
        ours.unlink()
        ours.symlink_to(others)
        with pytest.raises(
            FscaleError, match=r"cannot be resumed, because these differ:\n    media\.device"
        ):
            made(tmp_path, ours, repetitions=1)
    assert content(others) == before


def test_a_medium_of_our_own_that_became_another_device_is_left_alone(tmp_path: Path) -> None:
    node = attached(image(tmp_path / "first"))
    checked = disk.record_own_device(str(node))
    detach(node)
    attached(image(tmp_path / "second"), node)
    try:
        with pytest.raises(FscaleError, match="is not the device that was checked"):
            disk.Disk(checked)
    finally:
        detach(node)


def test_a_checker_sees_what_went_past_the_page_cache_of_a_device_that_is_held(
    tmp_path: Path,
) -> None:
    backing = image(tmp_path / "backing")
    node = attached(backing)
    fs = FileSystem(
        title="t", kernel="t", mkfs=["true", "{device}"], check=["grep", "-q", "new", "{device}"]
    )
    try:
        taken = disk.Disk(disk.record_own_device(str(node)))
        node.read_bytes()  # into the page cache, which stays as long as the device is held
        with filesystem.checked(fs, str(node), Executor()), backing.open("r+b") as file:
            file.write(b"new")
        taken.close()
    finally:
        detach(node)


def test_a_disk_without_a_serial_is_known_by_its_sequence_number(tmp_path: Path) -> None:
    """A loop device stands for a virtual disk; udev, which may not be there, makes no link."""
    backing = image(tmp_path / "backing")
    node = attached(backing)
    try:
        before = content(backing)
        with pytest.raises(FscaleError, match="is not a stable path") as caught:
            disk.check_device(node, node.name)
        number = (Path("/sys/block") / node.name / "diskseq").read_text().strip()
        assert f"/dev/disk/by-diskseq/{number}" in str(caught.value)
        stable = Path("/dev/disk/by-diskseq") / number
        with pytest.raises(FscaleError, match=f"add --yes-format {number}"):
            disk.check_device(stable, None)
        assert content(backing) == before
        with machine_held(STATE, print):
            request = Request(
                suite=suite(tmp_path, repetitions=2), output=tmp_path / "out",
                binary=fake_bench(tmp_path), device=stable, yes_format=number,
            )  # fmt: skip
            prepared = prepare(request)
            session = opened(prepared)
            with session.opened():
                for key in prepared.cells:
                    cell = session.cell(key)
                    assert cell.status == "ok", cell.reason
        detach(node)
        attached(image(tmp_path / "another"), node)
        with pytest.raises(FscaleError, match="cannot be opened"):
            disk.check_device(stable, number)
    finally:
        detach(node)
