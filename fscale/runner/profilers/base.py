# SPDX-License-Identifier: GPL-2.0-only
"""The base of all profilers, and how a tracing tool is attached and stopped."""

import gzip
import json
import os
import platform
import selectors
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fscale.model import filetest
from fscale.model.errors import FscaleError
from fscale.model.maps import MAP_KEYS
from fscale.model.paths import TRACEFS
from fscale.model.results import Cell, CellKey
from fscale.runner.profilers.context import Context
from fscale.system import powers
from fscale.system.environment import PLAIN_UMASK, of_children
from fscale.system.executor import which

ATTACH_SECONDS = 60.0
STOP_SECONDS = 120.0
BTF = Path("/sys/kernel/btf/vmlinux")
FILESYSTEMS = Path("/proc/filesystems")


class ProfilerError(FscaleError):
    """A profiler failed that should work on this machine."""


class Profiler(ABC):
    """Profiles a cell: attaches after its set-up, detaches when its load has ended.

    One object serves a whole run. It implements `fscale.runner.profilers.context.CellProfiler`.
    """

    name: str

    def __init__(self) -> None:
        self._path: Path | None = None
        self._named = True
        self.watched: int | None = None  # nanoseconds of the load's windows; None if not known
        self._functions: dict[str, list[str]] = {}

    @abstractmethod
    def unavailable(self) -> str | None:
        """Return why this machine cannot run the profiler, as text for the user; None if it can."""

    def try_out(self) -> None:  # noqa: B027 - not every profiler has a tool
        """Raise what the profiler raises if it does not work, with its tool's own words.

        Raises:
            FscaleError, OSError, ValueError, TimeoutExpired: it does not work.
        """

    @abstractmethod
    def attach(self, context: Context) -> None:
        """Attach; return when everything that follows is observed."""

    @abstractmethod
    def detach(self) -> Mapping[str, Any]:
        """Detach, and return the content of the profile's file."""

    def start(self, context: Context) -> None:
        """Attach, while the load is set up and waits.

        Raises:
            ProfilerError: this machine cannot run the profiler.
        """
        if reason := self.unavailable():
            raise ProfilerError(f"the profiler {self.name} cannot run here: {reason}")
        self._path = context.output / f"{self.name}.json.gz"
        self._named = context.named
        fs = context.filesystem
        self._functions = {fs.kernel: fs.functions} if fs and fs.functions else {}
        self.attach(context)

    def stop(self) -> None:
        """Detach and write the profile."""
        if self._path is None:
            raise ProfilerError(f"the profiler {self.name} was not started")
        common = {
            "schema": 1,
            "profiler": self.name,
            "kernel": platform.release(),
            "named": self._named,
            "functions": self._functions,
        }
        data = json.dumps({**common, **self.detach()}, separators=(",", ":")).encode()
        self._path.write_bytes(gzip.compress(data, mtime=0))

    def complete(self, cell: Cell) -> None:
        """Enter the profile's path, relative to the run's directory, into the cell.

        A cell whose profile saw nothing of a load that worked is an error: it is not idle.
        """
        if self.watched == 0 and cell.status == "ok":
            cell.status = "error"
            cell.reason = f"the profiler {self.name} did not see the load, which worked"
        if self._path is not None:
            cell.profiles[self.name] = str(
                Path("profiles", self._path.parent.name, self._path.name)
            )


def _trial(output: Path) -> Context:
    """A cell for a trial, whose load is this process."""
    key = CellKey(
        workload="trial",
        filesystem="trial",
        medium="trial",
        mode="buffered",
        cores=1,
        repetition=1,
        duration=1,
    )
    cpus = [min(os.sched_getaffinity(0))]
    return Context(key, cpus, os.getpid(), None, output, None, None, output)


class ToolProfiler(Profiler):
    """A profiler that runs one tool."""

    traces = False  # whether the tool reads events of tracefs

    def __init__(self) -> None:
        super().__init__()
        self._tool: Tool | None = None

    def try_out(self) -> None:
        """See Profiler. The tool is attached to this process for an instant.

        While tracefs is not mounted (a run mounts it), the tool is tried without its events.
        """
        with tempfile.TemporaryDirectory(prefix="fscale-trial-") as directory:
            if self.traces and not filetest.is_dir(TRACEFS / "events"):
                tool, _ = bpftrace("trial", "interval:s:1 { @ticks = count(); }", Path(directory))
                tool.start()
                tool.stop()
            else:
                self.attach(_trial(Path(directory)))
                self.detach()

    def run_tool(self, tool: "Tool") -> None:
        """Start the tool; `finish_tool` stops it."""
        self._tool = tool
        tool.start()

    def finish_tool(self) -> None:
        """Let the tool detach and write its output."""
        if self._tool is None:
            raise ProfilerError(f"the profiler {self.name} was not started")
        try:
            self._tool.stop()
        finally:
            self._tool = None


def needs_tool(tool: str, package: str) -> str | None:
    """Return why a tool cannot be used, and what to install; None if it can."""
    return None if which(tool) else f"{tool} is not installed; apt-get install {package}"


def needs_root() -> str | None:
    """Return why this user, or this container, cannot profile the kernel; None if it can."""
    reason = powers.no_admin()
    return f"the kernel cannot be profiled: {reason}" if reason else None


def needs_event(event: str) -> str | None:
    """Return why a tracepoint (`subsystem:event`) cannot be used; None if it can.

    While tracefs is not mounted (a run mounts it), the kernel's BTF says which events it has.
    Without BTF, all events are assumed to exist.
    """
    if missing := needs_root():
        return missing
    if filetest.is_dir(TRACEFS / "events"):
        there = (TRACEFS / "events" / event.replace(":", "/")).is_dir()
        return None if there else f"this kernel has no tracepoint {event}"
    if missing := needs_tracefs():
        return missing
    # Each tracepoint has a type of this name, for programs that attach to it.
    name = f"btf_trace_{event.partition(':')[2]}".encode()
    if not filetest.exists(BTF) or name in BTF.read_bytes():
        return None
    return f"this kernel has no tracepoint {event}"


def needs_tracefs() -> str | None:
    """Return why tracefs cannot be had; None if it is mounted, or if a run can mount it."""
    if filetest.is_dir(TRACEFS / "events"):
        return None
    if "tracefs" not in FILESYSTEMS.read_text().split():
        return "this kernel was built without tracing (no tracefs)"
    reason = powers.no_mount()
    return f"tracefs cannot be mounted: {reason}" if reason else None


class Tool:
    """A tracing tool that runs `cat` as its child.

    bpftrace and perf start their child only when everything is attached. So once `cat` echoes a
    line, the tool is attached; closing the input of `cat` stops the tool cleanly.
    """

    CHILD = "/bin/cat"

    def __init__(self, argv: list[str], log: Path, **environment: str) -> None:
        """`argv` must run CHILD; the tool's error output goes to the file `log`."""
        self._argv = argv
        self._log = log
        self._environment = of_children(**environment)
        self._child: subprocess.Popen[bytes] | None = None

    def start(self, timeout: float = ATTACH_SECONDS) -> None:
        """Start the tool and return when it is attached.

        Raises:
            ProfilerError: it did not attach within `timeout` seconds; the text has its output.
        """
        with self._log.open("wb") as log:
            self._child = subprocess.Popen(
                self._argv,
                bufsize=0,  # nothing is left to be written when a tool that failed is closed
                executable=which(self._argv[0]),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._environment,
                start_new_session=True,
                umask=PLAIN_UMASK,
            )
        try:
            if not self._attached(self._child, timeout):
                raise ProfilerError(f"{self._argv[0]} did not attach: {self.words()}")
        except BaseException:
            self.kill()
            raise

    def _attached(self, child: subprocess.Popen[bytes], timeout: float) -> bool:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.write(b"attached\n")
        except BrokenPipeError:
            return False
        seen = b""
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ)
            deadline = time.monotonic() + timeout
            while b"attached" not in seen:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    return False
                chunk = os.read(child.stdout.fileno(), 4096)
                if not chunk:
                    return False
                seen += chunk
        return True

    def stop(self, timeout: float = STOP_SECONDS) -> None:
        """Let the tool detach and write its output.

        Raises:
            ProfilerError: it fails, or does not end within `timeout` seconds.
        """
        child = self._child
        if child is None:
            raise ProfilerError(f"{self._argv[0]} was not started")
        assert child.stdin is not None
        try:
            child.stdin.close()
            code = child.wait(timeout)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self.kill()
            raise ProfilerError(
                f"{self._argv[0]} did not stop and was killed: {self.words()}"
            ) from None
        finally:
            assert child.stdout is not None
            child.stdout.close()
            self._child = None
        if code != 0:
            raise ProfilerError(f"{self._argv[0]} failed with exit code {code}: {self.words()}")

    def kill(self) -> None:
        """Kill the tool; its child `cat` ends when its input is closed."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            for stream in (self._child.stdin, self._child.stdout):
                if stream is not None:
                    stream.close()
            self._child = None

    def words(self) -> str:
        """Return the last lines of the tool's log."""
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return "; ".join(line.strip() for line in lines[-4:]) or "no output"


def bpftrace(name: str, program: str, directory: Path) -> tuple[Tool, Path]:
    """Make a bpftrace tool for `program`; return it and the file of its maps (JSON lines)."""
    source, output = directory / f"{name}.bt", directory / f"{name}.out"
    source.write_text(program)
    tool = Tool(
        ["bpftrace", "-f", "json", "-o", str(output), "-c", Tool.CHILD, str(source)],
        directory / f"{name}.log",
        BPFTRACE_MAP_KEYS_MAX=str(MAP_KEYS),  # 0.20 and older
        BPFTRACE_MAX_MAP_KEYS=str(MAP_KEYS),  # 0.21 and newer
        BPFTRACE_STRLEN="32",
    )
    return tool, output


def take(path: Path) -> str:
    """Read a raw file and remove it, because the profile contains it compressed."""
    text = path.read_text(errors="replace")
    path.unlink()
    return text
