# SPDX-License-Identifier: GPL-2.0-only
"""What ends a command politely ends each one as Ctrl-C does."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

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

SAYS = r"""
from fscale import cli

def ends(_words):
    input()
    print("a result", flush=True)
    return 1

cli._ended = ends
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


def test_output_to_a_terminal_that_was_closed_is_dropped() -> None:
    master, theirs = os.openpty()
    # As after `disown`: SIGHUP is ignored, and a write returns EIO.
    argv = ["env", "--ignore-signal=HUP", sys.executable, "-c", SAYS]
    with subprocess.Popen(
        argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=theirs, stderr=theirs, text=True
    ) as command:
        os.close(theirs)
        os.close(master)
        command.communicate("the terminal is gone\n", timeout=30)
    assert command.returncode == Exit.FAILED


@pytest.mark.parametrize(("command", "code"), [("compare", Exit.USAGE), ("bisect", 128)])
@pytest.mark.parametrize(
    ("module", "bug"),
    [("sitecustomize", "import fscale.cli as c; c._ended = None"), ("typer", "raise MemoryError")],
)
def test_a_bug_is_no_verdict(
    command: str, code: int, module: str, bug: str, tmp_path: Path
) -> None:
    """Neither one of a command nor one of a package that it needs."""
    (tmp_path / f"{module}.py").write_text(bug)
    argv = [sys.executable, "-m", "fscale", command]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = subprocess.run(argv, env=env, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert "Traceback" in done.stderr


def test_a_clone_that_is_not_set_up_says_what_there_is(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "fscale").mkdir()
    shutil.copy(ROOT / "bin/fscale", tmp_path / "bin")
    shutil.copytree(ROOT / "fscale/commands", tmp_path / "fscale/commands")

    def told(*words: str) -> tuple[int, str, str]:
        argv = [tmp_path / "bin/fscale", *words]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    code, text, error = told("--help")
    assert (code, error) == (Exit.GOOD, "")
    assert "\n  compare    is NEW slower than BASE?\n" in text
    assert text.endswith(f"not set up yet; type: make -C {tmp_path} setup\n")
    code, text, error = told("run", "quick")
    assert (code, text) == (Exit.USAGE, "")
    assert f"make -C {tmp_path} setup" in error


@pytest.mark.parametrize("name", ["PYTHONPATH", "PYTHONHOME", "PYTHONWARNINGS"])
def test_a_clone_starts_below_the_environment_modules_of_a_cluster(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "typer.py").write_text("raise ImportError('an old typer')\n")
    value = "error" if name == "PYTHONWARNINGS" else str(tmp_path)
    argv = [ROOT / "bin" / "fscale", "--version"]
    done = subprocess.run(argv, env={**os.environ, name: value}, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (Exit.GOOD, b"")
