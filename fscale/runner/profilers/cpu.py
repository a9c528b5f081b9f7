# SPDX-License-Identifier: GPL-2.0-only
"""The on-CPU profile by perf, and what the hardware counters say where there are any."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fscale.model import perfstat
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


def has_cycles(cpus: Sequence[int] = ()) -> bool:
    """Whether a PMU counts cycles, of `cpus` or of whatever runs; often none does in a guest."""
    return _counted(_cycles(cpus))


def _cycles(cpus: Sequence[int]) -> list[perfstat.Row]:
    where = ["--cpu", ",".join(map(str, cpus))] if cpus else []
    code, _, words = perf(["stat", "-x,", "-e", "cycles", *where, "--", "/bin/true"])
    return perfstat.read(words) if code == 0 else []


def _counted(rows: list[perfstat.Row]) -> bool:
    total = perfstat.totals(rows).get("cycles")
    return total is not None and total.count > 0


def core_pmus(devices: Path = PMUS) -> dict[str, str]:
    """The PMUs of a machine with unequal cores: name -> list of the CPUs that it belongs to."""
    return {file.parent.name: file.read_text().strip() for file in devices.glob("*/cpus")}


def event_for(cpus: Sequence[int]) -> str:
    """What the profile of `cpus` samples: cycles where every PMU of theirs counts them.

    One that does not would leave the time of its CPUs out.
    """
    pmus = {name: perfstat.cpu_list(own) for name, own in core_pmus().items()}
    rows = _cycles(cpus)
    missing = set(perfstat.gaps(rows, pmus, cpus).get("cycles", ())) & pmus.keys()
    return "cycles" if _counted(rows) and not missing else "cpu-clock"


class Cpu(ToolProfiler):
    """`perf record`: cycles where the hardware counts them, cpu-clock otherwise."""

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
    _cpus: list[int]

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
        self._cpus = list(context.cpus)
        self.run_tool(Tool([*argv, "--", Tool.CHILD], context.output / "hardware.log"))

    def detach(self) -> Mapping[str, Any]:
        """See Profiler."""
        self.finish_tool()
        return {"cpus": self._cpus, "pmus": core_pmus(), "output": take(self._output)}


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
