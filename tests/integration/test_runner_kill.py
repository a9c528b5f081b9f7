# SPDX-License-Identifier: GPL-2.0-only
"""kill -9 of the runner at random moments: the machine is put back all the same."""

import os
import random
import subprocess
import time
from pathlib import Path

import pytest

from fscale.model.errors import Exit
from tests.support.runner import (
    command,
    environment,
    fake_bench,
    fscale,
    state,
    suite,
)

# `make kills` tries more.
MOMENTS = int(os.environ.get("FSCALE_KILLS", "6"))


@pytest.mark.root
@pytest.mark.usefixtures("machine")
@pytest.mark.timeout(60 * MOMENTS)
def test_kill_at_random_moments(tmp_path: Path) -> None:
    before = state()
    rng = random.Random()
    seed = rng.getrandbits(32)
    rng.seed(seed)
    bench = fake_bench(tmp_path)
    set_too = "ext4:set=/proc/sys/vm/dirty_writeback_centisecs=731"
    path = suite(tmp_path, filesystems=["tmpfs", set_too], cores="all", repetitions=50)
    dirty, began = 0, time.monotonic()
    for moment in range(MOMENTS):
        output = tmp_path / f"out{moment}"
        argv = command("run", path, "--output", output, "--binary", bench)
        child = subprocess.Popen(argv, env=environment(), stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 30
        while not (output / "run.json").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 1.5))
        child.kill()
        _, err = child.communicate()
        assert child.returncode == -9, err
        dirty += state() != before
        if moment % 2:
            done = fscale("restore")
            assert done.returncode == Exit.GOOD, f"seed {seed}, moment {moment}: {done.stderr}"
        else:
            # The next start puts the machine back before it does its own work.
            one = suite(tmp_path, workloads=["MWCL"], filesystems=["tmpfs"])
            given = ["--output", tmp_path / f"next{moment}", "--binary", bench]
            done = fscale("run", one, *given)
            assert done.returncode == Exit.GOOD, f"seed {seed}, moment {moment}: {done.stderr}"
            path = suite(tmp_path, filesystems=["tmpfs", set_too], cores="all", repetitions=50)
        print(f"moment {moment} at {time.monotonic() - began:.1f} s", flush=True)
        assert state() == before, f"seed {seed}, moment {moment}: {done.stdout}"
        assert not list(tmp_path.glob("*/.scratch*"))
    assert dirty > MOMENTS // 2  # the test did hit runs in the middle
