# SPDX-License-Identifier: GPL-2.0-only
"""A user's type checker knows the public interface where the package is installed."""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from fscale.model.paths import ROOT

LINES = """\
import fscale
run = fscale.load("results/today", labels=["today"])
reveal_type(run.points)
reveal_type(run.curve("MWCM"))
reveal_type(fscale.compare("results/a", "results/b", metrics=["p99"]))
run.pionts
fscale.lod("results/today")
fscale.compare("results/a", metrics=["p98"])
"""
SAID = [
    (3, 'Revealed type is "pandas.core.frame.DataFrame"'),
    (4, 'Revealed type is "matplotlib.axes._axes.Axes"'),
    (5, 'Revealed type is "pandas.core.frame.DataFrame"'),
    (6, '"Runs" has no attribute "pionts"'),
    (7, 'Module has no attribute "lod"'),
    (8, 'incompatible type "Literal['),
]


@pytest.mark.slow
def test_users_lines_are_checked(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", symlinks=True)
    (packages,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (packages / "here.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")
    (tmp_path / "user.py").write_text(LINES)
    checker = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir=cache"]
    checker += ["--python-executable", str(tmp_path / "venv/bin/python"), "user.py"]
    env = {"PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        checker, cwd=tmp_path, capture_output=True, text=True, check=False, env=env
    )
    lines = done.stdout.splitlines()
    for number, text in SAID:
        assert any(f"user.py:{number}: " in line and text in line for line in lines), done.stdout
    assert len([line for line in lines if line.startswith("user.py:") and "error" in line]) == 3
