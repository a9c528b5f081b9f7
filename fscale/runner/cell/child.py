# SPDX-License-Identifier: GPL-2.0-only
"""Runs the process of a load. Every wait is bounded, and no process is left if it can be killed."""

import contextlib
import os
import select
import subprocess
import time
from pathlib import Path

from fscale.model.errors import FscaleError
from fscale.model.results import Command
from fscale.runner.machine.changes import Cgroup
from fscale.system import processes
from fscale.system.environment import PLAIN_UMASK
from fscale.system.executor import Executor

_PARTS = 8  # of a wait; each may wake a CPU under test


class LoadTimeout(FscaleError):  # noqa: N818
    """The load was not ready, or did not end, within its time limit."""

    fault = "filesystem"


def _readable(fd: int, timeout: float) -> bool:
    """Wait in parts, so that a stop of this process (Ctrl-Z, a frozen container) uses up only one.

    After a stop select() says that the time is over, and not what became readable meanwhile.
    """
    return any(select.select([fd], [], [], timeout / _PARTS)[0] for _ in range(_PARTS))


class Child:
    """A running load. Its output goes to files, so that a full pipe cannot block it."""

    def __init__(self, do: Executor, scratch: Path, cgroup: Cgroup | None, synced: bool) -> None:
        self._do = do
        self._cgroup = cgroup
        self._out = scratch / "stdout"
        self._err = scratch / "stderr"
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self.sync: tuple[int, int] | None = None
        self._ready = self._go = -1
        if synced:
            theirs_go, self._go = os.pipe()
            self._ready, theirs_ready = os.pipe()
            self.sync = (theirs_go, theirs_ready)

    @property
    def pid(self) -> int | None:
        """The process id; None before the start."""
        return self._process.pid if self._process else None

    def start(self, argv: list[str]) -> None:
        """Start the load in a process group of its own."""
        self._argv = argv
        self._do.begins(argv)
        self._started = time.monotonic()
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                pass_fds=self.sync or (),
                env=self._do.environment(),
                process_group=0,
                umask=PLAIN_UMASK,
            )
        for fd in self.sync or ():
            os.close(fd)

    def wait_ready(self, timeout: float) -> bool:
        """Wait for "ready"; return False if the load ended instead.

        Raises:
            LoadTimeout: neither happened within `timeout` seconds.
        """
        if not _readable(self._ready, timeout):
            raise LoadTimeout(
                f"the load was not ready within {timeout:g} s (setup_limit of the suite)",
                fault="user",
            )
        return os.read(self._ready, 16).startswith(b"ready")

    def go(self) -> None:
        """Release the workers from the start barrier."""
        with contextlib.suppress(BrokenPipeError):  # it has died; wait() reports that
            os.write(self._go, b"g")

    def take_turn(self, timeout: float) -> str:
        """Let the load take a turn and return the line that it answers; empty if it ended instead.

        Raises:
            LoadTimeout: it did not answer within `timeout` seconds.
        """
        self.go()
        answer = b""
        while not answer.endswith(b"\n"):
            if not _readable(self._ready, timeout):
                raise LoadTimeout(f"the load did not end its turn within {timeout:g} s")
            part = os.read(self._ready, 256)
            if not part:
                return ""
            answer += part
        return answer.decode(errors="replace")

    def close_input(self) -> None:
        """Close the input of the load, so that it ends."""
        os.close(self._go)
        self._go = -1

    def wait(self, timeout: float) -> tuple[int, str, str]:
        """Wait for the end; return exit code, standard output and standard error.

        Raises:
            LoadTimeout: it did not end within `timeout` seconds.
        """
        assert self._process
        # Popen.wait() with a timeout would wake up every 50 ms, on the CPUs under test.
        pidfd = os.pidfd_open(self._process.pid)
        try:
            ended = _readable(pidfd, timeout)
        finally:
            os.close(pidfd)
        if not ended:
            raise LoadTimeout(f"the load did not end within {timeout:g} s")
        code = self._process.wait()
        seconds = round(time.monotonic() - self._started, 4)
        self._do.log.append(Command(argv=self._argv, seconds=seconds, returncode=code))
        return code, self._out.read_text(errors="replace"), self._err.read_text(errors="replace")

    def end(self, timeout: float = 10) -> list[str]:
        """Kill what is left of the load; return descriptions of processes that do not die."""
        for fd in (self._ready, self._go):
            if fd >= 0:
                with contextlib.suppress(OSError):
                    os.close(fd)
        self._ready = self._go = -1
        if not self._process:
            return []
        if self._cgroup:
            left = self._cgroup.kill(timeout)
        else:
            left = processes.kill(lambda: processes.tagged(self._do.tag), timeout)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        return [processes.describe_stuck(pid) for pid in left]
