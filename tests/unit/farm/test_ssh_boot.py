# SPDX-License-Identifier: GPL-2.0-only
"""Kernels that a machine boots by kexec, with programs in place of ssh, kexec and systemctl."""

import json
import re
import signal
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fscale.cli import app
from fscale.farm import remote, ssh
from fscale.farm.bootable import Bootable, Broken, OtherKernel
from fscale.farm.connection import Lost
from fscale.farm.controls import Controls
from fscale.farm.engine import open_engine
from fscale.farm.objects import Objects
from fscale.farm.remote import NotBack
from fscale.farm.visit import Visit
from fscale.model.errors import FscaleError, Interrupted
from fscale.model.results import KernelBuild
from fscale.model.store import Store
from tests.support.farm import keys, task
from tests.support.ssh_machine import Machine, until
from tests.support.synthetic import write_run

LINK = Path("/lib/modules/0.0.1-fscale-test")
OWN = "6.1.0-own #1 Debian"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    monkeypatch.setattr(remote, "RETRY_SECONDS", 0.1)
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
    leave = text(machine, "units").partition("ExecStart=")[2]
    assert re.match(r'/bin/sh -c "mkdir .* sh (/var/tmp/fscale\.\w+)/lib/\S+ leave \1"\n', leave)
    assert "OnBootSec=900" in leave
    (stop, enable) = ["stop fscale-leave.timer", "--quiet enable fscale-leave.timer"]
    disable = "--quiet disable fscale-leave.timer"
    ended = "is-system-running --wait"
    assert text(machine, "systemctl").splitlines() == [stop, enable, ended] * 2 + [disable]
    assert said[-1] == f"box runs its own kernel again: {OWN}"


def test_nothing_is_measured_before_the_cpus_are_idle(machine: Machine, kernel: Bootable) -> None:
    busy = """echo >>$SSH_STUB/slept
        slept=$(wc -l <$SSH_STUB/slept)
        [ "$slept" -gt 3 ] || echo "cpu  $slept 0 ${slept}00 4" >$SSH_STUB/boot/stat"""
    machine.program("sleep", busy)
    with open_engine("ssh:box", print) as engine:
        engine.boot(kernel)  # type: ignore[attr-defined]
        assert text(machine, "slept") == "\n" * 4


def test_kernels_may_differ_only_in_their_modules(
    machine: Machine, kernel: Bootable, tmp_path: Path
) -> None:
    other = tmp_path / "other.tar"
    with tarfile.open(other, "w") as archive:
        archive.add(tmp_path / "modules" / LINK.name, f"{LINK.name}/new")
        archive.add(tmp_path / "modules", ".")
    with open_engine("ssh:box", print) as engine:
        for one in (kernel, replace(kernel, modules=other), kernel):
            engine.boot(one)  # type: ignore[attr-defined]
    base, new, again = text(machine, "linked").splitlines()
    assert base == again != new


def test_a_kernel_that_was_only_loaded_is_not_left_behind(
    machine: Machine, kernel: Bootable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newer systemd reboots into it."""

    def interrupt(*_: object) -> None:
        raise Interrupted

    with pytest.raises(Interrupted), open_engine("ssh:box", print) as engine:
        engine.boot(kernel)  # type: ignore[attr-defined]
        monkeypatch.setattr(Visit, "let_go", interrupt)
        engine.boot(kernel)  # type: ignore[attr-defined]
    assert text(machine, "boot/kernel").strip() == OWN


def test_a_kernel_that_panics_is_broken(machine: Machine, kernel: Bootable) -> None:
    """It reboots by itself (panic=10), and nothing else reboots the machine."""
    machine.tell("panics")
    machine.tell("crash", "Kernel panic - not syncing: \x1b[31mon purpose\r\n")
    machine.program("find", 'echo "$SSH_STUB/crash"')
    with open_engine("ssh:box", print) as engine:
        with pytest.raises(Broken, match="box came back with its own kernel"):
            engine.boot(kernel)  # type: ignore[attr-defined]
        evidence = engine.evidence()  # type: ignore[attr-defined]
        assert evidence == "pstore:\nKernel panic - not syncing: ?[31mon purpose?\n"
        (machine.place / "panics").unlink()
        engine.boot(kernel)  # type: ignore[attr-defined]
    assert text(machine, "rebooted") == "rebooted\n"


def test_a_kernel_that_hangs_is_reset(machine: Machine, kernel: Bootable) -> None:
    machine.tell("hangs")
    console = "echo 'starting\\033[0m\r'; echo waiting; exec sleep 600"
    with open_engine("ssh:box", print) as engine:
        engine.use(Controls(f"sh {machine.place}/reset", console, 3))  # type: ignore[attr-defined]
        with pytest.raises(Broken, match="did not come back within 3 s of the boot, and was reset"):
            engine.boot(kernel)  # type: ignore[attr-defined]
        assert engine.evidence() == "console:\nstarting\nwaiting"  # type: ignore[attr-defined]
        assert text(machine, "boot/kernel").strip() == OWN
    assert not text(machine, "rebooted")


def test_without_a_command_the_user_is_asked_to_reset(machine: Machine, kernel: Bootable) -> None:
    machine.tell("hangs")

    def say(line: str) -> None:
        if "reset it within 3 s" in line:
            machine.reset()

    with open_engine("ssh:box", say) as engine, pytest.raises(Broken, match="was reset"):
        engine.use(Controls(boot_seconds=3))  # type: ignore[attr-defined]
        engine.boot(kernel)  # type: ignore[attr-defined]


def test_a_reset_that_fails_ends_the_command(machine: Machine, kernel: Bootable) -> None:
    machine.tell("hangs")
    with (
        pytest.raises(NotBack, match="failed with exit code 3: no power; reset it, which boots"),
        open_engine("ssh:box", print) as engine,
    ):
        engine.use(Controls("echo no power; exit 3", boot_seconds=1))  # type: ignore[attr-defined]
        engine.boot(kernel)  # type: ignore[attr-defined]
    machine.reset()
    assert machine.directories
    with open_engine("ssh:box", print):
        assert len(machine.directories) == 1, "that of this visit"


def test_a_crash_in_a_task_is_told_from_a_broken_connection(
    machine: Machine, kernel: Bootable
) -> None:
    machine.tell("hold")

    def crash() -> None:
        until(lambda: machine.log.count("begins 1") == 1)
        machine.crash()
        until(lambda: machine.log.count("begins 1") == 2)
        machine.tell("cut")
        (machine.place / "hold").unlink()

    thread = threading.Thread(target=crash)
    thread.start()
    with open_engine("ssh:box", print) as engine:
        for error in (Broken, Lost):
            engine.boot(kernel)  # type: ignore[attr-defined]
            engine.submit([task(*keys(1))], Objects())
            with pytest.raises(error):
                list(engine.collect())
            assert text(machine, "boot/kernel").strip() == OWN
        engine.boot(kernel)  # type: ignore[attr-defined]
    thread.join()
    assert text(machine, "rebooted").count("rebooted") == 2


def test_a_task_that_hangs_breaks_its_kernel(
    machine: Machine, kernel: Bootable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh, "HANG_SECONDS", 0.0)
    machine.tell("hold")
    with open_engine("ssh:box", print) as engine:
        engine.boot(kernel)  # type: ignore[attr-defined]
        engine.submit([task(*keys(1))], Objects())
        with pytest.raises(Broken, match="did not end a task within 2 s"):
            list(engine.collect())
        assert text(machine, "boot/kernel").strip() == OWN


def test_what_a_killed_command_left_is_restored(
    machine: Machine, kernel: Bootable, tmp_path: Path
) -> None:
    """It was killed while its kernel booted, so nobody came back to that."""
    code = (
        "import os, pathlib\n"
        "from fscale.farm import remote\n"
        "from fscale.farm.bootable import Bootable\n"
        "from fscale.farm.engine import open_engine\n"
        "remote.Remote._await = lambda *_: os.kill(os.getpid(), 9)\n"
        f"place = pathlib.Path({str(tmp_path)!r})\n"
        "with open_engine('ssh:box', print) as engine:\n"
        f"    engine.boot(Bootable({kernel.release!r}, place / 'bzImage', place / 'modules.tar'))\n"
    )
    killed = subprocess.run([sys.executable, "-c", code], check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = machine.directories
    assert text(machine, "boot/kernel").startswith(kernel.release)
    until(lambda: not (machine.place / "cut").exists())
    argv = ["restore", "--on", "ssh:box"]
    done = CliRunner().invoke(app, argv, catch_exceptions=False)
    assert done.stdout.splitlines() == [f"restored: {left}", "restored: its own kernel"]
    assert text(machine, "boot/kernel").strip() == OWN


def test_what_is_not_installed_is_not_booted(machine: Machine) -> None:
    with open_engine("ssh:box", print) as engine:
        with pytest.raises(FscaleError, match=r"box: no kernel 1\.2\.3 is installed"):
            engine.boot(Bootable("1.2.3"))  # type: ignore[attr-defined]
        assert text(machine, "boot/id") == "1\n"
    assert not text(machine, "rebooted")


SIDES = ["--base", "kernel:1.2.3", "--new", "kernel:1.2.3", "--fs", "tmpfs"]


def told(command: list[str]) -> str:
    """What the command says that fails; a bisection prints it for git."""
    done = CliRunner().invoke(app, command)
    return f"{done.exception} {done.output}".replace("\n", " ")


@pytest.mark.parametrize(
    "command", [["ab", *SIDES], ["noise", "--fs", "tmpfs:kernel=1.2.3"], ["bisect", *SIDES]]
)
def test_commands_boot_kernels_there(
    machine: Machine, tmp_path: Path, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[Controls] = []
    monkeypatch.setattr(ssh.Ssh, "use", lambda _, controls: used.append(controls))
    more = ["--suite", "smoke", "--on", "ssh:box", "--reset-command", "r", "--console-command", "c"]
    output = ["--boot-timeout", "900", "--output", str(tmp_path / "out")]
    assert "box: no kernel 1.2.3 is installed" in told([*command, *more, *output])
    assert used == [Controls("r", "c", 900)]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["noise", "--fs", "ext4", "--on", "ssh:box"], "kernels are compared there"),
        (["noise", "--fs", "ext4", "--console-command", "x"], "--console-command: not supported"),
        (["ab", "--base", "ext4", "--new", "ext4", "--reset-command", "x"], "--reset-command: not"),
        (["noise", "--fs", "ext4:kernel=6.12", "--on", "slurm"], "not the name of one machine"),
    ],
)
def test_what_makes_no_sense_is_refused(command: list[str], reason: str) -> None:
    assert reason in told(command)


def test_nobody_gets_a_machine_that_boots(
    machine: Machine, kernel: Bootable, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = {"owner": "somebody@else", "boot": "other", "since": 0, "seconds": 9e9}
    machine.tell("lasting/lease", json.dumps(lease))
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
