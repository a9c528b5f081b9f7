# SPDX-License-Identifier: GPL-2.0-only
"""What Slurm and our side of it cost for cells that do nothing.

`python -m tests.cluster --only empty-1000` runs this in the cluster: jobs copy a cell that was made
beforehand, so that neither fscale nor a load runs on the nodes.
"""

import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from fscale.farm import jobs
from fscale.farm.objects import Objects
from fscale.farm.results import save_answer
from fscale.farm.slurm import Slurm
from fscale.model.store import Store
from tests.cluster.slurm import call
from tests.support.farm import cell, content, keys, task


class Empty(Slurm):
    """The engine, with a job that copies a cell."""

    def _script(self) -> Path:
        script = self._spool / "job.sh"
        script.write_text('#!/bin/sh\nexec cp -r "made/$SLURM_ARRAY_TASK_ID" "$1/"\n')
        return script


def main(count: int) -> None:
    """Submit, run and collect `count` cells; print a line of JSON."""
    with tempfile.TemporaryDirectory(dir="/root") as named:
        os.chdir(named)
        every = keys(count)
        for index, key in enumerate(every):
            place = Path("made", str(index), "cells")
            place.mkdir(parents=True)
            (place / f"{key.id}.json").write_bytes(content(cell(key)))
        tasks = [task(key, kind="run") for key in every]
        spool = Path(named, "spool")
        spool.mkdir()
        engine = Empty(spool, None, jobs.nodes(None), jobs.limits(), print)
        store = Store(Path("results"))
        before, began = _controller(), time.monotonic()
        engine.submit(tasks, Objects())
        submitted = time.monotonic() - began
        kept, polled = 0, 0.0
        for answer in engine.collect():
            now = time.monotonic()
            save_answer(store, answer)
            polled += time.monotonic() - now
            kept += len(answer.cells)
        seconds = time.monotonic() - began
        after = _controller()
        own = resource.getrusage(resource.RUSAGE_SELF)
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert kept == count, kept
        assert len(store.cells()) == count
    print(
        json.dumps(
            {
                "cells": count,
                "submit_s": round(submitted, 2),
                "all_s": round(seconds, 1),
                "keep_s": round(polled, 1),
                "own_cpu_s": round(own.ru_utime + own.ru_stime, 1),
                "commands_cpu_s": round(children.ru_utime + children.ru_stime, 1),
                "own_mib": own.ru_maxrss >> 10,
                "controller_cpu_s": round(after[0] - before[0], 1),
                "controller_mib": [before[1], after[1]],
            }
        )
    )


def _controller() -> tuple[float, int]:
    """CPU seconds and MiB of Slurm's controller."""
    process = Path("/proc") / call("pgrep", "-n", "-x", "slurmctld").strip()
    times = (process / "stat").read_text().rpartition(")")[2].split()
    ticks = os.sysconf("SC_CLK_TCK")
    status = (process / "status").read_text().split()
    return (int(times[11]) + int(times[12])) / ticks, int(status[status.index("VmRSS:") + 1]) >> 10


if __name__ == "__main__":
    main(int(sys.argv[1]))
