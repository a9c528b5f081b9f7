# SPDX-License-Identifier: GPL-2.0-only
"""Real guests on workers of Dask, whose answers are known; a simulation is interrupted, too."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fscale.commute.store import Store as ConflictStore
from fscale.farm.objects import digest_of
from fscale.farm.results import hosts
from fscale.model import paths
from fscale.model.store import Store
from tests.guests import test_simulate_live
from tests.support.farm_cluster import SECONDS, Cluster, certificate, until

pytestmark = test_simulate_live.pytestmark


def command(output: Path, *more: str) -> list[str]:
    argv = [sys.executable, "-m", "fscale", "simulate", "--output", str(output), "--fs", "tmpfs"]
    argv += ["--workload", "DRBL,DRBH", "--cores", "1,4", "--windows", "3", "--memory", "1024"]
    return [*argv, *more]


@contextlib.contextmanager
def simulation(cluster: Cluster, output: Path) -> Iterator["subprocess.Popen[bytes]"]:
    argv = command(output, "--on", f"dask://127.0.0.1:{cluster.port}")
    with (cluster.directory / "simulate.log").open("ab") as log:
        process = subprocess.Popen(argv, env=cluster.environment(), stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_cells_of_two_workers(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    store = Store(tmp_path / "run")
    # The first simulation of a machine compiles programs, and fetches QEMU and a kernel.
    prepare = command(store.directory, "--dry-run")
    subprocess.run(prepare, cwd=paths.ROOT, check=True, capture_output=True)
    with Cluster(tmp_path, certificate(tmp_path)) as cluster:
        # Both are this machine, and use its cache: QEMU is there already.
        cache = paths.cache_dir("objects").parents[1]
        for name in ("one", "two"):
            cluster.start_worker(name, XDG_CACHE_HOME=str(cache))
        with simulation(cluster, store.directory) as first:
            until(lambda: first.poll() is not None or store.cells(), "a first boot has ended")
            first.send_signal(signal.SIGTERM)
            first.wait(SECONDS)
        with simulation(cluster, store.directory) as again:
            assert again.wait(SECONDS) == 0, (tmp_path / "simulate.log").read_text()
    rates = {(c.key.workload, c.key.cores): c.ops_per_second for c in store.cells()}
    assert 3.8 < rates["DRBL", 4] / rates["DRBL", 1] < 4.1
    assert rates["DRBH", 4] / rates["DRBH", 1] < 2.5
    assert hosts(store) == {cell.id: os.uname().nodename for cell in store.cells()}
    run = store.load_run()
    assert run is not None and run.state == "complete"
    plugin = run.versions["fscale-sim"].removeprefix("sha256:")
    assert digest_of(paths.SIMULATOR).startswith(plugin)
    assert run.versions["kernel image"] and run.versions["qemu program"]


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster of one worker, which has this machine's QEMU."""
    pytest.importorskip("distributed")
    with Cluster(tmp_path, certificate(tmp_path)) as cluster:
        cluster.start_worker("one", XDG_CACHE_HOME=str(paths.cache_dir("objects").parents[1]))
        yield cluster


def fscale(cluster: Cluster, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "fscale", *arguments],
        env=cluster.environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip


def on(cluster: Cluster) -> tuple[str, str]:
    return "--on", f"dask://127.0.0.1:{cluster.port}"


@pytest.mark.guest
def test_counts_of_guests_on_a_worker(worker: Cluster, tmp_path: Path) -> None:
    output = tmp_path / "counts"
    sides = ("--base", "ext4:kernel=6.1", "--new", "ext4:kernel=6.1:mount=data=journal")
    of_guests = ("--smp", "1", "--memory", "2G", "--workload", "DWAL", "--cores", "1")
    asked = ("--slices", "--metric", "count", "--repetitions", "4", "--output", str(output))
    done = fscale(worker, "ab", *sides, *of_guests, *asked, *on(worker))
    assert done.returncode == 1, done.stdout + done.stderr  # data are written twice
    counts = {
        side: [c.counts["instructions"] for c in Store(output).cells() if c.key.side == side]
        for side in "AB"
    }
    assert len(counts["A"]) == len(counts["B"]) == 4
    for each in counts.values():
        assert max(each) < 1.02 * min(each)
    assert min(counts["B"]) > 2 * max(counts["A"])
    for boot in (output / "boots").glob("[AB][1-4]"):
        assert list(hosts(Store(boot)).values()) == [os.uname().nodename]


@pytest.mark.guest
def test_crash_points_on_a_worker(worker: Cluster, tmp_path: Path) -> None:
    output = tmp_path / "crash"
    asked = ("--fs", "ext4", "--accel", "tcg", "--points", "60", "--output", str(output))
    good = fscale(worker, "vm", "crash", *asked, *on(worker))
    assert good.returncode == 0, good.stdout + good.stderr
    tested = [
        json.loads((output / part / "crash.json").read_text())["tested"]
        for part in ("part1", "part2", "")
    ]
    assert tested == [30, 30, 60]
    bad = fscale(worker, "vm", "crash", *asked, "--plant", "lost-flush", *on(worker))
    assert bad.returncode == 1, bad.stdout + bad.stderr
    assert json.loads((output / "crash.json").read_text())["failing"] > 0


@pytest.mark.guest
def test_conflicts_on_a_worker_are_those_found_here(worker: Cluster, tmp_path: Path) -> None:
    asked = ("commute", "--calls", "link,unlink", "--each", "3", "--kernel", "6.1")
    found = []
    for name, place in (("here", ()), ("there", on(worker))):
        done = fscale(worker, *asked, "--output", str(tmp_path / name), *place)
        assert done.returncode == 0, done.stdout + done.stderr
        (one,) = ConflictStore(tmp_path / name).load_matrices()
        found.append([(count.calls, count.tests, count.free + count.layout) for count in one.pairs])
    assert f"executed on {os.uname().nodename}" in done.stderr
    assert found[0] == found[1]
