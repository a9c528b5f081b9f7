# SPDX-License-Identifier: GPL-2.0-only
"""tests/support/stalls.py: what failed beside a gap is tried again, and all CPUs stay online."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fscale.model import paths

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs a real-time priority"),
]
# The machine stands still where a process that nobody may interrupt keeps a CPU.
STILL = """
import os, time
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
end = time.monotonic() + 0.3
while time.monotonic() < end:
    pass
"""
TESTS = f"""
import pathlib, subprocess, sys
import pytest

STILL = {STILL!r}


def count(name):
    path = pathlib.Path(__file__).with_name(name)
    path.write_text(str(int(path.read_text()) + 1 if path.exists() else 1))
    return int(path.read_text())


@pytest.mark.live
def test_stalled_once(tmp_path):
    (tmp_path / "new").mkdir()
    if count("once") == 1:
        subprocess.run([sys.executable, "-c", STILL], check=True)
        assert False


@pytest.mark.live
def test_stalls_always():
    count("always")
    subprocess.run([sys.executable, "-c", STILL], check=True)
    assert False


@pytest.mark.live
def test_failed_without():
    count("without")
    assert False


def test_not_live():
    count("unit")
    subprocess.run([sys.executable, "-c", STILL], check=True)
    assert False
"""


TAKEN = """
import pathlib, time
import pytest


def test_takes_a_cpu_offline():
    online = pathlib.Path("/sys/devices/system/cpu/cpu1/online")
    online.write_text("0")
    online.write_text("1")
    time.sleep(1)  # its watcher wakes up
"""


def run(directory: Path, tests: str, *more: str) -> subprocess.CompletedProcess[str]:
    (directory / "test_it.py").write_text(tests)
    (directory / "pytest.ini").write_text("[pytest]\nmarkers = live\n")
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.support.stalls",
        "-p",
        "no:cacheprovider",
        "-q",
    ]
    return subprocess.run(
        [*argv, "test_it.py", *more], cwd=directory, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(paths.ROOT)},
    )  # fmt: skip


def test_what_failed_beside_a_gap_is_tried_again(tmp_path: Path) -> None:
    done = run(tmp_path, TESTS)
    assert "3 failed, 1 passed" in done.stdout, done.stdout
    tries = {n: int((tmp_path / n).read_text()) for n in ("once", "always", "without", "unit")}
    # A machine that stands still by itself just now may give one more try.
    assert tries.pop("without") <= 3
    assert tries == {"once": 2, "always": 3, "unit": 1}
    assert "test_stalled_once: the machine stood still for 0." in done.stdout


@pytest.mark.parametrize(("workers", "code"), [([], 0), (["--numprocesses", "1"], 1)])
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs a CPU that can go offline")
def test_no_test_takes_a_cpu_from_others(
    workers: list[str], code: int, unchanged: None, tmp_path: Path
) -> None:
    done = run(tmp_path, TAKEN, *workers)
    assert "1 passed" in done.stdout, done.stdout
    assert done.returncode == code, done.stdout
    assert ("CPUs went offline" in done.stdout) == bool(code)
