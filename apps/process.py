# SPDX-License-Identifier: GPL-2.0-only
"""Starts the programs of one run on the CPUs under test, and makes sure that none outlives it."""

import contextlib
import errno
import json
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

from apps.base import AppError, Site
from fscale.model import paths
from fscale.model.results import Command
from fscale.system.executor import TAG, which
from fscale.system.processes import in_cgroup, in_groups, kill, where

_NO_SPACE = os.strerror(errno.ENOSPC)
_COMPLAINT = re.compile(
    r"error|fail|cannot|invalid|denied|expected|assertion|No such", re.IGNORECASE
)
_TICK = 0.1  # seconds
_KILL_PATIENCE = 10.0  # seconds that a killed process gets to leave, also from D state


def cpu_list(cpus: Sequence[int]) -> str:
    """`0,1,4` as taskset, fio and the C programs read it."""
    return ",".join(str(cpu) for cpu in cpus)


class FileSystemFullError(AppError):
    """The file system under test has no space left."""

    def __init__(self, program: str) -> None:
        super().__init__(
            f"{program}: the file system is full ({_NO_SPACE}); "
            "take a larger medium or a smaller data set"
        )


def failure(program: str, returncode: int, output: str, dirs: Sequence[Path] = ()) -> AppError:
    """What went wrong with a program that failed: how it ended and its last words.

    Not every program says that the file system is full, so `dirs` are looked at too. That cannot
    be asked again later: what the program frees when it ends makes room.
    """
    if _NO_SPACE in output or any(map(_full, dirs)):
        return FileSystemFullError(program)
    if returncode < 0:
        end = f"was killed by {signal.Signals(-returncode).name}"
    else:
        end = f"ended with exit code {returncode}"
    words = [line.strip() for line in output.splitlines() if line.strip()]
    complaints = [line for line in words if _COMPLAINT.search(line)]
    last = " | ".join((complaints or words)[-3:])
    return AppError(f"{program} {end}: {last or 'it printed nothing'}")


def _full(directory: Path) -> bool:
    with contextlib.suppress(OSError):
        stat = os.statvfs(directory)
        # A file system that lives in memory without a limit says that it has no blocks.
        return stat.f_blocks > 0 and stat.f_bavail * 100 < stat.f_blocks
    return False


def told(lines: Iterable[str]) -> str | None:
    """The error that one of our C programs tells in its JSON object, or None."""
    for line in lines:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            error = json.loads(line)["error"]
            return None if error is None else str(error)
    return None


def ask(*argv: str) -> str:
    """What a short command prints (about its version, say), whatever its exit code."""
    done = subprocess.run(
        [which(argv[0]) or argv[0], *argv[1:]],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    return (done.stdout.strip() or done.stderr.strip()) or "unknown"


class Processes:
    """The processes of one run: a context manager that kills what is left when it ends.

    Each program starts in a session of its own. Where the site has a cgroup, the driver itself is
    in it and so are all children; it is killed as a whole at the end, but for the driver, so that
    not even a daemon's children survive.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._running: list[tuple[subprocess.Popen[bytes], list[str], float]] = []
        self.commands: list[Command] = []

    def __enter__(self) -> "Processes":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def start(
        self,
        argv: Sequence[str],
        *,
        output: IO[bytes] | int,
        stdin: int = subprocess.DEVNULL,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start `argv` on the CPUs under test; `env` is added to a plain environment."""
        full = ["taskset", "--cpu-list", cpu_list(self._site.cpus), *argv]
        environment = {"PATH": paths.TOOL_PATH, "LC_ALL": "C", "HOME": str(self._site.scratch)}
        if TAG in os.environ:  # by which the runner finds the processes of a run that was killed
            environment[TAG] = os.environ[TAG]
        try:
            process = subprocess.Popen(
                full,
                stdin=stdin,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd or self._site.scratch,
                env={**environment, **(env or {})},
                start_new_session=True,
            )
        except OSError as error:
            raise AppError(f"{argv[0]} cannot be started: {error.strerror}") from None
        self._running.append((process, full, time.monotonic()))
        return process

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        stdin: int = subprocess.DEVNULL,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        watch: Callable[[str], None] | None = None,
        tick: Callable[[], None] | None = None,
    ) -> str:
        """Run `argv` to its end and return what it printed (stdout and stderr together).

        `watch` sees each line as it is printed; `tick` is called about every 0.1 s. Raises
        AppError for a non-zero exit code and when it is still running after `timeout` seconds (it
        is killed then).
        """
        process = self.start(argv, output=subprocess.PIPE, stdin=stdin, cwd=cwd, env=env)
        text = self._read(process, argv[0], timeout, watch, tick)
        returncode = process.wait()
        self._record(process)
        if returncode:
            raise failure(Path(argv[0]).name, returncode, text, self._site.dirs)
        return text

    def _read(
        self,
        process: subprocess.Popen[bytes],
        name: str,
        timeout: float,
        watch: Callable[[str], None] | None,
        tick: Callable[[], None] | None,
    ) -> str:
        assert process.stdout is not None
        deadline = time.monotonic() + timeout
        text, partial = bytearray(), b""
        with selectors.DefaultSelector() as selector, process.stdout as pipe:
            selector.register(pipe, selectors.EVENT_READ)
            while True:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise AppError(f"{Path(name).name} hung: killed after {timeout:.0f} s")
                readable = selector.select(min(left, _TICK) if tick else left)
                if tick:
                    tick()
                if not readable:
                    continue
                chunk = os.read(pipe.fileno(), 1 << 16)
                if not chunk:
                    return text.decode(errors="replace")
                text += chunk
                *lines, partial = (partial + chunk).split(b"\n")
                for line in lines if watch else []:
                    assert watch is not None
                    watch(line.decode(errors="replace"))

    def _record(self, process: subprocess.Popen[bytes]) -> None:
        for entry in [e for e in self._running if e[0] is process]:
            _, argv, started = entry
            self._running.remove(entry)
            self.commands.append(
                Command(
                    argv=argv, seconds=time.monotonic() - started, returncode=process.returncode
                )
            )

    def kill(self) -> None:
        """Kill everything that is still running, and wait until it is gone."""
        # A leader that is dead already may have left its group behind.
        groups = {process.pid for process, _, _ in self._running}
        _kill("what was started", lambda: in_groups(groups))
        if self._site.cgroup is not None:
            kill_cgroup(self._site.cgroup)
        for process, _, _ in list(self._running):
            try:
                process.wait(_KILL_PATIENCE)
            except subprocess.TimeoutExpired:
                raise AppError(
                    f"process {process.pid} does not die (D state?); see /proc/{process.pid}/stack"
                ) from None
            self._record(process)


def kill_cgroup(cgroup: Path) -> None:
    """Kill all processes of a cgroup v2 directory (never ourselves) and wait until it is empty.

    Raises AppError when one is left after ten seconds.
    """
    _kill(str(cgroup), lambda: [pid for pid in in_cgroup(cgroup) if pid != os.getpid()])


def _kill(name: str, find: Callable[[], list[int]]) -> None:
    if left := kill(find, _KILL_PATIENCE):
        raise AppError(f"{name} does not die: {where(left[0])}")
