# SPDX-License-Identifier: GPL-2.0-only
"""A against A: how many of many comparisons by the gate are no `same`. Exits 1 where one is not.

.venv/bin/python -m tests.validation.gate_alarms --output results/validation/gate-aa

A thousand counts (19 workloads, two counts each, 27 comparisons, 162 boots):

.venv/bin/python -m tests.validation.gate_alarms --filesystems tmpfs --rounds 27 --output results/aa

A comparison is one workload on one file system at one core count, three boots (or `--boots`)
against as many others. Each boot puts the heap in another order (docs/design/simulator.md). Every
boot has a seed of its own and is in one comparison of each point, so that those of one point share
nothing; those of different points share boots, as those of one `fscale gate` do.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from fscale.analysis.compare import wording
from fscale.analysis.compare.counted import judge
from fscale.analysis.compare.model import Judgement
from fscale.analysis.reader import load
from fscale.model.results import Cell
from tests.validation import gate
from tests.validation.gate import SEEDS

NEAR = 0.5


def rounds(cells: Sequence[Cell], boots: int, side: int) -> Iterator[list[Judgement]]:
    """Of each so many boots of both sides the odd ones against the even ones."""
    for first in range(1, boots + 1, 2 * side):
        mine = [c for c in cells if first <= c.key.repetition < first + 2 * side]
        yield judge(*([c for c in mine if c.key.repetition % 2 == odd] for odd in (1, 0)))


def nearness(judgement: Judgement) -> float:
    """How much of the bound lies between the nearest boots of the sides; above 1 is a finding."""
    assert judgement.bound is not None
    base, new = judgement.base.values.values(), judgement.new.values.values()
    return max(min(new) - max(base), min(base) - max(new)) / judgement.bound


def main() -> int:
    """Simulate and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--filesystems", default="tmpfs,ext4,xfs,lanefs")
    parser.add_argument("--workloads", help="by default all")
    parser.add_argument("--cores", default="4")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--boots", type=int, default=SEEDS, help="boots of a side")
    parser.add_argument("--jobs", default="1")
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    boots = given.rounds * 2 * given.boots
    points = 0
    verdicts: Counter[str] = Counter()
    layouts = 0
    for fs in given.filesystems.split(","):
        output = given.output / fs
        cores = ("--cores", given.cores)
        good = gate.boots(fs, given.workloads, boots, given.jobs, output, *cores)
        for judged in rounds(load(output).cells, boots, given.boots):
            points += len({j.subject for j in judged})
            verdicts.update(j.verdict for j in judged)
            layouts += sum(j.verdict == "same" and j.sharing is not None for j in judged)
            for j in judged:
                if nearness(j) > NEAR or j.sharing:
                    line = wording.judgement_line(j)
                    print(f"{line}; {nearness(j):.2f} of the bound between the sides", flush=True)
        if not good:
            print(f"{fs}: not all cells are good", flush=True)
    alarms = verdicts.total() - verdicts["same"]
    print(f"{points} comparisons, two counts each: {dict(verdicts)}; {layouts} remarks on a layout")
    return int(alarms > 0)


if __name__ == "__main__":
    sys.exit(main())
