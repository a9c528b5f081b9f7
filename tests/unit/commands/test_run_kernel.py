# SPDX-License-Identifier: GPL-2.0-only
"""A run on another machine that boots a kernel for it."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from fscale.cli import app
from fscale.commands.options import booted
from fscale.farm.bootable import Bootable, Broken
from fscale.farm.controls import Controls
from fscale.model.errors import Exit
from fscale.model.store import Store
from tests.support.kernel_box import Box

WANTED = "6.12.0-mine"


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Box:
    made = Box(tmp_path / "box")

    @contextlib.contextmanager
    def booting(*_: object) -> Iterator[Box]:
        yield made

    monkeypatch.setattr(booted, "booting", booting)
    monkeypatch.setattr("fscale.vm.bootable.bootable", lambda *_: Bootable(WANTED))
    return made


def measure(output: Path, *more: str) -> Result:
    words = ["--kernel", "/linux", "--on", "ssh:box", "--output", str(output), *more]
    return CliRunner().invoke(app, ["run", "quick", *words])


def test_the_kernel_is_booted_once_for_all_cells(tmp_path: Path, box: Box) -> None:
    done = measure(tmp_path / "out", "--reset-command", "r", "--boot-timeout", "60")
    assert done.exit_code == 0, done.output
    assert box.booted == [WANTED]
    assert box.controls == Controls("r", None, 60)
    stored = Store(tmp_path / "out")
    found = stored.load_run()
    assert found
    assert found.machine.kernel == WANTED
    assert len(stored.cells()) == 2


def test_another_kernel_is_not_measured(tmp_path: Path, box: Box) -> None:
    """That of the machine, after a panic; the same command tries again."""
    output = tmp_path / "v6.12"
    box.broken = (1,)
    failed = measure(output)
    assert isinstance(failed.exception, Broken)
    assert failed.exception.code == Exit.FAILED
    assert re.search("runs 6.1.0-own; .*; Kernel panic", str(failed.exception))
    assert f"see {tmp_path.name}/v6.12.log" in str(failed.exception)
    assert box.log in (tmp_path / "v6.12.log").read_text()
    assert not Store(output).cells()
    assert measure(output).exit_code == 0


def test_a_crash_keeps_the_cells_before_it(tmp_path: Path, box: Box) -> None:
    box.crashes = {1}
    failed = measure(tmp_path / "out")
    assert f"{WANTED}: the kernel panicked or hung in a task" in str(failed.exception)
    assert len(Store(tmp_path / "out").cells()) == 1
    assert measure(tmp_path / "out").exit_code == 0
    assert len(Store(tmp_path / "out").cells()) == 2


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--kernel", "6.12"], "--kernel 6.12: another kernel is booted on another machine"),
        (["--kernel", "6.12", "--on", "slurm"], "give --on ssh:HOST"),
        (["--on", "ssh:box", "--boot-timeout", "60"], "give --kernel, or leave them out"),
        (["--kernel", "6.12:module=x.ko", "--on", "ssh:box"], "but no module= of its own"),
        (["--kernel", "6.12:mount=x", "--on", "ssh:box"], "mount"),
    ],
)
@pytest.mark.usefixtures("box")
def test_what_boots_no_kernel_is_refused(tmp_path: Path, words: list[str], reason: str) -> None:
    done = CliRunner().invoke(app, ["run", "quick", *words, "--output", str(tmp_path / "out")])
    assert reason in f"{done.exception}"
    assert not (tmp_path / "out").exists()
