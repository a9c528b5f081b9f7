# SPDX-License-Identifier: GPL-2.0-only
"""The on-CPU profile by perf, and what the hardware counters say where there are any."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fscale.model.load import COMM
from fscale.model.paths import TOOL_PATH
from fscale.runner.profilers.base import (
    ProfilerError,
    Tool,
    ToolProfiler,
    needs_root,
    needs_tool,
    take,
)
from fscale.runner.profilers.context import Context
from fscale.system.executor import which

FREQUENCY = 997  # a prime, so that sampling does not run in step with timers
MOST_SAMPLES = 200_000  # in all; many CPUs are sampled less often
HARDWARE_EVENTS = (
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "LLC-loads",
    "LLC-load-misses",
)


def perf(argv: list[str], timeout: float = 60) -> tuple[int, str, str]:
    """Run perf to its end: exit status, output, errors."""
    done = subprocess.run(
        ["perf", *argv],
        executable=which("perf"),
        env={"PATH": TOOL_PATH, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def first_line(words: str) -> str:
    """The first line that a tool said."""
    return next((line.strip() for line in words.splitlines() if line.strip()), "it said nothing")


def has_cycles() -> bool:
    """Whether the CPU's cycle counter can be used (often not in a guest)."""
    code, _, words = perf(["stat", "-x,", "-e", "cycles", "--", "/bin/true"])
    return code == 0 and "<not" not in words


class Cpu(ToolProfiler):
    """`perf record`: cycles where the hardware counts them, cpu-clock otherwise."""

    name = "cpu"
    _event = ""
    _data: Path
    _who: dict[str, int | None]

    def unavailable(self) -> str | None:
        """See Profiler."""
        return needs_tool("perf", "linux-perf") or needs_root()

    def attach(self, context: Context) -> None:
        """See Profiler."""
        self._event = self._event or ("cycles" if has_cycles() else "cpu-clock")
        self._data = context.output / "perf.data"
        self._who = {"pid": context.pid, "cores": len(context.cpus)}
        rate = MOST_SAMPLES / ((context.key.duration + 1) * len(context.cpus))
        argv = ["perf", "record", "--quiet", "--all-cpus", "--call-graph", "fp"]
        argv += ["--freq", str(max(19, int(min(FREQUENCY, rate)))), "--event", self._event]
        argv += ["--output", str(self._data), "--", Tool.CHILD]
        self.run_tool(Tool(argv, context.output / "cpu.log"))

    def detach(self) -> Mapping[str, Any]:
        """See Profiler. perf.data is removed: the profile holds what perf script makes of it."""
        self.finish_tool()
        fields = "comm,tid,time,period,event,ip,sym"
        argv = ["script", "--input", str(self._data), "--fields", fields, "--show-task-events"]
        code, output, words = perf(argv, timeout=300)
        if code != 0:
            raise ProfilerError(f"perf script cannot read {self._data}: {words.strip()[-200:]}")
        self._data.unlink()
        return {"event": self._event, "comm": COMM, **self._who, "output": output}


class Hardware(ToolProfiler):
    """`perf stat`: cycles, instructions and cache misses of the CPUs under test."""

    name = "hardware"
    _output: Path

    def unavailable(self) -> str | None:
        """See Profiler."""
        missing = needs_tool("perf", "linux-perf")
        if missing:
            return missing
        return None if has_cycles() else "this machine has no hardware counters (perf: cycles)"

    def attach(self, context: Context) -> None:
        """See Profiler."""
        self._output = context.output / "hardware.out"
        argv = ["perf", "stat", "--field-separator", ",", "--event", ",".join(HARDWARE_EVENTS)]
        argv += ["--cpu", ",".join(map(str, context.cpus)), "--output", str(self._output)]
        self.run_tool(Tool([*argv, "--", Tool.CHILD], context.output / "hardware.log"))

    def detach(self) -> Mapping[str, Any]:
        """See Profiler."""
        self.finish_tool()
        return {"output": take(self._output)}


class CacheToCache(ToolProfiler):
    """`perf c2c`: the cache lines that CPUs take from each other."""

    name = "c2c"
    _data: Path

    def unavailable(self) -> str | None:
        """See Profiler."""
        missing = needs_tool("perf", "linux-perf")
        if missing:
            return missing
        code, _, words = perf(["c2c", "record", "-o", "/dev/null", "--", "/bin/true"])
        return None if code == 0 else f"perf c2c: {first_line(words)}"

    def attach(self, context: Context) -> None:
        """See Profiler."""
        self._data = context.output / "c2c.data"
        argv = ["perf", "c2c", "record", "--all-kernel", "-o", str(self._data)]
        self.run_tool(Tool([*argv, "--", "-a", "--", Tool.CHILD], context.output / "c2c.log"))

    def detach(self) -> Mapping[str, Any]:
        """See Profiler."""
        self.finish_tool()
        code, output, words = perf(["c2c", "report", "--stdio", "-i", str(self._data)], 300)
        if code != 0:
            raise ProfilerError(f"perf c2c cannot read {self._data}: {words.strip()[-200:]}")
        self._data.unlink()
        return {"output": output}
