# SPDX-License-Identifier: GPL-2.0-only
"""The off-CPU profile: how long workers were blocked, by their kernel stack."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fscale.model import maps
from fscale.runner.profilers.base import ToolProfiler, bpftrace, needs_event, needs_tool, take
from fscale.runner.profilers.context import Context
from fscale.runner.profilers.workers import Workers, workers


def program(workers: Workers) -> str:
    """Return the bpftrace program, which sums the time off CPU in ns by task state and stack.

    States 0 and 256 are preempted threads, which were still runnable.
    """
    return f"""{workers.probes}
tracepoint:sched:sched_switch {{
	if ({workers.previous}) {{
		@out[args->prev_pid] = nsecs;
		@stack[args->prev_pid] = kstack(24);
		@state[args->prev_pid] = args->prev_state;
	}}
	$next = args->next_pid;
	$out = @out[$next];
	if ($out) {{
		@blocked[@state[$next], @stack[$next]] = stats(nsecs - $out);
		delete(@out[$next]);
	}}
}}
END {{ {workers.clear} clear(@out); clear(@stack); clear(@state); }}
"""


class OffCpu(ToolProfiler):
    """`bpftrace` on sched:sched_switch."""

    name = "offcpu"
    traces = True
    _output: Path

    def unavailable(self) -> str | None:
        """See Profiler."""
        return (
            needs_tool("bpftrace", "bpftrace")
            or needs_event("sched:sched_switch")
            or needs_event("task:task_rename")
        )

    def attach(self, context: Context) -> None:
        """See Profiler."""
        tool, self._output = bpftrace(self.name, program(workers(context)), context.output)
        self.run_tool(tool)

    def detach(self) -> Mapping[str, Any]:
        """See Profiler."""
        self.finish_tool()
        output = take(self._output)
        self.watched = maps.number(maps.parse(output).get("@active"))
        return {"output": output}
