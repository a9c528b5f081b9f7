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

    def at_a_terminal(self, **variables: str) -> pexpect.spawn:
        return pexpect.spawn(
            "/bin/sh", ["-c", f"{SCRIPT} {self.list}"], env=self.environment(**variables),
            encoding="utf-8", timeout=30,
        )  # fmt: skip

    def installed(self) -> bool:
        calls = self.calls.read_text()
        assert calls in ("", f"update -qq\n{INSTALL}")
        return bool(calls)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize(
    ("variables", "code", "words"),
    [
        ({"YES": "1"}, 0, "packages to install: bpftrace fio\n"),
        ({"YES": "0"}, 0, "Going on without them"),
        ({}, Exit.USAGE, "make run YES=1"),
        ({"CI": "true"}, Exit.USAGE, "make run YES=1"),
        ({"YES": ""}, Exit.USAGE, "make run YES=1"),
    ],
)
def test_only_a_yes_installs_where_nobody_can_be_asked(
    machine: Machine, variables: dict[str, str], code: int, words: str
) -> None:
    ended, said = machine.install(**variables)
    assert ended == code
    assert words in said
    assert machine.installed() == (variables.get("YES") == "1")


@pytest.mark.parametrize(
    ("answer", "installs"), [("y", True), ("Yes", True), ("n", False), ("", False), ("yo", False)]
)
def test_at_a_terminal_it_asks(machine: Machine, answer: str, installs: bool) -> None:
    terminal = machine.at_a_terminal()
    terminal.expect_exact("Install these 2 packages? [y/N] ")
    assert not machine.installed()
    terminal.sendline(answer)
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0
    assert machine.installed() is installs


def test_continuous_integration_is_not_asked_at_a_terminal(machine: Machine) -> None:
    terminal = machine.at_a_terminal(CI="true")
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
