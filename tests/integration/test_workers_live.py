# SPDX-License-Identifier: GPL-2.0-only
"""Workers per CPU and CPUs kept free, as the kernel has them."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fscale.model.perfstat import cpu_list
from fscale.system import powers
from tests.support import bench
from tests.support.runner import fscale

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("machine")]


# One that reads, one that uses up a stock, and one with a writer.
@pytest.mark.parametrize("workload", ["DRBL", "MWUL", "DRBL_bg"])
@pytest.mark.parametrize("kind", ["processes", "threads"])
def test_each_cpu_has_that_many_workers(workload: str, kind: str, fast: Path) -> None:
    use = bench.cpus(2)
    given = ("--workers-per-cpu", "3", "--duration", "0.3", "--option", f"workers={kind}")
    out = bench.run_good(workload, fast / "a", *given, count=2)
    readers = use[:1] if workload.endswith("_bg") else use
    assert Counter(worker.cpu for worker in out.workers) == dict.fromkeys(readers, 3)
    # In turn, so that each CPU has one before one has two.
    assert [worker.cpu for worker in out.workers[: len(readers)]] == readers
    assert [worker.id for worker in out.workers] == list(range(3 * len(readers)))
    assert out.background is None or out.background.cpu == use[1]
    assert out.cpus == use
    assert sum(worker.ops for worker in out.workers) == out.ops
    # They share their CPU instead of having one each.
    busy = sum(worker.user_seconds + worker.system_seconds for worker in out.workers)
    assert busy <= 1.1 * out.seconds * len(readers)
    assert len([worker for worker in out.workers if worker.ops]) > len(readers)


class Runs:
    """Runs of a load that says which CPUs are online while it is measured."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        (directory / "own.toml").write_text(
            'title = "t"\noperation = "o"\n[command]\nops = 1\ncopies = "cores"\n'
            'run = ["sh", "-c", "cat /sys/devices/system/cpu/online; taskset -cp $$; sleep 0.1"]\n'
        )

    def cell(self, *settings: str) -> dict[str, Any]:
        output = self._directory / "-".join(["out", *settings])
        done = fscale(
            *("run", "quick", "--workload", str(self._directory / "own.toml"), "--fs", "tmpfs"),
            *("--cores", "1", "--duration", "0.1", "--repetitions", "1", "--wait", "240"),
            *(f"--set={one}" for one in settings),
            *("--output", str(output)),
        )
        assert done.returncode == 0, done.stderr
        (path,) = (output / "cells").glob("*.json")
        found: dict[str, Any] = json.loads(path.read_text())
        return found


@pytest.mark.root
@pytest.mark.skipif(powers.no_hotplug() is not None, reason="needs CPU hotplug")
@pytest.mark.usefixtures("unchanged")
def test_a_cpu_that_is_kept_free_stays_online(tmp_path: Path) -> None:
    bench.cpus(2)  # while the machine is held: others may take one offline before
    runs, last = Runs(tmp_path), (os.cpu_count() or 1) - 1
    cell = runs.cell("keep_free=1", "workers_per_cpu=2")
    assert cell["cpu_control"] == "hotplug"
    assert last in cpu_list(cell["extra"]["output"].splitlines()[0])
    assert cell["cpus"] == [0]
    assert len(cell["extra"]["copies"]) == 2
    assert cell["extra"]["output"].splitlines()[1].endswith(": 0")
    assert last not in cpu_list(runs.cell()["extra"]["output"].splitlines()[0])
