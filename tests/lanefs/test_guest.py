# SPDX-License-Identifier: GPL-2.0-only
"""The tests of file systems, in guests: `make test-guest`. Minutes each."""

from pathlib import Path

import pytest

from tests.lanefs.inside import PARTS
from tests.lanefs.test_sample import module

pytestmark = [pytest.mark.guest, pytest.mark.timeout(3600)]


@pytest.mark.parametrize("kernel", ["bookworm", "trixie", "sid"])
def test_lanefs(kernel):
    said = module(
        "tests.lanefs", "--kernel", kernel, "--ops", "3000", "--images", "60", "--points", "10"
    )
    for part in PARTS:
        assert f"\n{part}: ok" in said


def test_the_tests_pass_on_ext4():
    module("tests.lanefs", "--fs", "ext4", "--part", "model", "--part", "full", "--ops", "1000")


@pytest.mark.parametrize("workload", ["mix", "truncate", "link"])
def test_lanefs_survives_power_cuts(workload):
    argv = ["crash", "--fs", "lanefs", "--kernel", "trixie", "--accel", "tcg"]
    module("fscale", "vm", *argv, "--points", "60", "--workload", workload)


def test_a_log_whose_collectors_always_work_survives_power_cuts():
    cut = ("--kernel", "trixie", "--accel", "tcg", "--workload", "overwrite", "--points", "20")
    always = ("--append", "lanefs.gc_low=100")
    said = module("fscale", "vm", "crash", "--fs", "lanefs_log", *cut, *always)
    assert "20 crash points" in said


def test_a_suite_runs_on_lanefs_and_checks_it(tmp_path: Path):
    output = tmp_path / "run"
    module(
        *("fscale", "vm", "run", "smoke", "--kernel", "trixie", "--accel", "tcg"),
        *("--smp", "2", "--fs", "lanefs,ext4", "--workload", "MWCL,DWAL"),
        *("--cores", "2", "--output", str(output)),
    )
    cells = list((output / "cells").glob("*lanefs*.json"))
    assert cells and all('"fsck.lanefs"' in cell.read_text() for cell in cells)
