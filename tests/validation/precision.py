# SPDX-License-Identifier: GPL-2.0-only
"""How often windows that end by precision tell the throughput of a long simulation, as CSV.

fscale simulate --fs tmpfs --workload DRBH,MWCM --cores 16 --precision 0.001 --output results/long
.venv/bin/python -m tests.validation.precision results/long

The rule (core/precision.c in the benchmark) is applied to the windows of each cell again and again,
each time from the window behind the last one that it used. An estimate covers the truth, which is
the throughput of all windows of the cell, if it lies in the estimate's band: the wider one of the
half-width and the precision. `narrow` counts those for which the half-width alone suffices.
"""

import argparse
import csv
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from fscale.analysis.reader import load
from fscale.model.simulation import SimulatedWindow
from fscale.sim.precision import half_width, throughput

LOOKS = (8, 12, 16, 24, 32, 48, 64, 96)
HEAD = (
    *("workload", "filesystem", "cores", "precision", "estimates", "covered", "narrow"),
    *("largest_error", "median_windows"),
)


def estimates(
    windows: Sequence[SimulatedWindow], precision: float
) -> Iterator[tuple[float, float, int]]:
    """The throughput, the half-width and the number of windows of each estimate."""
    begin = 0
    while begin + LOOKS[0] <= len(windows):
        for count in LOOKS:
            part = windows[begin : begin + count]
            width = half_width(part)
            if len(part) < count or width is None:
                return
            if width <= precision or count == LOOKS[-1]:
                yield throughput(part), width, count
                begin += count
                break


def main() -> None:
    """Print a row per cell and precision."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--precision", type=float, nargs="+", default=[0.05])
    given = parser.parse_args()
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(HEAD)
    for cell in (cell for path in given.results for cell in load(path).scored):
        assert cell.simulation is not None
        truth = throughput(cell.simulation.windows)
        for precision in given.precision:
            found = list(estimates(cell.simulation.windows, precision))
            errors = [(abs(rate / truth - 1), width) for rate, width, _ in found]
            counts = sorted(count for _, _, count in found)
            writer.writerow(
                [
                    *(cell.key.workload, cell.key.filesystem, cell.key.cores, precision),
                    len(found),
                    sum(error <= max(width, precision) for error, width in errors),
                    sum(error <= width for error, width in errors),
                    f"{max((error for error, _ in errors), default=0):.3f}",
                    counts[len(counts) // 2] if counts else "",
                ]
            )


if __name__ == "__main__":
    main()
