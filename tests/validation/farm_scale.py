# SPDX-License-Identifier: GPL-2.0-only
"""Measures what cells cost that take no time: makes, submits, schedules, collects and stores them.

A real scheduler of Dask and two workers, with TLS, each a process; one cell is one task. Prints for
each number of cells the CPU seconds and the memory of client and scheduler, and what follows for
more cells, in rows without a time.

    .venv/bin/python -m tests.validation.farm_scale --cells 1000,3000,10000 --output scale.csv

CPU seconds hardly depend on what else the machine does; wall seconds do.
"""

import argparse
import csv
import os
import resource
import tempfile
import time
from pathlib import Path

from distributed.security import Security
from psutil import Process

from fscale.farm import dask
from fscale.farm.answer import Header, pack
from fscale.farm.objects import Objects
from fscale.farm.results import save_answer
from fscale.farm.task import Task
from fscale.model.store import Store
from tests.support import farm as farm_support
from tests.support.farm_cluster import Cluster, certificate, until

# A simulated cell's task: the record of the run and the parameters of the guest.
WORK_BYTES = 16 << 10
COLUMNS = (
    *("cells", "wall_seconds", "cells_per_wall_second", "making_cpu_ms", "client_cpu_ms"),
    *("scheduler_cpu_ms", "worker_cpu_ms", "client_mib", "scheduler_mib"),
)


def empty(wire: bytes) -> bytes:
    """What a worker runs: it makes the cells of a task, and measures nothing."""
    asked = Task.model_validate_json(wire)
    cells = {
        f"cells/{key.id}.json": farm_support.content(farm_support.cell(key)) for key in asked.keys
    }
    return pack(Header(task=asked.id, host=os.uname().nodename, code=0), cells)


def cpu(process: Process) -> float:
    """CPU seconds of a process and those of its children that run."""
    times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def own_cpu() -> float:
    """CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measured(cells: int, directory: Path) -> dict[str, float]:
    """A row: one run of so many cells, each a task, on a cluster of its own."""
    directory.mkdir()
    pem = certificate(directory)
    security = Security(
        tls_ca_file=f"{pem}.cert",
        tls_client_cert=str(pem),
        tls_client_key=str(pem),
        require_encryption=True,
    )
    with Cluster(directory, pem) as cluster:
        for name in ("one", "two"):
            cluster.start_worker(name)
        with dask.Dask(cluster.address, security, print, empty) as engine:
            until(lambda: engine._look() and engine.slots == 2, "both workers are there")
            scheduler = Process(cluster.running["scheduler"].pid)
            workers = [Process(cluster.running[name].pid) for name in ("one", "two")]
            began, before = time.monotonic(), (own_cpu(), cpu(scheduler), sum(map(cpu, workers)))
            work = {"filler": "x" * WORK_BYTES}  # shared, as a sweep's tasks share theirs
            tasks = [farm_support.task(key, work=work) for key in farm_support.keys(cells)]
            made = own_cpu()
            store = Store(directory / "results")
            engine.submit(tasks, Objects())
            found = 0
            for answer in engine.collect():
                save_answer(store, answer)
                found += len(answer.cells)
            seconds = time.monotonic() - began
            after = own_cpu(), cpu(scheduler), sum(map(cpu, workers))
            memory = scheduler.memory_info().rss
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if found != cells or len(list((store.directory / "cells").iterdir())) != cells:
        raise RuntimeError(f"{cells} cells were submitted, {found} returned")
    client, planned, work = (b - a for a, b in zip(before, after, strict=True))
    making = made - before[0]
    return {
        "cells": cells,
        "wall_seconds": round(seconds, 1),
        "cells_per_wall_second": round(cells / seconds, 1),
        "making_cpu_ms": round(1e3 * making / cells, 2),
        "client_cpu_ms": round(1e3 * (client - making) / cells, 2),
        "scheduler_cpu_ms": round(1e3 * planned / cells, 2),
        "worker_cpu_ms": round(1e3 * work / cells, 2),
        "client_mib": peak >> 10,
        "scheduler_mib": memory >> 20,
    }


def calculated(rows: list[dict[str, float]], cells: int) -> dict[str, float]:
    """A row that continues the two largest measured ones; without a time, which nobody measured."""
    before, last = rows[-2:]
    row = {"cells": cells, **{name: last[name] for name in COLUMNS if name.endswith("_ms")}}
    for name in ("client_mib", "scheduler_mib"):
        each = (last[name] - before[name]) / (last["cells"] - before["cells"])
        row[name] = round(last[name] + each * (cells - last["cells"]))
    return row


def main() -> None:
    """Measure each number of cells in ascending order, because the memory is the peak so far."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", default="1000,3000,10000")
    parser.add_argument("--output", type=Path, required=True)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, asked.output.open("w") as file:
        rows = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        rows.writeheader()
        found: list[dict[str, float]] = []
        for cells in sorted(int(text) for text in asked.cells.split(",")):
            row = measured(cells, Path(scratch, str(cells)))
            found.append(row)
            rows.writerow(row)
            file.flush()
            print(row, flush=True)
        for cells in (100_000, 1_000_000):
            rows.writerow(calculated(found, cells))


if __name__ == "__main__":
    main()
