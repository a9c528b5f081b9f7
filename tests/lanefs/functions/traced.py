# SPDX-License-Identifier: GPL-2.0-only
"""What lanefs's tracepoints say, and how long its functions take."""

import os
import re
from collections.abc import Callable
from pathlib import Path

from tests.lanefs.functions.harness import Skipped, run


def _tracefs() -> Path:
    root = Path("/sys/kernel/tracing")
    if not (root / "instances").exists():
        run("mount", "-t", "tracefs", "tracefs", str(root))
    return root


def durations(function: str, work: Callable[[], None]) -> list[float]:
    """How long the calls of a function of the kernel take meanwhile, in us, by function_graph."""
    root = _tracefs()
    if "function_graph" not in (root / "available_tracers").read_text().split():
        raise Skipped("no function_graph in this kernel")
    try:
        (root / "buffer_size_kb").write_text("8192")
        (root / "set_graph_function").write_text(function)
        (root / "max_graph_depth").write_text("1")
        (root / "current_tracer").write_text("function_graph")
        work()
        (root / "tracing_on").write_text("0")
        lines = (root / "trace").read_text().splitlines()
    finally:
        for name, value in (
            ("current_tracer", "nop"),
            ("set_graph_function", ""),
            ("max_graph_depth", "0"),
            ("tracing_on", "1"),
        ):
            (root / name).write_text(value)
    found = (re.search(rf"([\d.]+) us +\| +{function}\b", line) for line in lines)
    return [float(match[1]) for match in found if match]


def traced(device: str, work: Callable[[], None], event: str = "") -> list[str]:
    """What lanefs's tracepoints, or the one named, say of a device meanwhile: lines of tracefs."""
    root = _tracefs()
    instance = root / "instances" / "fscale-lanefs"
    instance.mkdir(exist_ok=True)
    try:
        (instance / "buffer_size_kb").write_text("4096")
        enable = instance / "events/lanefs" / event / "enable"
        enable.write_text("1")
        work()
        enable.write_text("0")
        lines = (instance / "trace").read_text().splitlines()
    finally:
        instance.rmdir()
    number = os.stat(device).st_rdev
    which = f" dev {os.major(number)},{os.minor(number)} "
    return [line for line in lines if which in line]
