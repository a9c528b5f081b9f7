# SPDX-License-Identifier: GPL-2.0-only
"""The engine for ssh, with a program in place of OpenSSH's: what it brings, believes and leaves."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path
from typing import IO

import pytest

from fscale.commands.options import on
from fscale.farm import pipes, remote, ssh, visit
from fscale.farm.answer import Answer, Header, pack
from fscale.farm.connection import connected
from fscale.farm.engine import open_engine
from fscale.farm.objects import Objects
from fscale.farm.task import Task
from fscale.model.errors import Exit, FscaleError, Interrupted
from fscale.model.results import CellKey
from tests.support.farm import cell, content, keys, task
from tests.support.ssh_machine import Machine, until

FIRST, SECOND = keys(2)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path / "machine")
    made.use(monkeypatch)
    made.tell("fake")
    # It imports fscale from this clone; test_payload.py tries what is brought.
    monkeypatch.setattr(visit, "write_payload", no_payload)
    return made


def no_payload(file: IO[bytes]) -> None:
    tarfile.open(fileobj=file, mode="w|gz").close()


def answers(*tasks: Task, objects: Objects | None = None) -> tuple[list[Answer], list[str]]:
    said: list[str] = []
    with open_engine("ssh:box", said.append) as engine:
        engine.submit(tasks, objects or Objects())
        return list(engine.collect()), said


def measured(machine: Machine) -> list[str]:
    """What the programs that stand for fscale did there."""
    return [line for line in machine.log if line.startswith(("begins", "ends"))]


def test_tasks_are_run_there_and_nothing_stays(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "input").write_text("kernel")
    objects = Objects()
    files = {"kernel": objects.add(tmp_path / "input")}
    first, second = answers(task(FIRST, files=files), task(SECOND, files=files), objects=objects)[0]
    assert [a.cells[0].key for a in (first, second)] == [FIRST, SECOND]
    assert first.complete
    assert not first.header.code
    assert sum("cat >" in line for line in machine.log) == 1
    assert not machine.directories


def test_what_ssh_refuses_is_said(machine: Machine) -> None:
    machine.tell("refused", "Host key verification failed.")
    with pytest.raises(FscaleError, match=r"connect to box: Host key verification failed.*ssh box"):
        answers(task(FIRST))


@pytest.mark.parametrize("name", ["-oProxyCommand=x", "", "a b", "box;id", "$(id)"])
def test_a_host_is_a_name(name: str) -> None:
    with (
        pytest.raises(FscaleError, match="not of the form ssh:HOST"),
        open_engine(f"ssh:{name}", print),
    ):
        pass


def test_another_version_of_python_is_refused(machine: Machine) -> None:
    machine.tell("python", "3 9 aarch64")
    with pytest.raises(FscaleError, match=r"its python3 is 3\.9 \(aarch64\), and this one is 3\."):
        answers(task(FIRST))


def test_the_python_is_root_s(machine: Machine) -> None:
    machine.program("id", "echo 1000")
    machine.program("sudo", 'shift; case "$*" in python3*) echo 3 9 x86_64;; *) "$@";; esac')
    with pytest.raises(FscaleError, match=r"its python3 is 3\.9 \(x86_64\)"):
        answers(task(FIRST))


def test_commands_are_lines(machine: Machine) -> None:
    """Where the user's shell is csh, a newline in quotes is an error."""
    (objects := Objects()).add(Path(__file__))
    answers(task(FIRST, files={"kernel": next(iter(objects.paths))}), objects=objects)
    commands = [line for line in machine.log if line.startswith("box: ")]
    assert len(commands) > 4
    assert not [command for command in commands if "\\n" in command]


def test_a_shell_that_prints_is_said(machine: Machine) -> None:
    machine.tell("profile", "echo '\033[1mWelcome'")
    with pytest.raises(FscaleError, match=r"the shell of box prints '\?\[1mWelcome' before each"):
        answers(task(FIRST))


def test_programs_that_may_not_run_are_said(machine: Machine) -> None:
    machine.program("findmnt", "echo rw,nosuid,nodev,noexec,relatime")
    with pytest.raises(FscaleError, match=r"/var/tmp is mounted noexec, .*: mount -o"):
        answers(task(FIRST))
    assert not machine.directories


def test_a_full_disk_is_said_and_left_clean(machine: Machine) -> None:
    machine.program("tar", "echo 'tar: No space left on device' >&2; exit 2")
    with pytest.raises(FscaleError, match="box: tar: No space left on device"):
        answers(task(FIRST))
    assert not machine.directories


def test_a_machine_is_held_by_one(machine: Machine) -> None:
    with (
        open_engine("ssh:box", print),
        pytest.raises(FscaleError, match=r"box: it is in use: by \S+ \(pid \d+ of \d+\) since 20"),
    ):
        answers(task(FIRST))
    assert answers(task(FIRST))[0][0].complete


def test_a_machine_that_is_held_or_boots_is_waited_for(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(on, "RETRY_SECONDS", 0.1)
    refused = machine.tell("refused", "ssh: connect to host box port 22: Connection refused")
    threading.Timer(1, refused.unlink).start()
    with on.nodes_of("ssh:box", 60):
        assert not refused.exists()
    told = capsys.readouterr().err.replace("\n", " ")
    assert re.search(r"waiting up to (60|59) s: .*Connection refused", told)
    machine.tell("refused", "ssh: connect to host box port 22: Connection refused")
    with pytest.raises(FscaleError, match="Connection refused"), on.nodes_of("ssh:box"):
        pass


@pytest.mark.parametrize("allowed", [True, False])
def test_sudo_is_used_where_it_is_allowed(machine: Machine, allowed: bool) -> None:
    machine.program("id", "echo 1000")
    machine.program("sudo", f'{"shift" if allowed else "exit 1"}; echo "$@" >>$SSH_STUB/sudo; "$@"')
    (answer,), said = answers(task(FIRST))
    assert answer.complete
    assert allowed == any("fscale.farm.errand" in line for line in _lines(machine, "sudo"))
    assert allowed != any("may not use sudo without a password" in text for text in said)


def _lines(machine: Machine, name: str) -> list[str]:
    path = machine.place / name
    return path.read_text().splitlines() if path.exists() else []


def test_ctrl_c_ends_the_task_there(machine: Machine) -> None:
    machine.tell("hold")

    def stop(*_: object) -> None:
        raise Interrupted("stopped")

    signal.signal(signal.SIGUSR1, stop)

    def interrupt() -> None:
        until(lambda: bool(measured(machine)))
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    threading.Thread(target=interrupt).start()
    with open_engine("ssh:box", print) as engine:
        engine.submit([task(FIRST), task(SECOND)], Objects())
        with pytest.raises(Interrupted):
            list(engine.collect())
        (left,) = engine.cancel()  # type: ignore[attr-defined]
    assert left.task.keys == [FIRST]
    assert left.header.code == Exit.INTERRUPTED
    assert measured(machine) == ["begins 1"]


def test_a_task_whose_connection_breaks_is_run_again(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "RETRY_SECONDS", 0.05)
    machine.tell("hold")

    def cut() -> None:
        until(lambda: len(measured(machine)) == 1)
        machine.tell("cut")
        time.sleep(1)
        (machine.place / "hold").unlink()
        (machine.place / "cut").unlink()

    threading.Thread(target=cut).start()
    (answer,), said = answers(task(FIRST))
    assert answer.complete
    assert measured(machine) == ["begins 1", "begins 1", "ends 1"]
    assert said == ["warning: the connection to box ended: connection reset by the test"]
    until(lambda: not machine.directories)


def begun(machine: Machine) -> "subprocess.Popen[bytes]":
    """Another process of ours, whose task has begun there and is held."""
    machine.tell("hold")
    code = (
        "from fscale.farm.engine import open_engine\n"
        "from fscale.farm.objects import Objects\n"
        "from tests.support.farm import keys, task\n"
        "with open_engine('ssh:box', print) as engine:\n"
        "    engine.submit([task(*keys(1))], Objects())\n"
        "    list(engine.collect())\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    until(lambda: bool(measured(machine)))
    return process


def test_a_kill_here_frees_the_machine(machine: Machine) -> None:
    process = begun(machine)
    process.kill()
    process.wait()
    until(lambda: not machine.directories)
    (machine.place / "hold").unlink()
    assert answers(task(FIRST))[0][0].complete
    assert measured(machine) == ["begins 1", "begins 1", "ends 1"]


def test_signals_to_what_runs_there_free_it_too(machine: Machine) -> None:
    """As from systemd-logind, which may end all processes of a connection that ended."""
    process = begun(machine)
    process.send_signal(signal.SIGSTOP)
    for line in _lines(machine, "processes"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(int(line), signal.SIGTERM)
    time.sleep(1)
    process.kill()
    process.wait()
    until(lambda: not machine.directories)
    assert measured(machine) == ["begins 1"]


def test_a_dead_network_frees_the_machine(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing tells the keeper that the other end is gone, but it hears no beat."""
    monkeypatch.setattr(pipes, "BEAT_SECONDS", 0.2)
    machine.tell("silent", "5")
    machine.tell("hold")

    def die() -> None:
        until(lambda: bool(measured(machine)))
        time.sleep(6)
        living.append(bool(machine.directories))
        monkeypatch.setattr(pipes, "BEAT_SECONDS", 1e6)

    living: list[bool] = []
    threading.Thread(target=die).start()
    (answer,), _ = answers(task(FIRST))
    assert answer.header.code == Exit.INTERRUPTED
    assert living == [True]
    assert not machine.directories


def hostile(name: str, of: CellKey, key: CellKey = FIRST) -> bytes:
    header = Header(task=task(key).id, host="box", code=0)
    return pack(header, {name: content(cell(of))})


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"not a header", "the answer has no header"),
        (b"{}\n", "header is not valid"),
        (hostile("../../x", FIRST), r"\.\./\.\./x is not a file of this task"),
        (hostile(f"cells/{FIRST.id}.json", SECOND), "contains the cell"),
        (hostile("profiles/x/../../y", FIRST), "is not a file of this task"),
        (hostile(f"cells/{FIRST.id}.json", FIRST, SECOND), "the answer is for task"),
        (hostile(f"cells/{FIRST.id}.json", FIRST)[:-9], "do not have the sizes"),
        (b'{"task": "x", "host": "\x1b[2J", "code": 0}\n', "header is not valid"),
    ],
)
def test_a_hostile_answer_is_refused(machine: Machine, answer: bytes, reason: str) -> None:
    machine.tell("answer", answer)
    (got,), _ = answers(task(FIRST))
    assert not got.cells
    assert got.header.code == Exit.FAILED
    assert re.search(reason, got.header.text)


def test_an_answer_without_end_is_not_read(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh, "MOST_WHOLE", 1 << 20)
    monkeypatch.setattr("fscale.farm.answer.MOST_WHOLE", 1 << 20)
    machine.program("python3", f'case "$*" in *errand*) exec yes;; esac; {_python(machine)}')
    (got,), _ = answers(task(FIRST))
    assert "bytes; at most 1048576 are accepted" in got.header.text


def _python(machine: Machine) -> str:
    return (machine.bin / "python3").read_text().splitlines()[1]


def test_a_command_that_prints_without_end_is_refused(machine: Machine) -> None:
    with connected("box") as connection, pytest.raises(FscaleError, match="printed more than"):
        connection.run(["yes"])


def test_a_directory_is_not_believed(machine: Machine) -> None:
    machine.program("mktemp", "mkdir -p $SSH_STUB/evil; echo $SSH_STUB/evil")
    with pytest.raises(FscaleError, match=r"named a directory .* which is not used"):
        answers(task(FIRST))
