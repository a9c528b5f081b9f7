# SPDX-License-Identifier: GPL-2.0-only
"""Waiting for a load."""

import subprocess
import sys

from fscale.model import paths

STOPPED = """
import os, signal, subprocess
from fscale.runner.cell import child
signal.signal(signal.SIGCONT, lambda *_: None)
stop = f"sleep 0.1; kill -STOP {os.getpid()}; sleep 1.5; kill -CONT {os.getpid()}"
load, _ = subprocess.Popen(["sleep", "0.5"]), subprocess.Popen(["sh", "-c", stop])
print(child._readable(os.pidfd_open(load.pid), 1.0))
"""


def test_a_load_that_ends_while_fscale_is_stopped_has_not_hung() -> None:
    """The time limit passes during the stop (Ctrl-Z), and the load is long over when it ends."""
    argv = [sys.executable, "-c", STOPPED]
    done = subprocess.run(argv, cwd=paths.ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
