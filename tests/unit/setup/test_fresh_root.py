# SPDX-License-Identifier: GPL-2.0-only
"""A fresh root is made, used and removed, however its commands end. Debian is a fake here."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fscale.model.errors import Exit
from fscale.model.paths import ROOT
from tests.support.files import write_program

SCRIPT = ROOT / "setup" / "fresh-root.sh"
pytestmark = pytest.mark.root

# Instead of packages, it has this machine's programs.
MMDEBSTRAP = """#!/bin/bash
set -e
while [ "$1" != bookworm ]; do shift; done
mkdir -p "$2"/{dev,etc,proc,root,run,sys,tmp} "$2"/usr/{bin,sbin,lib,lib64}
for d in bin sbin lib lib64; do
	ln -s usr/$d "$2/$d"
	mount --bind /usr/$d "$2/usr/$d"
done
"""
FAILS = "#!/bin/sh\necho no mirror; exit 25\n"
ON_TMPFS = """#!/bin/sh
case "$*" in *%T*) echo tmpfs;; *) exec /usr/bin/stat "$@";; esac
"""


@dataclass
class Machine:
    """A repository, programs that come first in PATH, and a directory for roots."""

    repository: Path
    programs: Path
    roots: Path

    def start(self, *lines: str, **variables: str) -> subprocess.Popen[str]:
        path = f"{self.programs}:{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "ROOTS": str(self.roots), **variables}
        # No shell can trap what was ignored when it began, as SIGHUP is below nohup.
        heeding = ["env", "--default-signal=INT,TERM,HUP"]
        return subprocess.Popen(
            [*heeding, "bash", self.repository / "setup" / SCRIPT.name, *lines],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *lines: str, **variables: str) -> tuple[int, str]:
        """The exit code, and what it and the commands said; nothing is left."""
        running = self.start(*lines, **variables)
        said, _ = running.communicate(timeout=60)
        assert not list(self.roots.iterdir())
        assert str(self.roots) not in Path("/proc/mounts").read_text()
        return running.returncode, said

    def waiting(self, line: str) -> tuple[subprocess.Popen[str], Path]:
        """A call whose command has said `ready`, and its root."""
        running = self.start(line)
        assert running.stdout is not None
        for said in running.stdout:
            if said == "ready\n":
                break
        (root,) = self.roots.glob("*/root")
        assert processes(root)
        return running, root


def processes(root: Path) -> list[str]:
    """The pids of those that have this root directory."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/root"):
        try:
            if entry.samefile(root):
                found.append(entry.parent.name)
        except OSError:
            continue
    return found


def alive(pid: str) -> bool:
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def git(directory: Path, *words: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", "-C", directory, *identity, *words], check=True)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path / "repository", tmp_path / "programs", tmp_path / "roots")
    made.roots.mkdir()
    write_program(made.programs / "mmdebstrap", MMDEBSTRAP)
    made.repository.mkdir()
    write_program(made.repository / "setup" / SCRIPT.name, SCRIPT.read_text())
    git(made.repository, "init", "-q")
    git(made.repository, "add", ".")
    git(made.repository, "commit", "-q", "-m", "first")
    return made


@pytest.fixture
def without_mmdebstrap(machine: Machine) -> Iterator[str]:
    """A PATH of all programs of this machine but that."""
    (machine.programs / "mmdebstrap").unlink()
    for name in ("/usr/sbin", "/usr/bin"):
        for path in Path(name).iterdir():
            link = machine.programs / path.name
            if path.name != "mmdebstrap" and not link.is_symlink():
                link.symlink_to(path)
    (machine.programs / "apt-get").unlink()
    return str(machine.programs)


def test_commands_run_in_a_clone_of_the_commit_in_a_root_of_its_own(machine: Machine) -> None:
    (machine.repository / "changed").touch()
    code, said = machine.run(
        "pwd; ls; stat -f -c %T /tmp; echo $CI$HOME$PIP_INDEX_URL; touch /root/mark; read line",
        "ls /root",
        CI="true",
        PIP_INDEX_URL="https://example.org/simple",
    )
    words = said.split()
    assert code == 1, said  # read meets the end of the standard input
    assert "/root/fscale" in words and "setup" in words and "changed" not in words
    assert "tmpfs" in words and "/roothttps://example.org/simple" in words
    assert "mark" not in words


def test_lines_run_in_turn_until_one_fails(machine: Machine) -> None:
    code, said = machine.run("true", "exit 7", "echo no")
    assert code == 7 and "no" not in said.split()
    code, said = machine.run("touch /root/mark", "ls /root; echo the end")
    assert code == 0
    assert re.findall(r"== fresh root, after \d+ s: (.*)", said)[0] == "touch /root/mark"
    assert "mark" in said.split() and said.endswith("the end\n")


def test_a_process_that_is_left_is_ended(machine: Machine) -> None:
    began = time.monotonic()
    code, said = machine.run("setsid sleep 1000 >/dev/null 2>&1 & echo $!")
    assert code == 0
    assert not alive(said.split()[-1])
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_command_may_put_the_machine_back(
    machine: Machine, number: signal.Signals
) -> None:
    name = number.name.removeprefix("SIG")
    running, root = machine.waiting(
        f"trap 'sleep 1; echo put back; exit' {name}; echo ready; while :; do sleep 0.1; done"
    )
    running.send_signal(number)
    said, _ = running.communicate(timeout=60)
    assert (running.returncode, "put back" in said) == (Exit.INTERRUPTED, True)
    assert not root.parent.exists()


def test_what_a_killed_call_left_is_removed_by_the_next(machine: Machine) -> None:
    running, root = machine.waiting("(trap '' HUP; sleep 1000) & echo ready; sleep 1000")
    running.kill()
    running.wait(timeout=60)
    assert root.exists()
    left = processes(root)
    code, said = machine.run("true")
    assert code == 0 and str(root.parent) in said
    assert not any(alive(pid) for pid in left)


def test_two_at_once_leave_each_other_alone(machine: Machine) -> None:
    running, root = machine.waiting("echo ready; while [ ! -e /root/end ]; do sleep 0.1; done")
    second = machine.start("true")
    second.communicate(timeout=60)
    assert second.returncode == 0
    (root / "root" / "end").touch()
    running.communicate(timeout=60)
    assert running.returncode == 0 and not list(machine.roots.iterdir())


def test_one_run_has_the_machine_whatever_its_root(machine: Machine) -> None:
    """Their state, with the lock and the journal, is the machine's."""
    code, said = machine.run("stat -c %d:%i /run/fscale")
    assert code == 0
    state = Path("/run/fscale").stat()
    assert f"{state.st_dev}:{state.st_ino}" in said.split()


def test_where_debian_cannot_be_had_it_says_so(machine: Machine) -> None:
    write_program(machine.programs / "mmdebstrap", FAILS)
    code, said = machine.run("true")
    assert code == Exit.USAGE and "no mirror" in said


def test_mmdebstrap_is_installed_where_it_is_missing(
    machine: Machine, without_mmdebstrap: str
) -> None:
    calls = machine.programs / "calls"
    write_program(machine.programs / "apt-get", f'#!/bin/sh\necho "$1" >>{calls}; exit 100\n')
    code, _ = machine.run("true", PATH=without_mmdebstrap)
    assert (code, calls.read_text().split()) == (Exit.USAGE, ["update"])
    made = machine.programs / "made"
    write_program(made, MMDEBSTRAP)
    install = f"#!/bin/sh\n[ $1 != install ] || cp {made} {machine.programs}/mmdebstrap\n"
    write_program(machine.programs / "apt-get", install)
    assert machine.run("true", PATH=without_mmdebstrap)[0] == 0


def test_no_root_is_made_in_memory(machine: Machine) -> None:
    write_program(machine.programs / "stat", ON_TMPFS)
    code, said = machine.run("true", ROOTS="")
    assert code == Exit.USAGE and "/var/tmp: tmpfs" in said
    assert machine.run("true", ROOTS="/nonexistent")[0] == Exit.USAGE


@pytest.mark.parametrize(
    "less",
    [
        ["--reuid=65534", "--regid=65534", "--clear-groups"],
        ["--bounding-set=-sys_admin", "--inh-caps=-sys_admin"],
    ],
)
def test_who_may_not_mount_is_told_so(less: list[str], machine: Machine) -> None:
    argv = ["setpriv", *less, "bash", "-s", "--", "true"]
    done = subprocess.run(
        argv, input=SCRIPT.read_text(), cwd="/", capture_output=True, text=True, check=False
    )
    assert done.returncode == Exit.USAGE and done.stderr
    assert not done.stdout


def test_it_needs_a_command(machine: Machine) -> None:
    assert machine.run()[0] == Exit.USAGE


def test_continuous_integration_runs_both_commands_of_the_readme() -> None:
    *_, last = (ROOT / ".ci" / "run").read_text().splitlines()
    lines = re.findall(r"'(.*?)'", last)
    assert lines == ["make run", "make test"]
    page = (ROOT / "README.md").read_text()
    assert all(f"\n    {line} " in page for line in lines)
