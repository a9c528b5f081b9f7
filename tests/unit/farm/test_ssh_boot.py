# SPDX-License-Identifier: GPL-2.0-only
"""Kernels that a machine boots by kexec, with programs in place of ssh, kexec and systemctl."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fscale.cli import app
from fscale.farm import connection, remote, ssh, visit
from fscale.farm.bootable import Bootable, Broken, OtherKernel
from fscale.farm.connection import Lost
from fscale.farm.controls import Controls
from fscale.farm.engine import open_engine
from fscale.farm.objects import Objects
from fscale.farm.remote import NotBack
from fscale.farm.visit import Visit
from fscale.model.errors import Exit, FscaleError, Interrupted
from fscale.model.results import KernelBuild
from fscale.model.store import Store
from tests.support.farm import keys, task
from tests.support.ssh_machine import Machine, tag, until
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
    machine.program("mv", f'echo >>$SSH_STUB/stored; exec {shutil.which("mv")} "$@"')
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
    assert text(machine, "stored") == "\n\n", "kernel and modules, once"
    leave = text(machine, "units").partition("ExecStart=")[2]
    assert re.match(r'/bin/sh -c "mkdir .* sh (/var/tmp/fscale\.\w+)/lib/\S+ leave \1"\n', leave)
    assert "OnBootSec=900" in leave
    (stop, enable) = ["stop fscale-leave.timer", "--quiet enable fscale-leave.timer"]
    disable = "--quiet disable --now fscale-leave.timer"
    ended = "is-system-running --wait"
    assert text(machine, "systemctl").splitlines() == [stop, enable, ended] * 2 + [disable]
    assert said[-1] == f"box runs its own kernel again: {OWN}"


def test_arguments_of_init_stay_behind_those_of_the_kernel(
    machine: Machine, kernel: Bootable
) -> None:
    machine.tell("boot/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 -- --log-level=err\n")
    with open_engine("ssh:box", print) as engine:
        engine.boot(kernel)  # type: ignore[attr-defined]
        arguments = "root=/dev/sda1 panic=10 oops=panic -- --log-level=err"
        assert text(machine, "boot/cmdline").strip() == arguments
    assert text(machine, "boot/kernel").strip() == OWN


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


def test_only_new_files_of_pstore_are_evidence(machine: Machine, kernel: Bootable) -> None:
    places = "$SSH_STUB/pstore $SSH_STUB/moved"
    machine.program("find", f'shift 2; exec {shutil.which("find")} {places} "$@"')
    for name in ("pstore/dmesg-efi-1", "moved/dmesg.txt"):
        path = machine.tell(f"{name}.old", "an older crash\n")
        os.utime(path, (1e9, 1e9))
    machine.tell("panics")
    with open_engine("ssh:box", print) as engine:
        with pytest.raises(Broken):
            engine.boot(kernel)  # type: ignore[attr-defined]
        assert engine.evidence() == ""  # type: ignore[attr-defined]
        machine.tell("pstore/dmesg-efi-1", "the end\n")
        machine.tell("pstore/dmesg-efi-2", "the beginning\n")
        evidence = engine.evidence()  # type: ignore[attr-defined]
        assert evidence == "pstore:\nthe beginning\nthe end\n"
        machine.tell("moved/dmesg.txt", "what systemd moved\n")
        assert "what systemd moved" in engine.evidence()  # type: ignore[attr-defined]


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
        pytest.raises(
            NotBack, match="failed with exit code 3: no power; reset it, which boots"
        ) as ended,
        open_engine("ssh:box", print) as engine,
    ):
        engine.use(Controls("echo no power; exit 3", boot_seconds=1))  # type: ignore[attr-defined]
        engine.boot(kernel)  # type: ignore[attr-defined]
    assert ended.value.code == Exit.USAGE, "it says nothing of the kernel"
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
    # The user may not read root's files.
    machine.program("id", "echo 1000")
    machine.program("sudo", 'shift; ROOT=1 exec "$@"')
    cat = (machine.bin / "cat").read_text()
    machine.program("cat", f"case $ROOT$* in /var/tmp/*) exit 1;; esac\n{cat}")
    kill_in_a_boot(kernel, tmp_path)
    (left,) = machine.directories
    assert text(machine, "boot/kernel").startswith(kernel.release)
    until(lambda: not (machine.place / "cut").exists())
    argv = ["restore", "--on", "ssh:box"]
    done = CliRunner().invoke(app, argv, catch_exceptions=False)
    assert done.stdout.splitlines() == [f"restored: {left}", "restored: its own kernel"]
    assert text(machine, "boot/kernel").strip() == OWN


def kill_in_a_boot(kernel: Bootable, tmp_path: Path) -> None:
    """Run a command that is killed while a kernel boots."""
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


def test_a_timer_leaves_a_kernel_to_which_nobody_came_back(
    machine: Machine, kernel: Bootable, tmp_path: Path
) -> None:
    """The command of its unit, with the lock of the tests."""

    def fire() -> int:
        (command,) = re.findall(r'ExecStart=/bin/sh -c "(.*)"\n', text(machine, "units"))
        argv = ["sh", "-c", command.replace("/run/fscale", str(machine.place / "state"))]
        path = f"{machine.bin}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(argv, env={**os.environ, "PATH": path}, check=False).returncode

    with open_engine("ssh:box", print) as engine:
        engine.boot(kernel)  # type: ignore[attr-defined]
        assert fire(), "it is held"
        assert text(machine, "boot/kernel").startswith(kernel.release)
    kill_in_a_boot(kernel, tmp_path)
    until(lambda: not (machine.place / "cut").exists())
    assert text(machine, "boot/kernel").startswith(kernel.release)
    assert machine.directories
    assert not fire()
    assert text(machine, "boot/kernel").strip() == OWN
    assert not machine.directories


def cut_once(machine: Machine, monkeypatch: pytest.MonkeyPatch, *, first: bool) -> None:
    """Let the first connection break before it lets go of the machine, or before it boots."""
    let_go = Visit.let_go

    def cut(of: Visit, seconds: float) -> None:
        monkeypatch.setattr(Visit, "let_go", let_go)
        if not first:
            of.let_go(seconds)
        machine.tell("cut")
        if first:
            # From a kernel under test it boots, and that ends the cut as well.
            until(lambda: not machine.directories)
            until(lambda: text(machine, "boot/kernel").strip() == OWN)
        time.sleep(1)
        (machine.place / "cut").unlink(missing_ok=True)
        if first:
            of.let_go(seconds)

    monkeypatch.setattr(Visit, "let_go", cut)


def test_a_boot_that_was_not_begun_is_begun_again(
    machine: Machine, kernel: Bootable, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_engine("ssh:box", print) as engine:
        engine.use(Controls("false", boot_seconds=60))  # type: ignore[attr-defined]
        cut_once(machine, monkeypatch, first=False)
        engine.boot(kernel)  # type: ignore[attr-defined]
        assert text(machine, "boot/kernel").startswith(kernel.release)
    assert text(machine, "boot/kernel").strip() == OWN


@pytest.mark.parametrize("tested", [False, True])
def test_a_connection_that_ends_before_a_boot_says_nothing_of_the_kernel(
    machine: Machine, kernel: Bootable, monkeypatch: pytest.MonkeyPatch, tested: bool
) -> None:
    with open_engine("ssh:box", print) as engine:
        engine.use(Controls("false", boot_seconds=60))  # type: ignore[attr-defined]
        if tested:
            engine.boot(kernel)  # type: ignore[attr-defined]
        cut_once(machine, monkeypatch, first=True)
        with pytest.raises(Lost, match="ended before the boot"):
            engine.boot(kernel)  # type: ignore[attr-defined]
        assert text(machine, "boot/kernel").strip() == OWN
        engine.boot(kernel)  # type: ignore[attr-defined]
        assert text(machine, "boot/kernel").startswith(kernel.release)


def test_a_machine_that_is_just_leaving_a_kernel_is_waited_for(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command is given while the machine restores itself after a killed one.

    What it had copied is left there until a boot.
    """
    said: list[str] = []
    hold = Visit.hold

    def cut(of: Visit) -> None:
        monkeypatch.setattr(Visit, "hold", hold)
        machine.tell("cut")
        threading.Timer(1, (machine.place / "cut").unlink).start()
        of.hold()

    monkeypatch.setattr(Visit, "hold", cut)
    with open_engine("ssh:box", said.append) as engine:
        engine.submit([task(*keys(1))], Objects())
        assert all(answer.complete for answer in engine.collect())
    (left,) = machine.directories
    shutil.rmtree(left)
    assert re.fullmatch("the connection to box ended: .*; waiting until box is back", said[0])


def test_directories_from_before_the_boot_are_removed(machine: Machine) -> None:
    """A boot ended those visits before they held the machine."""
    # As `mktemp` makes them; those of Python may have a character that it does not use.
    made = [f"/var/tmp/fscale.{tag(machine.place)}{which}" for which in "abc"]
    old, young, foreign = map(Path, made)
    try:
        for directory in (old, young):
            (directory / "lib/fscale").mkdir(parents=True)
        foreign.mkdir()
        for directory in (old, foreign):
            os.utime(directory, (1e9, 1e9))
        with open_engine("ssh:box", print) as engine:
            assert engine.undone == [str(old)]  # type: ignore[attr-defined]
        assert [one.exists() for one in (old, young, foreign)] == [False, True, True]
    finally:
        for directory in (old, young, foreign):
            shutil.rmtree(directory, ignore_errors=True)


@pytest.mark.parametrize("moment", ["visiting", "connected", "reset"])
def test_an_interrupt_ends_the_wait_for_a_boot(
    machine: Machine, kernel: Bootable, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Whatever is tried again then."""
    interrupted: list[str] = []
    before = getattr(remote, moment)

    def interrupt(*arguments: object) -> object:
        if interrupted or (moment != "reset" and not text(machine, "boot/kernel").startswith("0")):
            return before(*arguments)
        interrupted.append(moment)
        raise Interrupted

    monkeypatch.setattr(remote, moment, interrupt)
    if moment == "reset":
        machine.tell("hangs")
    with pytest.raises(Interrupted), open_engine("ssh:box", print) as engine:
        engine.use(Controls(f"sh {machine.place}/reset", boot_seconds=5))  # type: ignore[attr-defined]
        engine.boot(kernel)  # type: ignore[attr-defined]
    assert interrupted
    assert text(machine, "boot/kernel").strip() == OWN


def test_the_own_kernel_may_have_been_updated(machine: Machine, kernel: Bootable) -> None:
    said: list[str] = []
    newer = "6.1.0-newer #1 Debian"
    with open_engine("ssh:box", said.append) as engine:
        engine.use(Controls("false", boot_seconds=60))  # type: ignore[attr-defined]
        machine.tell("panics")
        machine.tell("boot/own", f"{newer}\n")
        with pytest.raises(Broken, match="came back with its own kernel"):
            engine.boot(kernel)  # type: ignore[attr-defined]
        (machine.place / "panics").unlink()
        engine.boot(kernel)  # type: ignore[attr-defined]
    assert text(machine, "boot/kernel").strip() == newer
    assert text(machine, "rebooted") == "rebooted\n"
    other = f"{newer}, which its boot loader starts, not {OWN}"
    assert said[-1] == f"box runs its own kernel again: {other}"


def test_a_kernel_is_left_though_nothing_can_be_removed(machine: Machine, kernel: Bootable) -> None:
    """As where it found an error on the root file system, which is read-only since."""
    runs = '"$(cat $SSH_STUB/boot/kernel) $*"'
    read_only = f'case {runs} in 6.1.0-own* | *"$SSH_STUB"*) ;; *) exit 1;; esac'
    machine.program("rm", f'{read_only}; exec {shutil.which("rm")} "$@"')
    with open_engine("ssh:box", print) as engine:
        engine.use(Controls("false", boot_seconds=60))  # type: ignore[attr-defined]
        engine.boot(kernel)  # type: ignore[attr-defined]
    assert text(machine, "boot/kernel").strip() == OWN


def test_a_kernel_that_hangs_with_its_connections_is_reset(
    machine: Machine, kernel: Bootable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in memory runs, such as sshd, and what needs the disk waits."""

    def let_go(of: Visit, seconds: float) -> None:
        Visit.end(of, f"{seconds}\n")
        machine.tell("stuck")
        monkeypatch.setattr(connection, "ANSWER_SECONDS", 3.0)

    def say(line: str) -> None:
        if "resetting it" in line:
            monkeypatch.setattr(connection, "ANSWER_SECONDS", 99.0)

    machine.program("id", "[ ! -e $SSH_STUB/stuck ] || exec /bin/sleep 60; exec /usr/bin/id $*")
    command = f"rm {machine.place}/stuck; sh {machine.place}/reset"
    with open_engine("ssh:box", say) as engine:
        engine.use(Controls(command, boot_seconds=9))  # type: ignore[attr-defined]
        monkeypatch.setattr(Visit, "let_go", let_go)
        with pytest.raises(Broken, match=r"was reset \(.*: box did not answer within 3 s\)"):
            engine.boot(kernel)  # type: ignore[attr-defined]
        assert text(machine, "boot/kernel").strip() == OWN


def test_a_keeper_that_hangs_is_not_waited_for(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = (machine.bin / "python3").read_text().replace("exec ", "")
    machine.program("python3", f'{python}\ncase "$*" in *keeper*) exec /bin/sleep 30;; esac')
    with open_engine("ssh:box", print):
        monkeypatch.setattr(visit, "LEAVE_SECONDS", 2.0)
        began = time.monotonic()
    assert time.monotonic() - began < 25
    until(lambda: not machine.directories)


def test_what_a_load_left_halfway_is_made_again(machine: Machine, kernel: Bootable) -> None:
    machine.program(
        "mkinitramfs", 'echo half >"$4"; [ -e $SSH_STUB/space ] || exit 1; echo "$5" >"$4"'
    )
    with open_engine("ssh:box", print) as engine:
        with pytest.raises(FscaleError, match="box: "):
            engine.boot(kernel)  # type: ignore[attr-defined]
        machine.tell("space")
        engine.boot(kernel)  # type: ignore[attr-defined]
        assert text(machine, "boot/kernel").startswith(kernel.release)


def test_nothing_stays_in_boot(machine: Machine, kernel: Bootable) -> None:
    """The load is killed, as by a crash."""
    machine.program("mkinitramfs", "kill -9 $PPID; exit 1")
    machine.program("rm", f'echo "$*" >>$SSH_STUB/removed; exec {shutil.which("rm")} "$@"')
    with open_engine("ssh:box", print) as engine, pytest.raises(FscaleError):
        engine.boot(kernel)  # type: ignore[attr-defined]
    assert f"-f /boot/config-{kernel.release}" in text(machine, "removed").splitlines()


@pytest.mark.parametrize(
    ("program", "body", "told"),
    [
        ("stat", "echo tmpfs", "/var/tmp lies in memory and does not outlive a boot"),
        ("kexec", "[ $1 = -u ] || exit 1", "does not load 0.0.1-fscale-test, as with secure boot"),
        ("readlink", "echo /home/me/modules", "is installed: build the other with another"),
    ],
)
def test_what_cannot_be_booted_is_said(
    machine: Machine, kernel: Bootable, program: str, body: str, told: str
) -> None:
    machine.program(program, body)
    with open_engine("ssh:box", print) as engine, pytest.raises(FscaleError, match=told):
        engine.boot(kernel)  # type: ignore[attr-defined]


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


def test_a_container_of_the_same_name_is_somebody_else(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its processes have numbers of their own; nobody here has this one."""
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    me = visit._owner(os.getpid()).partition(" ")[0]
    lease = {"boot": "other", "since": 0, "seconds": 9e9}
    machine.tell("lasting/lease", json.dumps({**lease, "owner": f"{me} (pid 4194999 of 1)"}))
    with pytest.raises(FscaleError, match=r"in use: .* boots"), open_engine("ssh:box", print):
        pass
    dead = f"{me} (pid 4194999 of {namespace})"
    machine.tell("lasting/lease", json.dumps({**lease, "owner": dead}))
    with open_engine("ssh:box", print):
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
