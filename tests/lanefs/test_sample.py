# SPDX-License-Identifier: GPL-2.0-only
"""A sample of what is tested of lanefs in guests, for `make test`: a minute or two."""

import subprocess
import sys

import pytest

import tests.lanefs.functions  # noqa: F401 - registers the tests
from fscale.model.paths import ROOT
from tests.lanefs.functions import harness

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


# One kernel, which other tests need as well: another one costs minutes on a new machine, which has
# neither it nor what the module is built with.
KERNEL = "bookworm"
# What finds most faults for its time; `make test-guest` has every part and the power cuts, on two
# kernels.
SAMPLE = ("functions", "model", "full")


def test_parts() -> None:
    said = module(
        *("tests.lanefs", "--kernel", KERNEL, "--portion", "0.2", "--processes", "8"),
        *("--ops", "250", "--timeout", "1500"),
        # Each vCPU of a guest is a thread that spins while the host runs another test.
        *("--smp", "2"),
        *(word for part in SAMPLE for word in ("--part", part)),
        *(word for name in sorted(harness.short_names()) for word in ("--test", name)),
    )
    for part in SAMPLE:
        assert f"\n{part}: ok" in said
