# SPDX-License-Identifier: GPL-2.0-only
"""Starts the programs of one run on the CPUs under test, and ends them all with the run."""

import contextlib
import ctypes
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
from typing import IO, Any, Protocol

from fscale.apps.base import AppError, Site, Timing
from fscale.apps.meter import Meter, Usage, between
from fscale.model import fault, paths
from fscale.model.results import Command
from fscale.system.environment import PLAIN_UMASK, of_children
from fscale.system.executor import TAG, which
from fscale.system.processes import describe_stuck, in_cgroup, in_groups, kill

_FULL = {os.strerror(code) for code in (errno.ENOSPC, errno.EDQUOT)}
_COMPLAINT = re.compile(
    r"error|fail|cannot|invalid|denied|expected|assertion|No such", re.IGNORECASE
)
_JSON = re.compile(r"""["{}\[\]]""")
_TICK = 0.1  # seconds
_KILL_PATIENCE = 10.0  # seconds that a killed process gets to exit, even from D state
_LIBC = ctypes.CDLL(None)
_PR_SET_TIMERSLACK = 29
_TIMER_SLACK = int(Path("/proc/self/timerslack_ns").read_text())  # of this process when it started


class User(Protocol):
    """The ids as which a program runs; None: those of this process."""

    uid: int | None
    gid: int | None


def cpu_list(cpus: Sequence[int]) -> str:
    """CPUs in the form `0,1,4`, for taskset, fio and the C programs."""
    return ",".join(str(cpu) for cpu in cpus)


class FileSystemFullError(AppError):
    """The file system under test, or the user's quota there, has no space left."""

    fault = "user"

    def __init__(self, program: str, why: str = os.strerror(errno.ENOSPC)) -> None:
        super().__init__(
            f"{program}: the file system is full ({why}); "
            "take a larger medium or a smaller data set"
        )


def _reset_timer_slack() -> None:
    """Give a child the timer slack of other processes, not its parent's of real-time priority.

    Since Linux 6.13 it is 0 of a process with real-time priority and of all that it starts.
    """
    _LIBC.prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(_TIMER_SLACK))


def failure(program: str, returncode: int, output: str, dirs: Sequence[Path] = ()) -> AppError:
    """The error of a failed program: how it ended, and its last output.

    Not every program reports that the file system is full, so `dirs` are checked as well. This must
    happen at once, because the program frees space when it ends.
    """
    if full := next((why for why in _FULL if why in output), None):
        return FileSystemFullError(program, full)
    if any(map(_full, dirs)):
        return FileSystemFullError(program)
    if returncode < 0:
        end = f"was killed by {signal.Signals(-returncode).name}"
    else:
        end = f"ended with exit code {returncode}"
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    # fio prints its JSON although it failed.
    words = [line for line in lines if not _JSON.match(line)] or lines
    complaints = [line for line in words if _COMPLAINT.search(line)]
    last = " | ".join((complaints or words)[-3:])
    blamed = fault.of_exit(returncode, fault.of_output(output, "load"))
    return AppError(f"{program} {end}: {last or 'it printed nothing'}", fault=blamed)


def _full(directory: Path) -> bool:
    with contextlib.suppress(OSError):
        stat = os.statvfs(directory)
        # A file system in memory without a size limit reports zero blocks.
        return stat.f_blocks > 0 and stat.f_bavail * 100 < stat.f_blocks
    return False


def error_in_output(lines: Iterable[str]) -> str | None:
    """The error in the JSON object of one of fscale's C programs, or None."""
    for line in lines:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            error = json.loads(line)["error"]
            return None if error is None else str(error)
    return None


def command_output(*argv: str) -> str:
    """The output of a short command, such as its version, whatever its exit code."""
    try:
        done = subprocess.run(
            [which(argv[0]) or argv[0], *argv[1:]],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=30,
            env=of_children(),
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return (done.stdout.strip() or done.stderr.strip()) or "unknown"


class Processes:
    """The processes of one run: a context manager that kills the remaining ones at its end.

    Each program starts in a session of its own. If the site has a cgroup, the driver and all its
    children are in it. At the end all processes in it except the driver are killed, so that not
    even the children of a daemon survive.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._running: list[tuple[subprocess.Popen[bytes], list[str], float]] = []
        self.commands: list[Command] = []

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()

    def start(
        self,
        argv: Sequence[str],
        *,
        output: IO[bytes] | int,
        stdin: int = subprocess.DEVNULL,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        user: User | None = None,
        cpus: Sequence[int] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start `argv` on the CPUs under test, or on some of them; `env` is added to a plain one.

        It has the ids of `user`, and no other groups.
        """
        full = ["taskset", "--cpu-list", cpu_list(cpus or self._site.cpus), *argv]
        environment = {"PATH": paths.TOOL_PATH, "LC_ALL": "C", "HOME": str(self._site.scratch)}
        if TAG in os.environ:  # the runner uses it to find processes of a killed run
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
                umask=PLAIN_UMASK,
                preexec_fn=_reset_timer_slack,  # noqa: PLW1509 (the driver has one thread)
                user=user.uid if user else None,
                group=user.gid if user else None,
                extra_groups=[] if user and user.uid is not None else None,
            )
        except OSError as error:
            raise AppError(f"cannot start {argv[0]}: {error.strerror}", fault="machine") from None
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
        user: User | None = None,
        cpus: Sequence[int] | None = None,
        watch: Callable[[str], None] | None = None,
        tick: Callable[[], None] | None = None,
    ) -> str:
        """Run `argv` to its end and return what it printed (stdout and stderr together).

        `watch` is called with each line when it is printed, `tick` about every 0.1 s. Raises
        AppError for a non-zero exit code, and if the program still runs after `timeout` seconds (it
        is killed then).
        """
        process = self.start(
            argv, output=subprocess.PIPE, stdin=stdin, cwd=cwd, env=env, user=user, cpus=cpus
        )
        return self._end(process, argv[0], timeout, watch, tick)

    def run_timed(self, argv: Sequence[str], timing: Timing, **options: Any) -> tuple[str, Usage]:
        """Run a program whose whole run is the timed window; return its output and CPU time."""
        meter = Meter(self._site.cpus, self._site.cgroup)
        start = meter.open()
        text = self.run(argv, timeout=timing.duration + timing.margin, **options)
        return text, between(start, meter.close())

    def run_together(
        self, argv: Sequence[str], timing: Timing, places: Sequence[Path]
    ) -> tuple[list[str], Usage]:
        """Run a program in several directories at the same time; see `run_timed`.

        Each may print as much as a pipe holds before the others have ended.
        """
        meter = Meter(self._site.cpus, self._site.cgroup)
        deadline = time.monotonic() + timing.duration + timing.margin
        start = meter.open()
        running = [self.start(argv, output=subprocess.PIPE, cwd=place) for place in places]
        texts = [self._end(one, argv[0], deadline - time.monotonic()) for one in running]
        return texts, between(start, meter.close())

    def _end(
        self,
        process: subprocess.Popen[bytes],
        name: str,
        timeout: float,
        watch: Callable[[str], None] | None = None,
        tick: Callable[[], None] | None = None,
    ) -> str:
        """Wait for a program, and return what it printed; see `run`."""
        text = self._read(process, name, timeout, watch, tick)
        returncode = process.wait()
        self._record(process)
        if returncode:
            raise failure(Path(name).name, returncode, text, self._site.dirs)
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
        # A part, so that a stop of everything (a frozen container) uses up no more of the time.
        left, part = timeout, _TICK if tick else timeout / 8
        text, partial = bytearray(), b""
        with selectors.DefaultSelector() as selector, process.stdout as pipe:
            selector.register(pipe, selectors.EVENT_READ)
            while True:
                if left <= 0:
                    raise AppError(f"{Path(name).name} hung and was killed after {timeout:.0f} s")
                began = time.monotonic()
                readable = selector.select(part)
                left -= min(time.monotonic() - began, part)
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
        """Kill all remaining processes, and wait until they have exited."""
        # A dead leader may have left other processes in its group.
        groups = {process.pid for process, _, _ in self._running}
        _kill("what was started", lambda: in_groups(groups))
        if self._site.cgroup is not None:
            kill_cgroup(self._site.cgroup)
        for process, _, _ in list(self._running):
            try:
                process.wait(_KILL_PATIENCE)
            except subprocess.TimeoutExpired:
                raise AppError(
                    f"process {process.pid} does not exit after SIGKILL (D state?); see "
                    f"/proc/{process.pid}/stack"
                ) from None
            self._record(process)


def kill_cgroup(cgroup: Path) -> None:
    """Kill all processes of a cgroup v2 directory except this one and wait until it is empty.

    Raises AppError if one is left after ten seconds.
    """
    _kill(str(cgroup), lambda: [pid for pid in in_cgroup(cgroup) if pid != os.getpid()])


def _kill(name: str, find: Callable[[], list[int]]) -> None:
    if left := kill(find, _KILL_PATIENCE):
        raise AppError(f"{name} does not exit after SIGKILL: {describe_stuck(left[0])}")
