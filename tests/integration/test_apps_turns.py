# SPDX-License-Identifier: GPL-2.0-only
"""Applications in turns: varmail and fileserver work when they are asked, and only then."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from fscale.apps.adapter import LAUNCHER

pytestmark = pytest.mark.live
PROGRAM = "fscale-personality"


class Turns:
    """An application that takes turns in a directory."""

    def __init__(self, workload: str, directory: Path, *more: str, cpus: str = "0") -> None:
        self._directory = directory
        requests, self._ask = os.pipe()
        answers, theirs = os.pipe()
        argv = [*LAUNCHER, "--workload", workload, "--dir", str(directory)]
        argv += ["--cpus", cpus, "--option", "files=50", "--sync-fds", f"{requests},{theirs}"]
        self.process = subprocess.Popen(
            [*argv, "--slice", "0.05", *more],
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=(requests, theirs),
        )
        os.close(requests)
        os.close(theirs)
        self._answers = os.fdopen(answers)

    def ready(self) -> "Turns":
        assert self._answers.readline() == "ready\n"
        return self

    def take(self) -> list[str]:
        os.write(self._ask, b"s")
        return self._answers.readline().split()

    def programs(self) -> list[int]:
        """The C program and its workers."""
        return [int(p.parent.name) for p in Path("/proc").glob("[0-9]*/cmdline") if self._mine(p)]

    def _mine(self, cmdline: Path) -> bool:
        try:
            words = cmdline.read_bytes().split(b"\0")
        except OSError:  # it has ended
            return False
        return Path(words[0].decode()).name == PROGRAM and str(self._directory).encode() in words

    def cpu_ns(self) -> int:
        return sum(
            int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in self.programs()
        )

    def end(self) -> tuple[int, dict[str, Any]]:
        os.close(self._ask)
        text, _ = self.process.communicate(timeout=30)
        return self.process.returncode, json.loads(text)


@pytest.mark.parametrize("workload", ["varmail", "fileserver"])
def test_turns_add_up_to_the_result(workload: str, tmp_path: Path) -> None:
    side = Turns(workload, tmp_path, "--settle", cpus="0,0").ready()
    taken = [side.take() for _ in range(5)]
    code, result = side.end()
    assert (code, result["status"]) == (0, "ok")
    assert result["amount"] == sum(int(turn[0]) for turn in taken) > 0
    assert result["seconds"] == pytest.approx(sum(float(turn[1]) for turn in taken))
    assert result["cpu"] is None
    assert result["own_cpu_seconds"] == pytest.approx(sum(float(turn[2]) for turn in taken))
    for _, seconds, cpu, settled, end in taken:
        # Whole rounds, which may take some more or less than the turn.
        assert 0.02 < float(seconds) < 0.2
        assert 0 < float(cpu) <= 2 * float(seconds)
        assert float(settled) > 0
        assert end == "time"


def test_between_turns_nobody_works(tmp_path: Path) -> None:
    side = Turns("varmail", tmp_path, cpus="0,0").ready()
    assert len(side.programs()) == 3
    for _ in range(2):
        assert float(side.take()[3]) == 0
        time.sleep(0.1)  # the answer comes before they are all asleep
        spent = side.cpu_ns()
        time.sleep(0.3)
        # Looking every 200 us whether it is their turn would take 5 ms.
        assert side.cpu_ns() - spent < 1_000_000
    assert side.end()[0] == 0


def test_a_worker_that_dies_ends_the_turns(tmp_path: Path) -> None:
    side = Turns("varmail", tmp_path).ready()
    side.take()
    os.kill(max(side.programs()), signal.SIGKILL)
    assert side.take() == []
    code, result = side.end()
    assert (code, result["status"]) == (1, "error")
    assert "worker 0" in result["reason"]
    assert "signal 9" in result["reason"]
    assert side.programs() == []


def test_who_takes_no_turn_is_no_success(tmp_path: Path) -> None:
    code, result = Turns("varmail", tmp_path).ready().end()
    assert (code, result["status"]) == (1, "error")
    assert "--slice" in result["reason"]


def test_an_application_that_cannot_take_turns_says_so(tmp_path: Path) -> None:
    code, result = Turns("catd", tmp_path).end()
    assert code == 1
    assert "catd cannot work in turns" in result["reason"]
