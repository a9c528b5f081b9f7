# SPDX-License-Identifier: GPL-2.0-only
"""The tests of file systems, in guests: `make test-guest`. Minutes each."""

import subprocess
import sys
from pathlib import Path

import pytest

from fscale.paths import ROOT

pytestmark = [pytest.mark.guest, pytest.mark.timeout(3600)]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.lanefs", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=3500,
        check=False,
    )


@pytest.mark.parametrize("kernel", ["bookworm", "trixie"])
def test_lanefs(kernel):
    done = run("--kernel", kernel, "--ops", "3000", "--images", "60")
    assert done.returncode == 0, done.stdout + done.stderr
    for part in ("functions", "model", "pressure", "full", "images", "names"):
        assert f"\n{part}: ok" in done.stdout


def test_the_tests_pass_on_ext4():
    done = run("--fs", "ext4", "--part", "model", "--part", "full", "--ops", "1000")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("workload", ["mix", "truncate", "link"])
def test_lanefs_survives_power_cuts(workload):
    argv = ["crash", "--fs", "lanefs", "--kernel", "trixie", "--accel", "tcg"]
    done = subprocess.run(
        [sys.executable, "-m", "fscale", "vm", *argv, "--points", "60", "--workload", workload],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=3500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_suite_runs_on_lanefs_and_checks_it(tmp_path: Path):
    output = tmp_path / "run"
    argv = [sys.executable, "-m", "fscale", "vm", "run", "smoke", "--kernel", "trixie"]
    argv += ["--accel", "tcg", "--smp", "2", "--fs", "lanefs,ext4", "--bench", "MWCL,DWAL"]
    done = subprocess.run(
        [*argv, "--cores", "2", "--output", str(output)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=3500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    cells = list((output / "cells").glob("*lanefs*.json"))
    assert cells and all('"fsck.lanefs"' in cell.read_text() for cell in cells)
