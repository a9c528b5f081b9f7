# SPDX-License-Identifier: GPL-2.0-only
"""Kernels that a machine boots by kexec, with programs in place of ssh, kexec and systemctl."""

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fscale.cli import app
from fscale.farm import remote
from fscale.farm.bootable import Bootable, OtherKernel
from fscale.farm.engine import open_engine
from fscale.farm.objects import Objects
from fscale.model.errors import FscaleError
from fscale.model.results import KernelBuild
from fscale.model.store import Store
from tests.support.farm import keys, task
from tests.support.ssh_machine import Machine
from tests.support.synthetic import write_run

LINK = Path("/lib/modules/0.0.1-fscale-test")
OWN = "6.1.0-own #1 Debian"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    monkeypatch.setattr(remote, "RETRY_SECONDS", 0.1)
    monkeypatch.setattr(remote, "BOOT_SECONDS", 60.0)
    made = Machine(tmp_path / "machine")
    made.use(monkeypatch)
    made.tell("fake")
    made.boots()
    # Links are made where modules lie; this machine's are left alone.
    made.program("ln", 'echo "$2 $3" >>$SSH_STUB/linked')
    yield made
    assert not made.directories


@pytest.fixture
def kernel(tmp_path: Path) -> Bootable:
    (tmp_path / "modules" / LINK.name).mkdir(parents=True)
    with tarfile.open(tmp_path / "modules.tar", "w") as archive:
        archive.add(tmp_path / "modules", ".")
    (tmp_path / "bzImage").write_text("a kernel")
    return Bootable(LINK.name, tmp_path / "bzImage", tmp_path / "modules.tar")


def text(machine: Machine, name: str) -> str:
    path = machine.place / name
    return path.read_text() if path.exists() else ""


def test_a_kernel_runs_and_the_own_one_again(machine: Machine, kernel: Bootable) -> None:
    said: list[str] = []
    with open_engine("ssh:box", said.append) as engine:
        for _ in range(2):
            engine.boot(kernel)  # type: ignore[attr-defined]
            assert text(machine, "boot/kernel").startswith(kernel.release)
            assert text(machine, "boot/cmdline") == "root=/dev/sda1 quiet panic=10 oops=panic\n"
        engine.submit([task(*keys(1))], Objects())
        answers = list(engine.collect())
        assert all(answer.complete for answer in answers), answers
    assert text(machine, "boot/kernel").strip() == OWN
    assert text(machine, "rebooted") == "rebooted\n"
    assert text(machine, "initramfs").split() == [kernel.release]
    assert said[-1] == f"box runs its own kernel again: {OWN}"


def test_a_kernel_that_panics_is_noticed(machine: Machine, kernel: Bootable) -> None:
    """It reboots by itself (panic=10), and nothing else reboots the machine."""
    machine.tell("panics")
    with open_engine("ssh:box", print) as engine:
        engine.boot(kernel)  # type: ignore[attr-defined]
        assert text(machine, "boot/kernel").strip() == OWN
    assert not text(machine, "rebooted")


def test_what_is_not_installed_is_not_booted(machine: Machine) -> None:
    with open_engine("ssh:box", print) as engine:
        with pytest.raises(FscaleError, match=r"box: no kernel 1\.2\.3 is installed"):
            engine.boot(Bootable("1.2.3"))  # type: ignore[attr-defined]
        assert text(machine, "boot/id") == "1\n"
    assert not text(machine, "rebooted")


def test_ab_takes_file_systems_and_kernels(machine: Machine, tmp_path: Path) -> None:
    side = ["kernel:1.2.3"]
    options = ["--fs", "tmpfs", "--suite", "smoke", "--on", "ssh:box"]
    argv = ["ab", "--base", *side, "--new", *side, *options, "--output", str(tmp_path / "out")]
    done = CliRunner().invoke(app, argv)
    assert "no kernel 1.2.3 is installed" in str(done.exception)


def test_nobody_gets_a_machine_that_boots(
    machine: Machine, kernel: Bootable, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.tell("lasting/lease", '{"owner": "somebody@else", "until": 9e9}')
    with (
        pytest.raises(FscaleError, match="in use: somebody@else boots another kernel"),
        open_engine("ssh:box", print),
    ):
        pass


def test_another_kernel_than_the_wanted_one_is_an_error(tmp_path: Path) -> None:
    run = Store(write_run(tmp_path, [])).load_run()
    assert run
    build = KernelBuild(version="#2", id="ab", taint=0, debug=[], debug_from="signs")
    cmdline = "quiet panic=10 oops=panic"
    wanted = {"kernel": "6.12.0", "build": build, "kernel_cmdline": cmdline}
    machine = run.machine.model_copy(update=wanted)
    Bootable("6.12.0", build_id="ab").check(machine)
    with pytest.raises(OtherKernel, match=r"should have booted 6\.13\.0, but runs 6\.12\.0"):
        Bootable("6.13.0").check(machine)
    with pytest.raises(OtherKernel, match="its build id is ab instead of cd"):
        Bootable("6.12.0", build_id="cd").check(machine)
    with pytest.raises(OtherKernel, match=r"runs 6\.12\.0 as it boots by itself"):
        Bootable("6.12.0").check(machine.model_copy(update={"kernel_cmdline": "quiet"}))
