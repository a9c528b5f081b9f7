# SPDX-License-Identifier: GPL-2.0-only
"""What pairs in slices find in so many minutes, all points judged together; or false alarms.

    .venv/bin/python -m tests.validation.minutes --output results/validation/minutes --change 0.05
    .venv/bin/python -m tests.validation.minutes --output results/validation/aa-slices --change 0
    .venv/bin/python -m tests.validation.minutes --output results/validation/beside --neighbour 5,10

One long run is cut into comparisons of as many pairs as the minutes are enough for, each judged as
`fscale ab` judges: at its looks, with all points and curves in one family. The slow-down is a loop
after each operation (delay.py), of as many turns for each workload as a measurement in slices
beforehand says that it takes. "any" is what `fscale ab` says of the point: the worst verdict
of its metrics.
"""

import argparse
import json
from collections import Counter
from pathlib import Path

import numpy as np

from fscale.analysis.compare.pairs import match_cells, pair
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.analysis.compare.wording import ORDERS
from fscale.analysis.metrics import THROUGHPUT
from tests.validation.delay import bench, bench_of
from tests.validation.neighbour import neighbour
from tests.validation.windows import run, together

WORKLOADS = "DRBL,DWOL,DWAL,MWCL,MWUL,MRPL"
PROBE = 400
PROBES = 4
CALIBRATION = 4  # pairs
Point = tuple[str, tuple[int, ...]]
"""workload, core counts"""
DURATION = 0.5  # of whole repetitions, which there are none of


def slow_downs(output: Path) -> dict[Point, float]:
    """The share by which an operation of the new side takes longer at each point."""
    sides = open_sides(output, None)
    found: dict[Point, float] = {}
    for test in pair(match_cells(sides.base_cells, sides.new_cells), interleaved=True).tests:
        if test.metric == THROUGHPUT:
            mean = np.mean([ratio.log for ratio in test.ratios.values()])
            found[test.subject.workload, test.subject.cores] = float(np.exp(-mean) - 1)
    return found


def delays(
    fs: str, workloads: list[str], cores: list[int], change: float, place: Path
) -> dict[str, int]:
    """How many turns more an operation take that share of the throughput away.

    A few hide behind what the CPU waits for anyway and many do not, so the probes close in on it.
    """
    wanted = change / (1 - change)
    counts = dict.fromkeys(workloads, PROBE)
    seen = {workload: [(0.0, 0)] for workload in workloads}
    for number in range(PROBES):
        base, new = (f"{fs}:binary={b}" for b in (bench(0), bench_of(counts, f"probe-{number}")))
        output = place / f"probe-{number}"
        run(base, new, workloads, CALIBRATION, DURATION, output, cores=cores, slices=True)
        took = slow_downs(output)
        for workload in workloads:
            mean = float(np.mean([share for (name, _), share in took.items() if name == workload]))
            seen[workload].append((max(mean, 1e-3), counts[workload]))
        counts = {workload: between(seen[workload], wanted) for workload in workloads}
    return counts


def between(seen: list[tuple[float, int]], wanted: float) -> int:
    """The count that would slow down by `wanted`, from pairs of slow-down and count."""
    slow, counts = zip(*sorted(seen), strict=True)
    if wanted > slow[-1]:
        return round(counts[-1] * wanted / slow[-1])
    return round(float(np.interp(wanted, slow, counts)))


def main() -> None:
    """Calibrate, measure, print how often each point was found, and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--filesystem", default="ext4")
    parser.add_argument("--workloads", default=WORKLOADS)
    parser.add_argument("--cores", default="1,2")
    parser.add_argument("--change", type=float, default=0.05, help="of the throughput; 0: A/A")
    parser.add_argument("--minutes", type=float, default=5.0, help="of one comparison")
    parser.add_argument("--margin", type=float, default=Settings().slice_margin)
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument(
        "--neighbour",
        default="0,0",
        help="mean seconds that one works and sleeps; 0,0: none. It is calibrated without one",
    )
    given = parser.parse_args()
    busy, idle = map(float, given.neighbour.split(","))
    workloads = given.workloads.split(",")
    cores = [int(count) for count in given.cores.split(",")]
    fs = given.filesystem
    base = new = f"{fs}:binary={bench(0)}"
    if given.change:
        counts = delays(fs, workloads, cores, given.change, given.output)
        new = f"{fs}:binary={bench_of(counts, f'{fs}-{given.change:g}')}"

    def measured(pairs: int, name: str) -> Path:
        place = given.output / name
        return run(base, new, workloads, pairs, DURATION, place, cores=cores, slices=True)

    cells = open_sides(measured(CALIBRATION, "how-long"), None).base_cells
    a_round = len(workloads) * len(cores) * float(np.mean([c.wall_seconds for c in cells]))
    pairs = max(1, int(60 * given.minutes / a_round))
    with neighbour(busy, idle):
        output = measured(pairs * given.tries, "run")
    found: dict[tuple[str, tuple[int, ...], str], Counter[str]] = {}
    for judgements in together(output, pairs, Settings(slice_margin=given.margin)):
        worst: dict[Point, str] = {}
        for j in judgements:
            place = j.subject.workload, j.subject.cores
            found.setdefault((*place, j.metric), Counter())[j.verdict] += 1
            worst[place] = min(worst.get(place, j.verdict), j.verdict, key=ORDERS["noisy"].index)
        for place, verdict in worst.items():
            found.setdefault((*place, "any"), Counter())[verdict] += 1
    took = slow_downs(output)
    table = []
    for (workload, counted, metric), verdicts in sorted(found.items()):
        if (workload, counted) not in took:  # a curve
            continue
        share = took[workload, counted]
        row = {
            "filesystem": fs,
            "workload": workload,
            "cores": counted,
            "metric": metric,
            "measured": round(share / (1 + share), 4),
            "minutes": given.minutes,
            "pairs": pairs,
            "tries": verdicts.total(),
            **{verdict: verdicts[verdict] for verdict in ("slower", "faster", "same")},
        }
        table.append(row)
        print(json.dumps(row), flush=True)
    (given.output / "minutes.json").write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
