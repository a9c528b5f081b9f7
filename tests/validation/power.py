# SPDX-License-Identifier: GPL-2.0-only
"""A slow-down of known size: how often it is found, by change and repetitions.

    .venv/bin/python -m tests.validation.power --output results/validation/power --tries 20

The slow-down is a loop after each operation (delay.py). How many turns it takes for a change is
measured first, at two places, as the first turns cost less than many: one side has `PROBE` turns,
then as many as that makes likely. What the change then is, over all tries, is in the table.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from fscale.analysis.compare.sides import open_sides
from tests.validation.delay import bench
from tests.validation.windows import run, tally

PROBE = 4000
CALIBRATION = 12


def slow_down(output: Path) -> float:
    """The share by which the new side's operations take more CPU time: 0.1 for 10% more."""
    sides = open_sides(output, None)
    seconds = [
        np.median(
            [c.own_cpu_seconds / c.ops for c in cells if c.status == "ok" and c.own_cpu_seconds]
        )
        for cells in (sides.base_cells, sides.new_cells)
    ]
    return float(seconds[1] / seconds[0] - 1)


def turns(fs: str, workload: str, change: float, duration: float, place: Path) -> int:
    """How many turns more an operation take that share of the throughput away.

    Two measurements and the line through them.
    """
    wanted = change / (1 - change)

    def measured(count: int, name: str) -> float:
        base, new = (f"{fs}:binary={bench(n)}" for n in (0, count))
        return slow_down(run(base, new, [workload], CALIBRATION, duration, place / name))

    far = measured(PROBE, "coarse")
    near_count = round(PROBE * wanted / far)
    near = measured(near_count, f"fine-{change:g}")
    return round(near_count + (wanted - near) * (PROBE - near_count) / (far - near))


def main() -> None:
    """Calibrate, measure, print the table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--filesystem", default="ext4")
    parser.add_argument("--workloads", default="DRBL,MWCL,MWRL")
    parser.add_argument("--changes", default="0.05,0.1,0.2")
    parser.add_argument("--repetitions", default="6,8,10,14,20")
    parser.add_argument("--tries", type=int, default=20, help="of 10 repetitions")
    parser.add_argument("--duration", type=float, default=1.0)
    given = parser.parse_args()
    sizes = [int(n) for n in given.repetitions.split(",")]
    table = []
    for workload in given.workloads.split(","):
        place = given.output / workload
        for change in map(float, given.changes.split(",")):
            count = turns(given.filesystem, workload, change, given.duration, place)
            base, new = (f"{given.filesystem}:binary={bench(n)}" for n in (0, count))
            repetitions = 10 * given.tries
            output = run(base, new, [workload], repetitions, given.duration, place / f"{change:g}")
            took = slow_down(output)
            for size in sizes:
                for (_, metric), verdicts in sorted(tally(output, size).items()):
                    row = {
                        "filesystem": given.filesystem,
                        "workload": workload,
                        "change": change,
                        "measured": round(took / (1 + took), 4),
                        "turns": count,
                        "repetitions": size,
                        "metric": metric,
                        "tries": verdicts.total(),
                        "found": verdicts["slower"],
                        "same": verdicts["same"],  # right where the change is within the margin
                        "faster": verdicts["faster"],
                    }
                    table.append(row)
                    print(json.dumps(row), flush=True)
    (given.output / "power.json").write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
