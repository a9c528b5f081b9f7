# SPDX-License-Identifier: GPL-2.0-only
"""Runs a load on CPUs 0 and 1 with a profiler attached, outside of a run."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from fscale.model import paths
from fscale.model.config import FileSystem
from fscale.runner.profilers import Profiler, create
from fscale.runner.profilers.context import Context
from tests.support import synthetic


@contextmanager
def mount_tracefs() -> Iterator[None]:
    """Tracefs is mounted, and unmounted in the end if it was not."""
    mounted = (paths.TRACEFS / "events").is_dir()
    if not mounted:
        subprocess.run(["mount", "-t", "tracefs", "nodev", str(paths.TRACEFS)], check=True)
    yield
    if not mounted:
        subprocess.run(["umount", str(paths.TRACEFS)], check=False)


def run_profiled(
    load: Sequence[str],
    workload: str,
    seconds: float,
    name: str,
    directory: Path,
    fs: FileSystem,
    output: Path,
    cgroup: Path | None = None,
    named: bool = True,
) -> tuple[bytes, Profiler]:
    """The output of a load whose profiler is attached between set-up and window.

    `load` is the beginning of its command line.
    """
    if not {0, 1} <= os.sched_getaffinity(0):
        pytest.skip("needs CPUs 0 and 1")
    profiler = create(name)
    if reason := profiler.unavailable():
        pytest.skip(reason)
    go_r, go_w = os.pipe()
    ready_r, ready_w = os.pipe()
    argv = [*load, "--workload", workload, "--dir", str(directory), "--cpus", "0,1"]
    argv += ["--duration", str(seconds), "--sync-fds", f"{go_r},{ready_w}"]
    key = synthetic.key(
        workload=workload,
        filesystem="tmpfs",
        medium="none",
        cores=2,
        duration=seconds,
        profile=name,
    )
    with subprocess.Popen(argv, pass_fds=(go_r, ready_w), stdout=subprocess.PIPE) as process:
        os.close(ready_w)
        os.close(go_r)
        try:
            assert os.read(ready_r, 6) == b"ready\n"
            pid = process.pid
            context = Context(key, [0, 1], pid, cgroup, directory, None, fs, output, named=named)
            profiler.start(context)
            os.write(go_w, b"g")
            out, _ = process.communicate(timeout=120)
        finally:
            os.close(go_w)
            os.close(ready_r)
            process.kill()
        profiler.stop()
    return out, profiler
