# SPDX-License-Identifier: GPL-2.0-only
"""`fscale run --turns` here: what a guest does of a pair in slices, at a terminal's other end."""

import os
import pty
import subprocess
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from fscale.model.paths import BENCH, ROOT
from fscale.model.results import Cell, CellKey
from fscale.runner.cell.turns import Turn

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not BENCH.exists(), reason="the microbenchmark is not built"),
]


class Asked:
    """A run, and the line to it."""

    def __init__(self, output: Path, scratch: Path, workloads: str) -> None:
        ours, theirs = pty.openpty()
        tty.setraw(theirs)
        argv = [
            str(ROOT / "bin" / "fscale"),
            "run",
            "smoke",
            "--dir",
            str(scratch),
            "--wait",
            "200",
        ]
        argv += ["--workload", workloads, "--cores", "1", "--repetitions", "1", "--seed", "1"]
        argv += ["--duration", "2", "--output", str(output)]
        argv += ["--turns", os.ttyname(theirs), "--turn-seconds", "0.05"]
        self.process = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._theirs = theirs
        self.line: IO[bytes] = os.fdopen(ours, "r+b", buffering=0)

    def receive(self) -> str:
        return self.line.readline().decode().rstrip("\n")

    def ask(self, letter: str) -> str:
        self.line.write(letter.encode())
        return self.receive()

    def hang_up(self) -> None:
        os.close(self._theirs)
        self.line.close()


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    (tmp_path / "scratch").mkdir()
    made = Asked(tmp_path / "out", tmp_path / "scratch", "DRBL,MWCL")
    yield made
    made.process.kill()
    made.process.communicate()


def key_of(line: str) -> CellKey:
    word, _, text = line.partition(" ")
    assert word == "cell", line
    return CellKey.model_validate_json(text)


def test_a_run_measures_what_it_is_asked_for(asked: Asked, tmp_path: Path) -> None:
    left_out = key_of(asked.receive())
    key = key_of(asked.ask("s"))
    assert {left_out.workload, key.workload} == {"DRBL", "MWCL"}
    assert asked.ask("g") == "ready"
    turns = [Turn.read(asked.ask("t")) for _ in range(3)]
    assert asked.ask("e") == "over"
    assert asked.receive() == "done"
    said, _ = asked.process.communicate(timeout=30)
    assert asked.process.returncode == 0, said
    (path,) = (tmp_path / "out" / "cells").iterdir()
    cell = Cell.model_validate_json(path.read_text())
    assert (cell.key, cell.status) == (key, "ok")
    assert cell.ops == sum(turn.ops for turn in turns) > 0
    for turn in turns:
        # The first tenth of a turn is not counted.
        assert 0.04 < turn.seconds < 0.1 or turn.seconds == 0


def test_a_run_whose_line_is_cut_is_interrupted(asked: Asked, tmp_path: Path) -> None:
    asked.receive()
    assert asked.ask("g") == "ready"
    asked.ask("t")
    asked.hang_up()
    said, _ = asked.process.communicate(timeout=30)
    assert asked.process.returncode == 3, said
    (path,) = (tmp_path / "out" / "cells").iterdir()
    assert Cell.model_validate_json(path.read_text()).status == "interrupted"
