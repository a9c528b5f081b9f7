# SPDX-License-Identifier: GPL-2.0-only
"""What the user says of a machine that boots kernels: its reset, its console, its time to boot."""

import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass

from fscale.farm.pipes import Tail
from fscale.model.errors import FscaleError
from fscale.system.executor import summarise_failure

RESET_SECONDS = 120.0
BOOT_SECONDS = 600.0
CONSOLE_BYTES = 1 << 20
"""what is kept of a console: a crash, and what the machine's own kernel prints when it boots"""
_GRACE_SECONDS = 2.0


@dataclass(frozen=True)
class Controls:
    """Shell commands, which run here; None: there is none."""

    reset: str | None = None
    """resets the machine, as a power switch does"""
    console: str | None = None
    """prints what the machine prints on its console, until it is terminated"""
    boot_seconds: float = BOOT_SECONDS
    """how long a boot may take until the machine is reset, and then until it is given up"""


def reset(command: str) -> None:
    """Reset a machine.

    Raises:
        FscaleError: the command failed, or did not end within RESET_SECONDS.
    """
    process = _start(command, subprocess.DEVNULL)
    assert process.stdout
    output = Tail(process.stdout)
    try:
        code = process.wait(RESET_SECONDS)
    except subprocess.TimeoutExpired:
        _end(process)
        raise FscaleError(f"--reset-command did not end within {RESET_SECONDS:.0f} s") from None
    if code:
        reason = summarise_failure(output.text(_GRACE_SECONDS)) or "it printed nothing"
        raise FscaleError(f"--reset-command failed with exit code {code}: {reason}")


class Console:
    """Reads a console until `end`."""

    def __init__(self, command: str) -> None:
        # Its standard input ends when this process is killed.
        self._process = _start(command, subprocess.PIPE)
        assert self._process.stdout
        self._output = Tail(self._process.stdout, CONSOLE_BYTES)

    def end(self) -> str:
        """Terminate the command, and return the last MiB without control characters."""
        assert self._process.stdin
        self._process.stdin.close()
        _end(self._process)
        return self._output.text(_GRACE_SECONDS)


def _start(command: str, stdin: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["sh", "-c", command],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and what it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
