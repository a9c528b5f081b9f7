# SPDX-License-Identifier: GPL-2.0-only
"""Simulated curves with two kernel command lines, beside the paper's shapes, as CSV.

fscale simulate --fs tmpfs --cores 1,80 --append '' --output results/with
fscale simulate --fs tmpfs --cores 1,80 --output results/without
.venv/bin/python -m tests.validation.kernel_lines --base results/with --new results/without

A row per workload and file system: the speed-up at the most cores on both sides, the shape that the
paper states, and the shapes of both sides (empty: neither scales nor does not).
"""

import argparse
import csv
import sys
from collections.abc import Iterable
from pathlib import Path

from fscale.analysis.curves import arrange
from fscale.analysis.paper.agreement import Agreement, compare_with_paper
from fscale.analysis.reader import load
from fscale.analysis.summary import summarise

HEAD = ("workload", "filesystem", "cores", "base", "new", "paper", "base_shape", "new_shape")


def agreements(directories: Iterable[Path]) -> dict[tuple[str, str], Agreement]:
    """The curves about which the paper makes a statement, by workload and file system."""
    found = {}
    for directory in directories:
        results = load(directory)
        points = summarise(results.scored)
        for page in arrange(points, list(results.run.filesystems), results.descriptors):
            for one in compare_with_paper(page):
                found[one.panel.workload, one.curve.filesystem] = one
    return found


def main() -> None:
    """Print the rows of the curves that both sides have."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, nargs="+", required=True)
    parser.add_argument("--new", type=Path, nargs="+", required=True)
    given = parser.parse_args()
    base, new = agreements(given.base), agreements(given.new)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(HEAD)
    for workload, filesystem in sorted(base.keys() & new.keys()):
        sides = [side[workload, filesystem] for side in (base, new)]
        writer.writerow(
            [
                *(workload, filesystem, sides[0].ours.cores),
                *(f"{one.ours.speedup.value:.3g}" for one in sides),
                sides[0].paper.shape,
                *(one.ours.shape or "" for one in sides),
            ]
        )


if __name__ == "__main__":
    main()
