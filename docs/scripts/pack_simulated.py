# SPDX-License-Identifier: GPL-2.0-only
"""Pack simulated curves for docs/results/data.

    python -m docs.scripts.pack_simulated TITLE results/RUN... > docs/results/data/NAME.json

Each run simulates one kernel.
"""

import re
import sys
from pathlib import Path
from typing import Any

from docs.scripts.pack import command_of, text
from fscale.analysis import reader
from fscale.analysis.diagnosis import simulated
from fscale.model.results import Cell, Run

_ADDRESS = re.compile(r"^memory at 0x[0-9a-f]+: | \(of the page at 0x[0-9a-f]+\)$")
LEAST_SHARE = 0.02
"""An object that costs less of the cores' time does not explain a curve."""


def packed(title: str, directories: list[Path]) -> dict[str, Any]:
    """The runs as one JSON object.

    Returns:
        `runs`: command, start, kernel, QEMU, and the simulated machine of each; `points`: [kernel,
        workload, file system, cores, operations per simulated second, object, function, share] of
        each good cell. The object is the one that most of the cores' time is spent on, with the
        function that waits for it most and its share of the time, or null where none has
        LEAST_SHARE.
    """
    results = [reader.load(directory) for directory in directories]
    return {
        "title": title,
        "runs": [_told(one.run) for one in results],
        "points": sorted(
            _point(one.run, cell)
            for one in results
            for cell in one.cells
            if cell.status == "ok" and cell.ops_per_second
        ),
    }


def machine_of(run: Run) -> str:
    """The warning of a simulated run, which describes its machine."""
    (machine,) = (text for text in run.warnings if text.startswith("all figures are simulated"))
    return machine


def _told(run: Run) -> dict[str, str]:
    return {
        **command_of(run),
        "kernel": run.versions["kernel"],
        "qemu": run.versions["qemu"],
        "machine": machine_of(run),
    }


def hottest(cell: Cell) -> list[Any]:
    """The object that most of the cores' time is spent on, a function that waits, the share.

    The object is null where none has LEAST_SHARE.
    """
    found = [
        [_ADDRESS.sub("", one.name.object), function, round(one.share, 3)]
        for one in simulated.triage([cell]).suspects
        if one.share >= LEAST_SHARE
        for (function, *_), _ in one.callers[:1] or [(("",), 0.0)]
    ]
    return found[0] if found else [None, None, 0]


def _point(run: Run, cell: Cell) -> list[Any]:
    key = cell.key
    rate = float(f"{cell.ops_per_second:.5g}")
    kernel = run.versions["kernel"]
    name = " ".join([key.workload, *(f"{option}={value}" for option, value in key.options.items())])
    return [kernel, name, key.filesystem, key.cores, rate, *hottest(cell)]


def main() -> None:
    """Write to standard output."""
    sys.stdout.write(text(packed(sys.argv[1], [Path(word) for word in sys.argv[2:]]), "points"))


if __name__ == "__main__":
    main()
