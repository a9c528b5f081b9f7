# SPDX-License-Identifier: GPL-2.0-only
"""What lanefs's tracepoints say."""

import os
from collections.abc import Callable
from pathlib import Path

from tests.lanefs.functions.harness import run


def tracefs() -> Path:
    """Where it is mounted; where it was not, it is now."""
    root = Path("/sys/kernel/tracing")
    if not (root / "instances").exists():
        run("mount", "-t", "tracefs", "tracefs", str(root))
    return root


def traced(device: str, work: Callable[[], None], *events: str) -> list[str]:
    """What tracepoints say of a device meanwhile: lines of tracefs; without any, all of lanefs."""
    instance = tracefs() / "instances" / "fscale-lanefs"
    instance.mkdir(exist_ok=True)
    enables = [instance / "events" / event / "enable" for event in events or ("lanefs",)]
    try:
        (instance / "buffer_size_kb").write_text("4096")
        for enable in enables:
            enable.write_text("1")
        work()
        for enable in enables:
            enable.write_text("0")
        lines = (instance / "trace").read_text().splitlines()
    finally:
        instance.rmdir()
    number = os.stat(device).st_rdev
    which = f" {os.major(number)},{os.minor(number)} "
    return [line for line in lines if which in line]
