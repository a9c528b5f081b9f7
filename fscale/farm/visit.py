# SPDX-License-Identifier: GPL-2.0-only
"""A visit to a machine by ssh: fscale is brought there, the machine is held, and left as it was.

All files lie in one directory there, which is removed when the visit ends, however it ends.
"""

import contextlib
import getpass
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fscale.farm.connection import ENDED, Connection, connected
from fscale.farm.engine import Say
from fscale.farm.keeper import BOOTS, DIRECTORY, HELD, TASK_SECONDS
from fscale.farm.objects import Objects
from fscale.farm.payload import write_payload
from fscale.farm.pipes import Heartbeat, Tail
from fscale.model.errors import FscaleError
from fscale.model.revision import revision
from fscale.system.executor import summarise_failure

# Each is one line, as csh takes no other in quotes. Root may find another python3 than the user.
_ASK = "; ".join(
    (
        "id -u",
        "cat /proc/sys/kernel/random/boot_id",
        'root=; [ "$(id -u)" = 0 ] || ! sudo -n true 2>/dev/null || root="sudo -n"',
        "echo ${root:-none}",
        "$root python3 -c 'import platform, sys; print(*sys.version_info[:2], platform.machine())'"
        " || echo none",
        "uname -rv",
        "sed 's/BOOT_IMAGE=[^ ]* *//' /proc/cmdline",
    )
)
_BRING = "; ".join(
    (
        "set -e",
        "case $(findmnt -no OPTIONS -T /var/tmp) in *noexec*) echo '/var/tmp is mounted noexec, "
        "but programs are brought there: mount -o remount,exec it' >&2; exit 1;; esac",
        "directory=$(mktemp -d /var/tmp/fscale.XXXXXXXXXX)",
        'mkdir "$directory/lib" "$directory/objects"',
        'tar -xzf - -C "$directory/lib" || { rm -rf "$directory"; exit 1; }',
        'echo "$directory"',
    )
)
# What an earlier visit stored is kept, if a crash did not damage it.
_STORE = (
    '[ "$(sha256sum 2>/dev/null <"$1/objects/$2")" = "$2  -" ] || '
    '{ cat >"$1/objects/.part" && mv "$1/objects/.part" "$1/objects/$2"; }'
)
BRING_SECONDS = 3600.0
"""how long files may be on their way"""
LEAVE_SECONDS = TASK_SECONDS + 120
"""how long a keeper may take to leave the machine"""
_KEXEC_SECONDS = {"load": 1800.0, "settle": 900.0}


class Visit:
    """A machine that is held, with fscale on it."""

    def __init__(self, connection: Connection, directory: str, about: "About") -> None:
        self.connection = connection
        self.directory = directory
        self.boot_id = about.boot_id
        self.running = about.running
        self._root = about.root
        self._keeper: tuple[subprocess.Popen[bytes], Heartbeat] | None = None
        self._stored: set[str] = set()
        self.adopted: list[str] = []
        """the directory there that a killed command left"""

    def python(self, module: str, *arguments: str) -> list[str]:
        """The command that runs a module of fscale there, as root where that is allowed."""
        environment = {
            "PYTHONPATH": f"{self.directory}/lib",
            "FSCALE_REVISION": revision() or "",
            # pydantic looks for plugins among all installed packages.
            "PYDANTIC_DISABLE_PLUGINS": "__all__",
        }
        assignments = [f"{name}={value}" for name, value in environment.items()]
        python = ["python3", "-P", "-m", module, self.directory]
        return [*self._root, "env", *assignments, *python, *arguments]

    def store(self, objects: Objects, digests: Sequence[str]) -> None:
        """Copy input files of tasks there, each once.

        Raises:
            FscaleError: they cannot be stored, as on a full disk.
        """
        for digest in digests:
            if digest not in self._stored:
                self.connection.run(
                    ["sh", "-c", _STORE, "store", self.directory, digest],
                    lambda file, of=digest: file.writelines(objects.chunks(of)),  # type: ignore[misc]
                    BRING_SECONDS,
                )
                self._stored.add(digest)

    def errand(self) -> subprocess.Popen[bytes]:
        """Start fscale.farm.errand, which reads a task."""
        return self.connection.start(self.python("fscale.farm.errand"))

    def kexec(self, action: str, *arguments: str) -> str:
        """Run fscale.farm.kexec.sh as root, and return what it printed.

        Raises:
            Lost: the connection ended, as it does when the machine boots.
            FscaleError: it failed.
        """
        script = f"{self.directory}/lib/fscale/farm/kexec.sh"
        command = [*self._root, "sh", script, action, self.directory, *arguments]
        return self.connection.run(command, seconds=_KEXEC_SECONDS.get(action))

    def let_go(self, seconds: float) -> None:
        """End the keeper for a boot; meanwhile the machine is this process's."""
        self.end(f"{seconds}\n")

    def home(self) -> str:
        """What the machine ran before a killed command booted another kernel; empty: unknown."""
        if not self.adopted:
            return ""
        with contextlib.suppress(FscaleError):
            return self.connection.run([*self._root, "cat", f"{self.directory}/home"]).strip()
        return ""

    def hold(self) -> None:
        """Hold the machine with fscale.farm.keeper, which ends the visit.

        Raises:
            FscaleError: somebody else does.
        """
        gone: list[str] = []
        while refusal := self._start_keeper(_owner(os.getpid()), *gone):
            booting = re.search(rf"\(pid (\d{{1,9}}) of \d+\) {BOOTS}", refusal)
            owner = _owner(int(booting[1])) if booting else refusal
            living = booting is None or Path("/proc", booting[1]).exists()
            if gone or living or f"{owner} {BOOTS}" not in refusal:
                raise FscaleError(f"{self.connection.host}: {refusal}")
            gone = [owner]

    def _start_keeper(self, *owners: str) -> str:
        """Start the keeper. Return why it refuses; empty: it holds the machine.

        Raises:
            Lost: the connection ended.
        """
        keeper = self.connection.start(self.python("fscale.farm.keeper", *owners))
        assert keeper.stdin and keeper.stdout and keeper.stderr
        errors, heartbeat = Tail(keeper.stderr), Heartbeat(keeper.stdin)
        self._keeper = keeper, heartbeat
        with self.connection.limited(LEAVE_SECONDS):
            said = keeper.stdout.readline(4096).decode(errors="replace").split()
        if said[:1] == [HELD]:
            self.adopted = said[1:]
            return ""
        self.end()
        if keeper.returncode == ENDED:
            raise self.connection.lost(errors.text())
        return summarise_failure(errors.text()) or "it ended without a reason"

    def end(self, line: str = "") -> None:
        """End the keeper, with a last line for it."""
        assert self._keeper
        keeper, heartbeat = self._keeper
        with self.connection.limited(LEAVE_SECONDS):
            heartbeat.end(line.encode())
            keeper.wait()

    def remove(self) -> None:
        """Remove the directory there, which no keeper does."""
        with contextlib.suppress(FscaleError):
            self.connection.run([*self._root, "rm", "-rf", self.directory])


@contextlib.contextmanager
def visiting(host: str, say: Say, directory: str | None = None) -> Iterator[Visit]:
    """Connect to a machine, bring fscale there, and hold the machine.

    `directory`: that of an earlier visit, which was left for a boot; nothing is brought then.

    Raises:
        FscaleError: the machine cannot be reached, cannot run fscale, or is in use.
    """
    with connected(host) as connection:
        about = ask(connection, say)
        visit = Visit(connection, directory or _bring(connection), about)
        try:
            visit.hold()
        except BaseException:
            if directory is None:
                visit.remove()
            raise
        try:
            yield visit
        finally:
            visit.end()


def _owner(pid: int) -> str:
    """Who holds a machine; containers of one name may have processes of the same number."""
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    return f"{getpass.getuser()}@{os.uname().nodename} (pid {pid} of {namespace})"


def is_there(connection: Connection, directory: str) -> bool:
    """Whether a machine has the directory of a visit."""
    return bool(connection.run(["sh", "-c", 'test ! -d "$1" || echo left', "sh", directory]))


def _bring(connection: Connection) -> str:
    """Copy fscale into a new directory there.

    Raises:
        FscaleError: it cannot be written there.
    """
    answer = connection.run(["sh", "-c", _BRING], write_payload, BRING_SECONDS).splitlines()
    directory = answer[-1] if answer else ""
    if not DIRECTORY.fullmatch(directory):
        raise FscaleError(
            f"{connection.host} named a directory {directory[:80]!r}, which is not used"
        )
    return directory


@dataclass(frozen=True)
class About:
    """What a machine says about itself."""

    root: list[str]
    """what makes a command root's there"""
    boot_id: str
    running: str
    """its kernel and that one's command line"""


def ask(connection: Connection, say: Say) -> About:
    """Ask a machine about itself.

    Raises:
        FscaleError: the machine cannot run the packages of this Python.
    """
    answer = connection.run(["sh", "-c", _ASK]).splitlines()
    here = f"{sys.version_info[0]} {sys.version_info[1]} {platform.machine()}"
    if len(answer) != 6 or answer[3] != here:
        there = answer[3][:80] if len(answer) == 6 else "not known"
        raise FscaleError(
            f"{connection.host} cannot run this fscale: its python3 is {_name(there)}, and this "
            f"one is {_name(here)}; install the same version of Python there"
        )
    running = "\n".join(answer[4:])
    if answer[0] == "0":
        return About([], answer[1], running)
    if answer[2] == "sudo -n":
        return About(["sudo", "-n"], answer[1], running)
    say(
        f"note: on {connection.host} this user may not use sudo without a password: file systems "
        "are not made or mounted there, only --dir is measured"
    )
    return About([], answer[1], running)


def _name(python: str) -> str:
    return re.sub(r"(\d+) (\d+) (\S+)", r"\1.\2 (\3)", python)
