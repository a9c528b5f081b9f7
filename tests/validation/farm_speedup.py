# SPDX-License-Identifier: GPL-2.0-only
"""Holds workers of Dask against as many jobs of one command: the same simulation, in turn.

    .venv/bin/python -m tests.validation.farm_speedup --output results/validation/speedup \\
        -- --fs tmpfs,ext4 --cores 1,2,4,8,16,32,64,80

What stands behind -- are arguments of `fscale simulate`. Scheduler and workers are processes of
this machine, with TLS, and are started before the clock is. Prints for each run its wall seconds,
the CPU seconds of all processes that ended in it and its cells; speedup is the wall seconds of the
jobs over those of the workers. A host that does anything else disturbs both.
"""

import argparse
import csv
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from resource import RUSAGE_CHILDREN

from psutil import Process

from fscale.model import paths
from fscale.model.store import Store
from tests.support.farm_cluster import Cluster, certificate
from tests.validation.farm_scale import cpu, own_cpu

COLUMNS = ("pair", "way", "wall_seconds", "cpu_seconds", "cells", "speedup")
Run = dict[str, float | str]


def simulated(arguments: list[str], output: Path, environment: dict[str, str] | None) -> float:
    """Wall seconds of one simulation, whose output goes to a log beside its results."""
    argv = [sys.executable, "-m", "fscale", "simulate", "--output", str(output), *arguments]
    began = time.monotonic()
    with output.with_suffix(".log").open("wb") as log:
        subprocess.run(argv, check=True, stdout=log, stderr=log, env=environment)
    return time.monotonic() - began


def by_jobs(arguments: list[str], output: Path, count: int) -> Run:
    """One command that runs `count` guests at the same time."""
    before = own_cpu(RUSAGE_CHILDREN)
    seconds = simulated([*arguments, "--jobs", str(count)], output, None)
    used = own_cpu(RUSAGE_CHILDREN) - before
    return {"way": "jobs", "wall_seconds": seconds, "cpu_seconds": used}


def by_workers(arguments: list[str], output: Path, count: int) -> Run:
    """The same on `count` workers."""
    with tempfile.TemporaryDirectory(prefix="fscale-speedup-") as scratch:
        place = Path(scratch)
        with Cluster(place, certificate(place)) as cluster:
            cache = paths.cache_dir("objects").parents[1]  # QEMU and the kernel are there already
            for number in range(count):
                cluster.start_worker(str(number), XDG_CACHE_HOME=str(cache))
            processes = [Process(one.pid) for one in cluster.running.values()]
            before = own_cpu(RUSAGE_CHILDREN) + sum(map(whole, processes))
            on = [*arguments, "--on", f"dask://127.0.0.1:{cluster.port}"]
            seconds = simulated(on, output, cluster.environment())
            used = own_cpu(RUSAGE_CHILDREN) + sum(map(whole, processes)) - before
    return {"way": "workers", "wall_seconds": seconds, "cpu_seconds": used}


def whole(process: Process) -> float:
    """CPU seconds of a process, its children that run, and those that have ended."""
    ended = process.cpu_times()
    return cpu(process) + float(ended.children_user + ended.children_system)


def main() -> None:
    """Print a row for each run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True, help="a new directory")
    parser.add_argument("--pairs", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("arguments", nargs="+")
    given = parser.parse_args()
    given.output.mkdir(parents=True)
    rows = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    rows.writeheader()
    for pair in range(given.pairs):
        seconds: dict[str, float] = {}
        for measure in (by_jobs, by_workers)[:: -1 if pair % 2 else 1]:
            output = given.output / f"{measure.__name__}-{pair}"
            run = measure(given.arguments, output, given.workers)
            seconds[str(run["way"])] = float(run["wall_seconds"])
            run |= {"pair": pair, "cells": len(Store(output).cells())}
            if len(seconds) == 2:
                run["speedup"] = seconds["jobs"] / seconds["workers"]
            rows.writerow({k: round(v, 3) if isinstance(v, float) else v for k, v in run.items()})
            sys.stdout.flush()


if __name__ == "__main__":
    main()
