# SPDX-License-Identifier: GPL-2.0-only
"""Profiles with perf: on-CPU samples, hardware counters and cache-line transfers."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fscale.model import perfstat
from fscale.model.load import COMM
from fscale.runner.profilers.base import (
    ProfilerError,
    Tool,
    ToolProfiler,
    needs_root,
    needs_tool,
    take,
)
from fscale.runner.profilers.context import Context
from fscale.system.environment import of_children
from fscale.system.executor import which

FREQUENCY = 997  # Hz; a prime, so that samples do not synchronise with timers
MAX_SAMPLES = 200_000  # of all CPUs; with many CPUs the frequency is lower
PMUS = Path("/sys/bus/event_source/devices")
HARDWARE_EVENTS = (
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "LLC-loads",
    "LLC-load-misses",
)


def perf(argv: list[str], timeout: float = 60) -> tuple[int, str, str]:
    """Run perf to its end, at most `timeout` seconds; return exit code, output and errors."""
    done = subprocess.run(
        ["perf", *argv],
        executable=which("perf"),
        env=of_children(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def first_line(words: str) -> str:
    """Return the first line of a tool's output."""
    return next((line.strip() for line in words.splitlines() if line.strip()), "no output")


def has_cycles(cpus: Sequence[int] = ()) -> bool:
    """Return whether a PMU counts cycles, on `cpus` or on any CPU; often none does in a guest."""
    return _counted(_cycles(cpus))


def _cycles(cpus: Sequence[int]) -> list[perfstat.Row]:
    where = ["--cpu", ",".join(map(str, cpus))] if cpus else []
    code, _, words = perf(["stat", "-x,", "-e", "cycles", *where, "--", "/bin/true"])
    return perfstat.read(words) if code == 0 else []


def _counted(rows: list[perfstat.Row]) -> bool:
    total = perfstat.totals(rows).get("cycles")
    return total is not None and total.count > 0


def core_pmus(devices: Path = PMUS) -> dict[str, str]:
    """Return the PMUs of a machine with unequal cores: name -> list of its CPUs."""
    return {file.parent.name: file.read_text().strip() for file in devices.glob("*/cpus")}


def event_for(cpus: Sequence[int]) -> str:
    """Return the event to sample on `cpus`: cycles if all their PMUs count them, else cpu-clock.

    A PMU that does not count cycles would hide the time of its CPUs.
    """
    pmus = {name: perfstat.cpu_list(own) for name, own in core_pmus().items()}
    rows = _cycles(cpus)
    missing = set(perfstat.gaps(rows, pmus, cpus).get("cycles", ())) & pmus.keys()
    return "cycles" if _counted(rows) and not missing else "cpu-clock"


class CpuProfiler(ToolProfiler):
    """`perf record` of cycles if the hardware counts them, else of cpu-clock."""

    name = "cpu"
    _event: str
    _data: Path
    _who: dict[str, int | None]

    def unavailable(self) -> str | None:
        """See Profiler."""
        return needs_tool("perf", "linux-perf") or needs_root()

    def attach(self, context: Context) -> None:
        """See Profiler."""
        self._event = event_for(context.cpus)
        self._data = context.output / "perf.data"
        self._who = {"pid": context.pid, "cores": len(context.cpus)}
        rate = MAX_SAMPLES / ((context.key.duration + 1) * len(context.cpus))
        argv = ["perf", "record", "--quiet", "--all-cpus", "--call-graph", "fp"]
        argv += ["--freq", str(max(19, int(min(FREQUENCY, rate)))), "--event", self._event]
        argv += ["--output", str(self._data), "--", Tool.CHILD]
        self.run_tool(Tool(argv, context.output / "cpu.log"))

    def detach(self) -> Mapping[str, Any]:
        """See Profiler. perf.data is removed; the profile contains the output of perf script."""
        self.finish_tool()
        fields = "comm,tid,time,period,event,ip,sym"
        argv = ["script", "--input", str(self._data), "--fields", fields, "--show-task-events"]
        code, output, words = perf(argv, timeout=300)
        if code != 0:
            raise ProfilerError(f"perf script cannot read {self._data}: {words.strip()[-200:]}")
        self._data.unlink()
        return {"event": self._event, "comm": COMM, **self._who, "output": output}


class Hardware(ToolProfiler):
    """`perf stat` of cycles, instructions and cache misses on the CPUs under test."""

    name = "hardware"
    _output: Path
    _cpus: list[int]

    def unavailable(self) -> str | None:
        """See Profiler."""
        missing = needs_tool("perf", "linux-perf")
        if missing:
            return missing
        return (
            None if has_cycles() else "this machine has no hardware counters: perf counts no cycles"
        )

    def attach(self, context: Context) -> None:
        """See Profiler."""
        self._output = context.output / "hardware.out"
        argv = ["perf", "stat", "--field-separator", ",", "--event", ",".join(HARDWARE_EVENTS)]
        argv += ["--cpu", ",".join(map(str, context.cpus)), "--output", str(self._output)]
        self._cpus = list(context.cpus)
        self.run_tool(Tool([*argv, "--", Tool.CHILD], context.output / "hardware.log"))

    def detach(self) -> Mapping[str, Any]:
        """See Profiler."""
        self.finish_tool()
        return {"cpus": self._cpus, "pmus": core_pmus(), "output": take(self._output)}


class CacheToCache(ToolProfiler):
    """`perf c2c`: the cache lines that move between CPUs."""

    name = "c2c"
    _data: Path

    def unavailable(self) -> str | None:
        """See Profiler."""
        missing = needs_tool("perf", "linux-perf")
        if missing:
            return missing
        code, _, words = perf(["c2c", "record", "-o", "/dev/null", "--", "/bin/true"])
        return None if code == 0 else f"perf c2c fails on this machine: {first_line(words)}"

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
