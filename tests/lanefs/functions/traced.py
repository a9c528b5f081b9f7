# SPDX-License-Identifier: GPL-2.0-only
"""What lanefs's tracepoints say."""

import os
from collections.abc import Callable
from pathlib import Path

from tests.lanefs.functions.harness import run


def traced(device: str, work: Callable[[], None], event: str = "") -> list[str]:
    """What lanefs's tracepoints, or the one named, say of a device meanwhile: lines of tracefs."""
    root = Path("/sys/kernel/tracing")
    if not (root / "instances").exists():
        run("mount", "-t", "tracefs", "tracefs", str(root))
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
