# SPDX-License-Identifier: GPL-2.0-only
"""Which cells are marked as disturbed: beside nothing, and beside a neighbour of a known share.

    .venv/bin/python -m tests.validation.disturbed --output results/validation/disturbed

On a machine that has nothing else to do, as root. Says for each share and core count how many
cells are marked, what `others_cpus` says, and what a cell's rate is over that beside nothing. A
mark is due from the bound on (fscale/runner/cell/accounting.py). Exits 1 where more than one cell
in fifty is marked beside nothing, or fewer than 19 of 20 beside twice the bound and more.
"""

import argparse
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

from fscale.model.paths import ROOT
from fscale.model.results import Cell
from fscale.model.store import Store
from fscale.runner.cell.accounting import SHARE
from tests.validation.neighbour import sharing

SHARES = (0.0, 0.01, 0.03, 0.05, 0.1, 0.3)
Point = tuple[str, str, int]


def measure(share: float, output: Path, given: argparse.Namespace) -> list[Cell]:
    """One run beside a neighbour."""
    argv = [sys.executable, "-m", "fscale", "run", "quick", "--fs", given.filesystems]
    argv += ["--workload", given.workloads, "--repetitions", str(given.repetitions)]
    argv += [
        "--cores",
        given.cores,
        "--duration",
        str(given.duration),
        "--output",
        str(output.resolve()),
    ]
    with sharing(share):
        done = subprocess.run(argv, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"fscale run ended with {done.returncode}")
    return [cell for cell in Store(output).cells() if cell.status == "ok"]


def point(cell: Cell) -> Point:
    """What rates are compared within."""
    return cell.key.workload, cell.key.filesystem, cell.key.cores


def main() -> int:
    """Measure in rounds of all shares, so that what drifts does so for all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--filesystems", default="tmpfs,ext4")
    parser.add_argument("--workloads", default="DRBL,MWCL,DWSL,DWOL")
    parser.add_argument("--cores", default="1,2")
    parser.add_argument("--duration", type=float, default=0.5)
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    cells: dict[float, list[Cell]] = defaultdict(list)
    for number in range(given.rounds):
        for share in SHARES:
            cells[share] += measure(share, given.output / f"{number}-{share}", given)
    rates: dict[Point, list[float]] = defaultdict(list)
    for cell in cells[0.0]:
        rates[point(cell)].append(cell.ops_per_second)
    failed = False
    print("share cores marked  n  others_cpus (5%, median, 95%)  rate")
    for share, own in cells.items():
        for cores in sorted({cell.key.cores for cell in own}):
            these = [cell for cell in own if cell.key.cores == cores]
            marked = sum(cell.disturbed is not None for cell in these)
            taken = sorted(float(cell.extra["others_cpus"]) for cell in these)
            low, high = taken[len(taken) // 20], taken[-1 - len(taken) // 20]
            rate = median(cell.ops_per_second / median(rates[point(cell)]) for cell in these)
            print(
                f"{share:5.2f} {cores:5} {marked:6} {len(these):3}  "
                f"{low:.3f} {median(taken):.3f} {high:.3f}  {rate:.3f}"
            )
            if share >= 2 * SHARE * cores:
                failed |= marked < 0.95 * len(these)
            elif not share:
                failed |= marked > 0.02 * len(these)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
