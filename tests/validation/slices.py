# SPDX-License-Identifier: GPL-2.0-only
"""A known change by both ways: each workload against itself with every operation done twice.

    .venv/bin/python -m tests.validation.slices --output results/validation/slices

The doubled side counts half of what it does, so whole repetitions and slices must both show a loss
of 50%. It puts off as much a turn as the other side does, so this says nothing of what becomes of a
change in what is put off (docs/design/slices.md). With `--new` the change is another one: how both
ways judge it, and in how many seconds.
"""

import argparse
import json
from pathlib import Path

from fscale.analysis.compare import wording
from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.model import Judgement
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.analysis.metrics import METRICS
from fscale.model.catalogue import load_suite
from tests.validation.delay import patched
from tests.validation.windows import run

ONCE = "\toutcome = op(w);\t"
TWICE = "\toutcome = op(w) ?: op(w);\t"


def doubled() -> Path:
    """A microbenchmark that does every operation twice and counts it once."""
    return patched("doubled", {ONCE: TWICE}, {})


def judged(output: Path) -> dict[tuple[tuple[int, ...], str], Judgement]:
    """(cores, metric) -> the judgement of the point."""
    judgements = compare(open_sides(output, None), Settings()).judgements
    return {(j.subject.cores, j.metric): j for j in judgements if j.metric in METRICS}


def seconds(output: Path) -> float:
    """What a way of measuring took; the two cells of a pair are measured at the same time."""
    sides = open_sides(output, None)
    cells = [*sides.base_cells, *([] if sides.base_cells[0].slices else sides.new_cells)]
    return sum(cell.wall_seconds for cell in cells)


def main() -> None:
    """Measure both ways, print a line for each point and write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--filesystem", default="ext4")
    parser.add_argument("--new", help="a side of `fscale ab`, in the place of the doubled one")
    parser.add_argument("--workloads")
    parser.add_argument("--cores", default="1")
    parser.add_argument("--repetitions", type=int, default=6, help="and pairs")
    parser.add_argument("--duration", type=float, default=0.5)
    given = parser.parse_args()
    named = given.workloads.split(",") if given.workloads else load_suite(Path("quick")).workloads
    cores = [int(count) for count in given.cores.split(",")]
    new = given.new or f"{given.filesystem}:binary={doubled()}"
    table = []
    for workload in named:
        outputs = [
            run(
                given.filesystem,
                new,
                [workload],
                given.repetitions,
                given.duration,
                given.output / workload / ("sliced" if slices else "whole"),
                cores=cores,
                slices=slices,
            )
            for slices in (False, True)
        ]
        whole, sliced = map(judged, outputs)
        for (counts, metric), truth in sorted(whole.items()):
            seen = sliced[counts, metric]
            said = [wording.estimate(j.ratio, j.low, j.high) for j in (truth, seen)]
            took = [round(seconds(output)) for output in outputs]
            place = f"{workload} x{counts[0]} {metric}"
            print(f"{place}: whole {said[0]} {took[0]} s, sliced {said[1]} {took[1]} s", flush=True)
            table.append(
                {
                    "workload": workload,
                    "cores": counts[0],
                    "metric": metric,
                    "whole": [truth.ratio, truth.low, truth.high],
                    "sliced": [seen.ratio, seen.low, seen.high],
                    "verdicts": [truth.verdict, seen.verdict],
                    "seconds": took,
                }
            )
    (given.output / "slices.json").write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
