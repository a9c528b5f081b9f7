# SPDX-License-Identifier: GPL-2.0-only
"""CPU seconds of the emulator in simulations of two revisions, as CSV.

fscale simulate --fs tmpfs,ext4 --cores 1,16,80 --output results/new
.venv/bin/python -m tests.validation.cputime --base results/base --new results/new

A row per point that both sides have, with the seconds of set-up without clocks (`fast`; in the
first point of a guest this contains its boot), of the workload's set-up and end (`ordered`), of the
warm-up and of the windows, and the number of windows; then rows of sums by core count.
"""

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from fscale.analysis.reader import load
from fscale.model.simulation import Simulation

PARTS = ("fast", "ordered", "warm_up", "windows")
HEAD = ("workload", "filesystem", "cores", *(f"{s}_{p}" for s in ("base", "new") for p in PARTS))
Subject = tuple[str, str, int]


def parts(simulated: Simulation) -> list[float]:
    """The seconds of each part."""
    modes = simulated.cpu_seconds
    windows = sum(window.cpu_seconds for window in simulated.windows)
    warm_up = modes.get("detailed", 0) - windows
    return [modes.get("fast", 0), modes.get("ordered", 0), warm_up, windows]


def seconds(directories: Iterable[Path]) -> dict[Subject, list[float]]:
    """The seconds of the parts of each point."""
    return {
        (cell.key.workload, cell.key.filesystem, cell.key.cores): parts(cell.simulation)
        for directory in directories
        for cell in load(directory).scored
        if cell.simulation is not None
    }


def summed(rows: Sequence[Sequence[float]]) -> list[float]:
    """The sum of each column."""
    return [sum(column) for column in zip(*rows, strict=True)]


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, nargs="+", required=True)
    parser.add_argument("--new", type=Path, nargs="+", required=True)
    given = parser.parse_args()
    base, new = seconds(given.base), seconds(given.new)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(HEAD)
    sums: dict[int, list[list[float]]] = defaultdict(list)
    for subject in sorted(base.keys() & new.keys(), key=lambda s: (s[2], *s)):
        row = [*base[subject], *new[subject]]
        sums[subject[2]].append(row)
        writer.writerow([*subject, *(f"{value:.1f}" for value in row)])
    for cores, rows in sums.items():
        writer.writerow(
            [f"all {len(rows)}", "", cores, *(f"{value:.0f}" for value in summed(rows))]
        )


if __name__ == "__main__":
    main()
