# SPDX-License-Identifier: GPL-2.0-only
"""When a signal ends a run, and that it never ends halfway through a change of the machine."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fscale.model import paths
from fscale.model.errors import Interrupted
from fscale.runner import session
from fscale.runner.machine.changes import TempDir
from fscale.runner.machine.journal import Journal
from fscale.runner.signals import Signals
from fscale.system.executor import Executor

WAITS = """
import os, time
from fscale.runner.signals import Signals

with Signals().installed() as signals:
    os.write(1, b"began\\n")
    while not signals.stops:
        time.sleep(0.01)
    print("went on", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP])
def test_what_the_caller_ignores_stays_ignored(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with Signals().installed():
            assert signal.getsignal(number) == signal.SIG_IGN
            os.kill(os.getpid(), number)
        assert signal.getsignal(number) == signal.SIG_IGN
    finally:
        signal.signal(number, before)


def test_three_signals_halfway_through_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command of a change would go on after an undo that came too early."""
    done = []

    def apply(setting: TempDir, do: Executor) -> None:
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGTERM)
        do.mkdir(setting.path)
        done.append(setting)

    monkeypatch.setattr(TempDir, "apply", apply)
    signals = Signals()
    journal = Journal(tmp_path / "journal", Executor(), signals.deferred)
    with (
        signals.installed(),
        pytest.raises(Interrupted, match="SIGTERM"),
        journal.change(TempDir(path=tmp_path / "made")),
    ):
        pytest.fail("the change was made, but the signal was lost")
    assert done
    assert not (tmp_path / "made").exists()


def test_a_signal_just_before_the_machine_is_restored(tmp_path: Path) -> None:
    def cut() -> None:
        Journal(tmp_path / "journal", Executor()).apply(TempDir(path=tmp_path / "left"))
        raise Interrupted("stopped by SIGINT")

    with pytest.raises(Interrupted), session.machine_held(tmp_path, print):
        cut()
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_ctrl_z_says_that_the_machine_stays_changed() -> None:
    with subprocess.Popen(
        ["env", "--default-signal", sys.executable, "-c", WAITS],
        cwd=paths.ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "began\n"
        run.send_signal(signal.SIGTSTP)
        deadline = time.monotonic() + 30
        stat = Path(f"/proc/{run.pid}/stat")
        while stat.read_text().split()[2] != "T" and time.monotonic() < deadline:
            time.sleep(0.01)
        assert stat.read_text().split()[2] == "T"
        run.send_signal(signal.SIGCONT)
        out, err = run.communicate(timeout=30)
    assert out == "went on\n"
    assert "the machine stays as this run set it" in err
