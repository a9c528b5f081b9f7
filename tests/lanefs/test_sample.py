# SPDX-License-Identifier: GPL-2.0-only
"""A sample of all that is tested of lanefs in guests, for `make test`: some minutes."""

import subprocess
import sys
import warnings

import pytest

import tests.lanefs.functions  # noqa: F401 - registers the tests
from fscale.model.paths import ROOT
from tests.lanefs.functions import harness
from tests.lanefs.inside import PARTS

pytestmark = pytest.mark.timeout(1800)


def module(*argv: str) -> str:
    """What a command of ours prints, which must end with 0."""
    done = subprocess.run(
        [sys.executable, "-m", *argv],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=3500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


NAMES = sorted(harness.short_names())
# Two guests, so that no CPU is idle. Both of one kernel, which other tests need as well: another
# one costs minutes on a new machine, which has neither it nor what the module is built with.
KERNEL = "bookworm"
HALVES = [
    (["functions", "model", "pressure", "images"], NAMES[::2]),
    (["functions", "full", "names", "recoveries"], NAMES[1::2]),
]


def test_the_halves_are_all_parts() -> None:
    assert {part for parts, _ in HALVES for part in parts} == set(PARTS)


@pytest.mark.parametrize("half", [0, 1])
def test_parts(half: int) -> None:
    parts, functions = HALVES[half]
    said = module(
        *("tests.lanefs", "--kernel", KERNEL, "--portion", "0.2", "--processes", "8"),
        *("--ops", "250", "--images", "3", "--names", "2000", "--points", "2", "--timeout", "1500"),
        # Each vCPU of a guest is a thread that spins while the host runs another test.
        *("--smp", "2"),
        *(word for part in parts for word in ("--part", part)),
        *(word for name in functions for word in ("--test", name)),
    )
    for part in parts:
        assert f"\n{part}: ok" in said
    for fault in said.split(harness.KNOWN_FAULT)[1:]:
        warnings.warn(f"{KERNEL}: {harness.KNOWN_FAULT}{fault.splitlines()[0]}", stacklevel=1)


def test_power_cuts() -> None:
    cut = ("--kernel", KERNEL, "--accel", "tcg", "--workload", "mix", "--points", "6")
    assert "6 crash points" in module("fscale", "vm", "crash", "--fs", "lanefs", *cut)


def test_power_cuts_of_a_log() -> None:
    """With collectors that always work."""
    cut = ("--kernel", KERNEL, "--accel", "tcg", "--workload", "overwrite", "--points", "4")
    always = ("--append", "lanefs.gc_low=100")
    said = module("fscale", "vm", "crash", "--fs", "lanefs_log", *cut, *always)
    assert "4 crash points" in said
