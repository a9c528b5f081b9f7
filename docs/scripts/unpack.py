# SPDX-License-Identifier: GPL-2.0-only
"""Make results directories of the data in this repository.

    python -m docs.scripts.unpack docs/results/data/sixteen-cores.json results/sixteen-cores

The data are packed cells (docs.scripts.pack), or a comparison of tests/golden/comparisons. The run
lacks what they do not have.
"""

import gzip
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from fscale import __version__
from fscale.model import paths
from fscale.model.results import NO_FILESYSTEM, Cell, CellKey, Cpu, Machine, Run
from fscale.model.store import AB_FILE, RUN_FILE
from fscale.runner.microbench import find

SECONDS = 0.4  # of each cell's window


def unpack(packed: Path, directory: Path) -> Path:
    """Write what a file has packed to a new results directory, and return that directory."""
    content = packed.read_bytes()
    data = json.loads(gzip.decompress(content) if packed.suffix == ".gz" else content)
    (directory / "cells").mkdir(parents=True)
    files = _comparison(data) if "ab" in data else _run(data)
    for name, text in files.items():
        (directory / name).write_text(text)
    return directory


def _comparison(data: dict[str, Any]) -> dict[str, str]:
    files = {RUN_FILE: data["run"], AB_FILE: data["ab"]}
    files |= {f"cells/{cell['id']}.json": cell for cell in data["cells"]}
    return {name: json.dumps(content) for name, content in files.items()}


def _run(data: dict[str, Any]) -> dict[str, str]:
    """A run that has no times, CPU times or commands of its cells."""
    started = f"{data['runs'][0]['started']}:00Z"
    files = {RUN_FILE: _about(data, started).model_dump_json(by_alias=True)}
    repetitions: Counter[tuple[Any, ...]] = Counter()
    for *place, _, rate, disturbed in data["cells"]:
        # Runs that were packed together may each have repetition 1 of a point.
        repetitions[tuple(place)] += 1
        workload, filesystem, medium, cores = place
        key = CellKey(
            workload=workload,
            filesystem=filesystem,
            medium=medium,
            mode="buffered",
            cores=cores,
            repetition=repetitions[tuple(place)],
            duration=SECONDS,
        )
        cell = Cell(
            id=key.id,
            key=key,
            status="ok",
            started=started,
            wall_seconds=None,
            ops=round(rate * SECONDS),
            seconds=SECONDS,
            ops_per_second=rate,
            disturbed="by other processes" if disturbed else None,
        )
        files[f"cells/{key.id}.json"] = cell.model_dump_json(by_alias=True)
    return files


def _about(data: dict[str, Any], started: str) -> Run:
    machine = data["machine"]
    cpus = range(machine["cpus"])
    return Run(
        id=data["title"],
        started=started,
        state="complete",
        fscale_version=__version__,
        revision=None,
        command=[run["command"] for run in data["runs"]],
        seed=0,
        suite={},
        filesystems={
            name: {} for name in sorted({cell[1] for cell in data["cells"]} - {NO_FILESYSTEM})
        },
        media={},
        machine=Machine(
            hostname="not recorded",
            kernel=machine["kernel"],
            kernel_cmdline="",
            architecture="x86_64",
            cpu_model=machine["cpu"],
            memory_bytes=machine["memory_bytes"] or 0,
            topology=[Cpu(cpu=i, core=i, socket=0, node=0) for i in cpus],
            cpu_order=list(cpus),
            governor=None,
            mitigations={},
            virtualization=None,
        ),
        versions={},
        workloads=[one.descriptor.model_dump() for one in find(paths.BENCH)],
        planned_cells=len(data["cells"]),
    )


def main() -> None:
    """Unpack a file to a directory."""
    print(unpack(Path(sys.argv[1]), Path(sys.argv[2])))


if __name__ == "__main__":
    main()
