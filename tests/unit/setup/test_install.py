# SPDX-License-Identifier: GPL-2.0-only
"""setup/install.sh asks before it installs, with programs of the test's own for apt and dpkg."""

import os
import subprocess
from pathlib import Path

import pexpect
import pytest

from fscale.model.errors import Exit
from fscale.model.paths import ROOT

SCRIPT = ROOT / "setup" / "install.sh"
INSTALL = "install -y -qq --no-install-recommends bpftrace fio\n"
UNSET = {"CI", "YES", "MAKEFLAGS"}


class Machine:
    """A Debian that has git, and lacks bpftrace and fio."""

    def __init__(self, place: Path) -> None:
        self.calls, self.programs = place / "calls", place / "bin"
        self.programs.mkdir()
        self.calls.touch()
        self.program("dpkg-query", 'for last; do :; done; [ "$last" != git ] || printf installed')
        self.program("apt-get", f'echo "$*" >>{self.calls}')
        self.program("id", "echo 0")
        self.list = place / "packages.txt"
        self.list.write_text("# of a test\ngit  is there\nbpftrace  profiles\nfio  a load\n")

    def program(self, name: str, body: str) -> None:
        (self.programs / name).write_text(f"#!/bin/sh\n{body}\n")
        (self.programs / name).chmod(0o755)

    def environment(self, **variables: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in UNSET}
        return kept | {"PATH": f"{self.programs}:/usr/bin:/bin"} | variables

    def install(self, **variables: str) -> tuple[int, str]:
        """Exit code and words, without a terminal."""
        done = subprocess.run(
            [SCRIPT, self.list], env=self.environment(**variables), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    def installed(self) -> bool:
        calls = self.calls.read_text()
        assert calls in ("", f"update -qq\n{INSTALL}")
        return bool(calls)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_yes_on_the_command_line_installs(machine: Machine) -> None:
    code, said = machine.install(YES="1")
    assert code == 0
    assert "packages to install: bpftrace fio\n" in said
    assert machine.installed()


def test_a_no_on_the_command_line_goes_on_without(machine: Machine) -> None:
    code, said = machine.install(YES="0")
    assert code == 0
    assert "Going on without them" in said
    assert not machine.installed()


@pytest.mark.parametrize("variables", [{}, {"CI": "true"}, {"YES": ""}])
def test_where_nobody_can_be_asked_it_wants_a_yes(
    machine: Machine, variables: dict[str, str]
) -> None:
    code, said = machine.install(**variables)
    assert code == Exit.USAGE
    assert "make run YES=1" in said
    assert not machine.installed()


@pytest.mark.parametrize(
    ("answer", "installs"), [("y", True), ("Yes", True), ("n", False), ("", False), ("yo", False)]
)
def test_at_a_terminal_it_asks(machine: Machine, answer: str, installs: bool) -> None:
    argv = ["-c", f"{SCRIPT} {machine.list}"]
    terminal = pexpect.spawn(
        "/bin/sh", argv, env=machine.environment(), encoding="utf-8", timeout=30
    )
    terminal.expect_exact("Install these 2 packages? [y/N] ")
    assert not machine.installed()
    terminal.sendline(answer)
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0
    assert machine.installed() is installs


def test_continuous_integration_is_not_asked_at_a_terminal(machine: Machine) -> None:
    argv = ["-c", f"{SCRIPT} {machine.list}"]
    environment = machine.environment(CI="true")
    terminal = pexpect.spawn("/bin/sh", argv, env=environment, encoding="utf-8", timeout=30)
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == Exit.USAGE


@pytest.mark.parametrize("user", ["0", "1000"])
def test_what_cannot_be_done_without_ends_it(machine: Machine, user: str) -> None:
    machine.program("id", f"echo {user}")
    machine.list.write_text("uuid-dev  uuids\n")
    code, said = machine.install(YES="0")
    assert code == Exit.USAGE
    assert "Nothing can be built without uuid-dev" in said


def test_who_is_not_root_is_not_asked(machine: Machine) -> None:
    machine.program("id", "echo 1000")
    code, said = machine.install()
    assert code == 0
    assert "Not root: ask an administrator" in said
    assert not machine.installed()


def test_nothing_is_asked_where_nothing_is_missing(machine: Machine) -> None:
    machine.list.write_text("git  is there\n")
    assert machine.install() == (0, "")


def test_where_there_is_no_dpkg_it_goes_on(machine: Machine) -> None:
    (machine.programs / "dpkg-query").unlink()
    code, said = machine.install(PATH=str(machine.programs))
    assert code == 0
    assert "docs/guide/installing.md" in said
    assert not machine.installed()


def test_make_hands_the_yes_on() -> None:
    done = subprocess.run(
        ["make", "--no-print-directory", "-f", "-", "YES=1"], input="all: ; @echo $$YES\n",
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "1\n"
