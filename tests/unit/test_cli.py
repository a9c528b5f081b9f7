# SPDX-License-Identifier: GPL-2.0-only
"""What ends a command politely ends each one as Ctrl-C does."""

import signal
import subprocess
import sys

import pytest

from fscale.model.errors import Exit
from fscale.model.paths import ROOT

WAITS = r"""
import os, time
from fscale import cli

def wait(_words):
    try:
        os.write(1, b"began\n")
        time.sleep(60)
    finally:
        print("put back", flush=True)

cli._ended = wait
cli.main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_ended_puts_back_what_it_changed(number: signal.Signals) -> None:
    # A background job of a script has SIGINT ignored, and so have its children.
    argv = ["env", "--default-signal", sys.executable, "-c", WAITS]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        assert command.stdout.readline() == "began\n"
        command.send_signal(number)
        rest, _ = command.communicate(timeout=30)
    assert (command.returncode, rest) == (Exit.INTERRUPTED, "put back\n")


def test_what_nohup_ignores_stays_ignored() -> None:
    argv = ["nohup", sys.executable, "-c", WAITS.replace("time.sleep(60)", "time.sleep(1)")]
    with subprocess.Popen(
        argv, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as command:
        assert command.stdout is not None
        assert command.stdout.readline() == "began\n"
        command.send_signal(signal.SIGHUP)
        command.communicate(timeout=30)
    assert command.returncode == Exit.GOOD
