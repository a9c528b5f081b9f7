# SPDX-License-Identifier: GPL-2.0-only
"""A boot becomes a task, which another machine turns back into the same boot, without QEMU."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from fscale.farm.answer import Answer, Header
from fscale.farm.objects import Objects
from fscale.farm.task import Task
from fscale.model.errors import Exit, FscaleError
from fscale.model.store import Store
from fscale.vm import guest as guests
from fscale.vm import qemu, run_task
from fscale.vm.guest import GuestError, GuestOutcome
from fscale.vm.kernel import Kernel
from fscale.vm.place import Job, write_control
from fscale.vm.qemu import Guest, Qemu
from fscale.vm.steps import Steps
from fscale.vm.tasks import BootFailed, Elsewhere, GuestJob, boot_from, make
from tests.support.farm import received
from tests.unit.ab.test_guest_boots import boot as made_boot

STEPS = Steps(Console(file=io.StringIO()))
FILES = ("vmlinux", "initramfs", "modules", "root", "a.ko", "b.ko", "my.toml", "mkfs.my")


@pytest.fixture
def emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Qemu:
    (tmp_path / qemu.PROGRAM).write_text("a build")
    found = Qemu((str(tmp_path / qemu.PROGRAM),), None, "10.0.0")
    monkeypatch.setattr(qemu, "find", lambda steps: found)
    return found


@pytest.fixture
def boot(tmp_path: Path) -> GuestJob:
    """A boot whose files are small."""
    vmlinux, initramfs, modules, root, *own, toml, tool = (tmp_path / name for name in FILES)
    for name in FILES:
        (tmp_path / name).write_text(f"content of {name}")
    kernel = Kernel("bookworm", "6.1", vmlinux, initramfs, modules)
    guest = Guest(kernel, 2, "1G", "tcg-icount", "quiet", {"root": root})
    control = {"filesystems/my.toml": toml, "bin/mkfs.my": tool}
    job = Job(["true"], tmp_path / "boots" / "A1", own[::-1], control, timeout=7)
    return GuestJob(guest, job)


def test_a_task_is_the_same_boot_elsewhere(boot: GuestJob, emulator: Qemu, tmp_path: Path) -> None:
    objects = Objects()
    asked, directory = received(make(boot, emulator, objects, "1"), tmp_path, objects)
    there, _ = boot_from(asked, directory, tmp_path / "out", STEPS)
    kernel = there.guest.kernel
    files = [kernel.image, kernel.initramfs, kernel.modules, *there.guest.images.values()]
    texts = [path.read_text() for path in files if path]
    assert texts == [f"content of {name}" for name in ("vmlinux", "initramfs", "modules", "root")]
    assert replace(there.guest, kernel=boot.guest.kernel, images=boot.guest.images) == boot.guest
    (control := tmp_path / "control").mkdir()
    write_control(control, there.job, {})
    assert (control / "modules/order").read_text() == "b.ko\na.ko\n"
    assert (control / "filesystems/my.toml").read_text() == "content of my.toml"
    assert (control / "bin/mkfs.my").stat().st_mode & 0o111 == 0o111
    assert (there.job.argv, there.job.timeout, there.output) == (["true"], 7, tmp_path / "out")


def test_boots_of_equal_sides_and_of_other_calls_are_different(
    boot: GuestJob, emulator: Qemu, tmp_path: Path
) -> None:
    other = GuestJob(boot.guest, replace(boot.job, output=tmp_path / "boots" / "B1"))
    calls = ((boot, "1"), (other, "1"), (boot, "2"))
    assert len({make(one, emulator, Objects(), call).plan for one, call in calls}) == 3


def test_another_qemu_is_refused(boot: GuestJob, emulator: Qemu, tmp_path: Path) -> None:
    objects = Objects()
    asked, directory = received(make(boot, emulator, objects, "1"), tmp_path, objects)
    (tmp_path / qemu.PROGRAM).write_text("another build of the same version")
    with pytest.raises(FscaleError) as refused:
        run_task.boot(asked, directory, tmp_path / "out")
    assert refused.value.code == Exit.USAGE  # so that another machine runs it


def test_a_guest_that_panics_fails_its_task(
    boot: GuestJob, emulator: Qemu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def panics(*given: object) -> GuestOutcome:
        assert not (tmp_path / "out").exists()  # what a killed worker left is gone
        return GuestOutcome("panic", None, 1.0, None, "BUG", None, Path("console.log"))

    monkeypatch.setattr(guests, "run", panics)
    objects = Objects()
    asked, directory = received(make(boot, emulator, objects, "1"), tmp_path, objects)
    (tmp_path / "out").mkdir()
    with pytest.raises(GuestError) as failed:
        run_task.boot(asked, directory, tmp_path / "out")
    assert failed.value.code == Exit.FAILED


class Engine:
    """Answers boots with made runs; those of the outputs in `broken` fail."""

    slots = 2

    def __init__(self, *broken: int) -> None:
        self._broken = broken
        self._tasks: Sequence[Task] = ()

    def submit(self, tasks: Sequence[Task], objects: Objects) -> None:
        assert {digest for task in tasks for digest in task.files.values()} == {*objects.paths}
        self._tasks = tasks

    def collect(self) -> Iterator[Answer]:
        for number, task in enumerate(self._tasks):
            code = int(number in self._broken)
            header = Header(task=task.id, host="node7", code=code, text="said")
            yield Answer(task, header, [], {}, record=None if code else b"{}")


def test_what_boots_stored_is_kept_also_if_one_fails(
    boot: GuestJob, emulator: Qemu, tmp_path: Path
) -> None:
    boots = [
        GuestJob(boot.guest, replace(boot.job, output=tmp_path / "boots" / name))
        for name in ("A1", "B1")
    ]
    made_boot(tmp_path, "A", 1, 1.0)
    said: list[str] = []
    with pytest.raises(BootFailed, match="A1 on node7"):
        Elsewhere(Engine(0), emulator, said.append).run(boots)
    assert Store(boots[0].output).load_run() is None  # that of an earlier call is gone
    assert (boots[1].output / "crash.json").read_bytes() == b"{}"
    assert [boot.output.with_suffix(".log").read_text() for boot in boots] == ["said\n"] * 2
    assert len(said) == 1
