# SPDX-License-Identifier: GPL-2.0-only
"""Runs a command that ends with the process that wanted it."""

import subprocess
import time
from collections.abc import Callable, Sequence
from typing import IO

POLL_SECONDS = 0.2


def run_leashed(argv: Sequence[str], output: IO[bytes], cancelled: Callable[[], bool]) -> int:
    """Run a command, terminated when it is cancelled; the exit code, negative if a signal ended it.

    The command is killed if this process is.
    """
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "--", *argv],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )
    try:
        while process.poll() is None:
            if cancelled():
                process.terminate()
                process.wait()
            time.sleep(POLL_SECONDS)
    finally:
        process.kill()
        process.wait()
    return process.returncode
