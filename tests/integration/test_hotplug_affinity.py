# SPDX-License-Identifier: GPL-2.0-only
"""A daemon and an interrupt that are bound to a CPU are bound to it after a run, or its loss."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fscale.model.errors import Exit
from fscale.system.powers import CPUS
from tests.support.runner import command, environment, fake_bench, fscale, suite

CPU = 1
WAKES = "import time\nwhile True: time.sleep(0.02)"  # who sleeps keeps its CPUs
pytestmark = [pytest.mark.root, pytest.mark.usefixtures("machine")]


@contextlib.contextmanager
def bound() -> Iterator[tuple[int, Path]]:
    """A process and the first interrupt that may be bound, both bound to the CPU."""
    argv = ["taskset", "--cpu-list", str(CPU), sys.executable, "-c", WAKES]
    daemon = subprocess.Popen(argv)
    for file in sorted(Path("/proc/irq").glob("[0-9]*/smp_affinity_list"), reverse=True):
        before = file.read_text()
        with contextlib.suppress(OSError):
            file.write_text(str(CPU))
            break
    else:
        pytest.skip("no interrupt can be bound here")
    try:
        time.sleep(0.5)
        yield daemon.pid, file
    finally:
        file.write_text(before)
        daemon.kill()
        daemon.wait()


def cpus(daemon: int, interrupt: Path) -> tuple[set[int], str]:
    return os.sched_getaffinity(daemon), interrupt.read_text().strip()


def test_bindings_are_as_before_a_run(tmp_path: Path) -> None:
    path = suite(tmp_path, filesystems=["tmpfs"], workloads=["MWCL"], cores=[1, 2])
    argv = ["--output", tmp_path / "out", "--binary", fake_bench(tmp_path)]
    with bound() as both:
        done = fscale("run", path, *argv)
        assert done.returncode == Exit.GOOD, done.stderr
        assert cpus(*both) == ({CPU}, str(CPU))


def test_bindings_are_as_before_a_killed_run(tmp_path: Path) -> None:
    path = suite(tmp_path, filesystems=["tmpfs"], workloads=["MWCL"], cores=[1], repetitions=200)
    argv = command("run", path, "--output", tmp_path / "out", "--binary", fake_bench(tmp_path))
    online = CPUS / f"cpu{CPU}" / "online"
    with bound() as both:
        child = subprocess.Popen(argv, env=environment(), stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        # Before the first cell the CPU is tried, and is online again for a moment.
        while not any((tmp_path / "out/cells").glob("*.json")) and time.monotonic() < deadline:
            time.sleep(0.05)
        child.kill()
        child.wait()
        assert online.read_text().strip() == "0"
        assert CPU not in cpus(*both)[0]
        done = fscale("restore")
        assert done.returncode == Exit.GOOD, done.stderr
        assert cpus(*both) == ({CPU}, str(CPU))
