# SPDX-License-Identifier: GPL-2.0-only
"""The only module that changes the machine: it runs commands and writes files.

In a dry run it only prints them.
"""

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from fscale.model.errors import FscaleError
from fscale.model.fault import Fault, of_exit, of_output
from fscale.model.paths import TOOL_PATH
from fscale.model.results import Command
from fscale.system.environment import PLAIN_UMASK, of_children

TAG = "FSCALE_RUN"
_USAGE = re.compile(r"(usage|valid .*options)\b.*", re.IGNORECASE)
_FIRST, _LAST = 3, 2  # lines shown of a failed command's output


class CommandFailed(FscaleError):  # noqa: N818 - it says what happened
    """A command failed, or did not end in time.

    `blamed` is the fault if the command works on the file system under test, such as mkfs: that of
    the file system, unless the command is missing, was killed from outside, was only slow, or
    lacked space or a resource.
    """

    def __init__(self, text: str, *, blamed: Fault = "machine", fault: Fault | None = None) -> None:
        super().__init__(text, fault=fault)
        self.blamed = blamed


def which(tool: str) -> str | None:
    """Return the path of an installed command, also from /sbin and /usr/sbin; None if missing."""
    return shutil.which(tool, path=TOOL_PATH)


def summarise_failure(text: str) -> str:
    """Summarise a failed command's output in one line, without its usage text.

    The first and the last lines are kept, because the reason is among these.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    usage = next((n for n, line in enumerate(lines) if _USAGE.match(line)), 0)
    lines = lines[: usage or None]
    if len(lines) > _FIRST + _LAST:
        lines = [*lines[:_FIRST], "...", *lines[-_LAST:]]
    return " / ".join(lines)


def make_directory(path: Path) -> None:
    """Make a directory and its parents with mode 0755, whatever the umask, unless they exist."""
    before = os.umask(PLAIN_UMASK)
    try:
        path.mkdir(parents=True, exist_ok=True)
    finally:
        os.umask(before)


class Executor:
    """Changes the machine and keeps a log of the commands.

    Every child has `tag` in its environment (as FSCALE_RUN), which identifies the processes of a
    killed run.
    """

    dry = False

    def __init__(self, tag: str = "") -> None:
        self.tag = tag
        self.log: list[Command] = []

    def environment(self) -> dict[str, str]:
        """Return the environment of every child: a plain one, and the tag."""
        return of_children(**{TAG: self.tag})

    def begins(self, argv: list[str]) -> None:
        """Do nothing. Subclasses may show that a command is about to start."""

    def run(self, argv: list[str], *, timeout: float = 60, dry_output: str = "") -> str:
        """Run a command to its end and return its standard output.

        A dry run returns `dry_output` instead. The call returns at most a few seconds after
        `timeout` (seconds), even if the child cannot be killed; the tagged child then remains.

        Raises:
            CommandFailed: the command is not installed, failed, or did not end in time; the text
                contains its error output.
        """
        program = which(argv[0])
        if program is None:
            raise CommandFailed(f"{argv[0]} is not installed; install it, or add it to PATH")
        self.begins(argv)
        started = time.monotonic()
        child = subprocess.Popen(
            argv,
            executable=program,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=self.environment(),
            start_new_session=True,
            umask=PLAIN_UMASK,
        )
        try:
            out, err = child.communicate(timeout=timeout)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            stuck = False
            try:
                child.wait(timeout=2)
            except subprocess.TimeoutExpired:
                stuck = True
            if isinstance(error, subprocess.TimeoutExpired):
                raise CommandFailed(
                    f"`{shlex.join(argv)}` did not end within {timeout:g} s",
                    blamed="filesystem" if stuck else "machine",
                ) from None
            raise
        seconds = time.monotonic() - started
        self.log.append(Command(argv=argv, seconds=round(seconds, 4), returncode=child.returncode))
        if child.returncode != 0:
            said = summarise_failure(err) or summarise_failure(out) or "no output"
            raise CommandFailed(
                f"`{shlex.join(argv)}` failed ({child.returncode}): {said}",
                blamed=of_exit(child.returncode, of_output(said, "filesystem")),
            )
        return out

    def write(self, path: Path, text: str) -> None:
        """Write a kernel file such as `/sys/devices/system/cpu/cpu1/online`."""
        path.write_text(text)

    def bind(self, tid: int, cpus: list[int]) -> None:
        """Bind a thread to CPUs."""
        os.sched_setaffinity(tid, cpus)

    def mkdir(self, path: Path) -> None:
        """Make a directory and its parents."""
        make_directory(path)

    def rmdir(self, path: Path) -> None:
        """Remove an empty directory, if it exists."""
        with contextlib.suppress(FileNotFoundError):
            path.rmdir()

    def rmtree(self, path: Path) -> None:
        """Remove a directory of fscale and its content, if it exists."""
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)

    def allocate(self, path: Path, size: int) -> None:
        """Make a file of `size` bytes with all blocks allocated."""
        with path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)


class DryExecutor(Executor):
    """Prints what an Executor would do, without doing it."""

    dry = True

    def __init__(self, show: Callable[[str], None]) -> None:
        super().__init__()
        self.show = show

    def run(self, argv: list[str], *, timeout: float = 60, dry_output: str = "") -> str:
        """Print the command instead of running it."""
        self.show(shlex.join(argv))
        return dry_output

    def write(self, path: Path, text: str) -> None:
        """Print the write as a shell command."""
        self.show(f"echo {shlex.quote(text)} > {shlex.quote(str(path))}")

    def bind(self, tid: int, cpus: list[int]) -> None:
        """Print the equivalent command."""
        self.show(f"taskset -cp {','.join(map(str, cpus))} {tid}")

    def mkdir(self, path: Path) -> None:
        """Print the equivalent command."""
        self.show(f"mkdir -p {shlex.quote(str(path))}")

    def rmdir(self, path: Path) -> None:
        """Print the equivalent command."""
        self.show(f"rmdir {shlex.quote(str(path))}")

    def rmtree(self, path: Path) -> None:
        """Print the equivalent command."""
        self.show(f"rm -rf {shlex.quote(str(path))}")

    def allocate(self, path: Path, size: int) -> None:
        """Print the equivalent command."""
        self.show(f"fallocate -l {size} {shlex.quote(str(path))}")
