# SPDX-License-Identifier: GPL-2.0-only
"""Pack results for docs/results/data.

    python -m docs.scripts.pack TITLE results/RUN... > docs/results/data/NAME.json

Several runs of one machine and day make one file. What says who or where the machine is (host
name, command line of the kernel) is left out.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from fscale.analysis import reader
from fscale.model.results import Cell, Run

_PLACE = re.compile(r"--output \S*/")


def packed(title: str, directories: list[Path]) -> dict[str, Any]:
    """The runs as one JSON object.

    Returns:
        `machine`: CPU, count, kernel, bytes of memory; `runs`: command and start of each;
        `cells`: [workload, file system, medium, cores, repetition, operations per second,
        disturbed] of each good cell that is not profiled, controls too.
    """
    results = [reader.load(directory) for directory in directories]
    machine = results[0].run.machine
    return {
        "title": title,
        "machine": {
            "cpu": machine.cpu_model,
            "cpus": len(machine.topology),
            "kernel": machine.kernel.partition("-")[0],
            "memory_bytes": machine.memory_bytes,
        },
        "runs": [command_of(one.run) for one in results],
        "cells": sorted(
            _row(cell)
            for one in results
            for cell in (*one.scored, *one.controls)
            if cell.status == "ok" and cell.ops_per_second
        ),
    }


def command_of(run: Run) -> dict[str, str]:
    """The command that began a run, without the place of its results, and when that was (UTC)."""
    words = run.command[0].partition("__main__.py ")[2] or run.command[0]
    words = _PLACE.sub("--output results/", words)
    return {"command": f"fscale {words.removeprefix('fscale ')}", "started": run.started[:16]}


def _row(cell: Cell) -> list[Any]:
    key = cell.key
    rate = float(f"{cell.ops_per_second:.5g}")
    where = [key.workload, key.filesystem, key.medium, key.cores, key.repetition]
    return [*where, rate, int(bool(cell.disturbed))]


def text(data: dict[str, Any], rows: str) -> str:
    """The object as JSON; what the key `rows` has comes last, an element on each line.

    So differences between two files can be read.
    """
    head = json.dumps({key: value for key, value in data.items() if key != rows}, indent=1)[:-2]
    lines = ",\n".join(json.dumps(row) for row in data[rows])
    return f'{head},\n "{rows}": [\n{lines}\n]}}\n'


def main() -> None:
    """Write to standard output."""
    sys.stdout.write(text(packed(sys.argv[1], [Path(word) for word in sys.argv[2:]]), "cells"))


if __name__ == "__main__":
    main()
