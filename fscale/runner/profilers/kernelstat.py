# SPDX-License-Identifier: GPL-2.0-only
"""Lock statistics of special kernels or builds of perf: lock_stat and perf lock."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fscale.runner.profilers.base import Profiler, Tool, ToolProfiler, needs_root, needs_tool, take
from fscale.runner.profilers.context import Context
from fscale.runner.profilers.cpu import first_line, perf

LOCK_STAT = Path("/proc/lock_stat")
SWITCH = Path("/proc/sys/kernel/lock_stat")


class LockStat(Profiler):
    """/proc/lock_stat of kernels with CONFIG_LOCK_STAT: bounces, wait and hold times by class."""

    name = "lockstat"

    def __init__(self, table: Path = LOCK_STAT, switch: Path = SWITCH) -> None:
        super().__init__()
        self._table = table
        self._switch = switch

    def unavailable(self) -> str | None:
        """See Profiler."""
        if not self._table.exists():
            return f"{self._table} does not exist: build the kernel with CONFIG_LOCK_STAT"
        if not all(os.access(path, os.W_OK) for path in (self._table, self._switch)):
            return f"{self._table} and {self._switch} cannot be written"
        return None

    def attach(self, context: Context) -> None:
        """See Profiler."""
        self._table.write_text("0")  # clears the table
        self._switch.write_text("1")

    def detach(self) -> Mapping[str, Any]:
        """See Profiler."""
        self._switch.write_text("0")
        return {"output": self._table.read_text(errors="replace")}


class PerfLock(ToolProfiler):
    """`perf lock contention --use-bpf`, which needs a perf built with BPF skeletons."""

    name = "perf-lock"
    _output: Path

    def unavailable(self) -> str | None:
        """See Profiler."""
        missing = needs_tool("perf", "linux-perf") or needs_root()
        if missing:
            return missing
        code, _, words = perf(["lock", "contention", "--use-bpf", "--", "/bin/true"])
        return (
            None
            if code == 0
            else f"perf lock contention fails on this machine: {first_line(words)}"
        )

    def attach(self, context: Context) -> None:
        """See Profiler.

        One frame is skipped, because perf 6.1 by default reports the lock function as the caller.
        """
        self._output = context.output / "perf-lock.out"
        argv = ["perf", "lock", "--output", str(self._output), "contention", "--use-bpf"]
        argv += ["--all-cpus", "--stack-skip", "1", "--", Tool.CHILD]
        self.run_tool(Tool(argv, context.output / "perf-lock.log"))

    def detach(self) -> Mapping[str, Any]:
        """See Profiler."""
        self.finish_tool()
        return {"output": take(self._output)}
