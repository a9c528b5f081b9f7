# SPDX-License-Identifier: GPL-2.0-only
"""Counts tracepoints per operation, in workers and in kernel threads."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fscale.model import maps
from fscale.model.maps import numbers
from fscale.model.results import Cell
from fscale.runner.profilers.base import (
    ProfilerError,
    ToolProfiler,
    bpftrace,
    needs_event,
    needs_tool,
    take,
)
from fscale.runner.profilers.context import Context
from fscale.runner.profilers.workers import Workers, workers

# Tracepoints for a file system without a TOML file.
DEFAULT = ("kmem:kmem_cache_alloc", "block:block_rq_issue", "sched:sched_switch")
# Only context switches of tasks that had to wait are counted; preemptions depend on other load. The
# bits are TASK_REPORT and idle.
CONDITIONS = {"sched:sched_switch": "(args->prev_state & 0xff) != 0"}
_EVENT = re.compile(r"[a-z0-9_]+:[a-z0-9_]+", re.IGNORECASE)


def program(workers: Workers, events: tuple[str, ...]) -> str:
    """Return the bpftrace program that counts `events` (`subsystem:event`)."""
    probes = "".join(
        f"""
tracepoint:{event} /{_all(workers.current, event)}/ {{ @worker["{event}"] = count(); }}
tracepoint:{event} /{_all(workers.kernel, event)}/ {{ @kernel["{event}"] = count(); }}"""
        for event in events
    )
    return f"{workers.probes}{probes}\nEND {{ {workers.clear} }}\n"


def _all(condition: str, event: str) -> str:
    return f"({condition}) && {CONDITIONS[event]}" if event in CONDITIONS else condition


class Counts(ToolProfiler):
    """Runs `bpftrace` on the tracepoints that the file system's TOML file lists.

    Workers are counted in their windows only, so set-up is not included; the counts are divided by
    `executed_ops` of the benchmark's output. The window of an application can be shorter than the
    time of its figure (DBENCH reports its start one second late); the counts are then divided by
    the operations of the window only.
    """

    name = "counts"
    traces = True
    _output: Path
    _missing: dict[str, str]
    _events: tuple[str, ...]
    _worker: dict[str, int]
    _cores: int

    def unavailable(self) -> str | None:
        """See Profiler."""
        return needs_tool("bpftrace", "bpftrace") or needs_event("task:task_rename")

    def attach(self, context: Context) -> None:
        """See Profiler. Events that the kernel lacks are skipped, and listed in the profile."""
        wanted = list(dict.fromkeys(context.filesystem.counts if context.filesystem else DEFAULT))
        for event in wanted:
            if not _EVENT.fullmatch(event):
                raise ProfilerError(f"{event!r} is not a tracepoint; write subsystem:event")
        self._missing = {e: why for e in wanted if (why := needs_event(e))}
        self._events = tuple(e for e in wanted if e not in self._missing)
        self._cores = len(context.cpus)
        text = program(workers(context), self._events)
        tool, self._output = bpftrace(self.name, text, context.output)
        self.run_tool(tool)

    def detach(self) -> Mapping[str, Any]:
        """See Profiler."""
        self.finish_tool()
        output = take(self._output)
        found = maps.parse(output)
        self._worker = numbers(found.get("@worker"))
        self.watched = maps.number(found.get("@active"))
        return {"events": self._events, "missing": self._missing, "output": output}

    def complete(self, cell: Cell) -> None:
        """See Profiler. The workers' counts per operation become `cell.counts`."""
        super().complete(cell)
        if cell.status != "ok":
            return
        if cell.bench:
            executed: float = cell.bench.executed_ops
        else:
            seconds = (self.watched or 0) / self._cores / 1e9
            executed = min(cell.ops, cell.ops_per_second * seconds)
        if executed > 0:
            cell.counts = {event: self._worker.get(event, 0) / executed for event in self._events}
