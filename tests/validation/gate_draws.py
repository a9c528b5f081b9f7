# SPDX-License-Identifier: GPL-2.0-only
"""A against A by random draws: boots of one point judged against other boots of it, many times.

.venv/bin/python -m tests.validation.gate_draws results/validation/gate-aa/tmpfs --boots 3

The results are those of `tests.validation.gate_alarms`. Draws share boots, so they are not
independent; they show which rare placement of memory the gate would take for a change.
"""

import argparse
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from fscale.analysis.compare.counted import judge
from fscale.analysis.compare.model import Judgement
from fscale.analysis.reader import load
from fscale.model.results import Cell


def draws(
    cells: Iterable[Cell], boots: int, number: int, chance: random.Random
) -> Iterator[Judgement]:
    """The judgements of so many draws for each point."""
    points: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        points[cell.key.point].append(cell)
    for found in points.values():
        for _ in range(number):
            drawn = chance.sample(found, 2 * boots)
            yield from judge(drawn[:boots], drawn[boots:])


def main() -> None:
    """Judge and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--boots", type=int, default=3, help="boots of a side")
    parser.add_argument("--draws", type=int, default=100, help="draws for each point")
    given = parser.parse_args()
    chance = random.Random(1)
    verdicts: Counter[str] = Counter()
    for path in given.results:
        for judgement in draws(load(path).cells, given.boots, given.draws, chance):
            verdicts[judgement.verdict] += 1
            if judgement.worse:
                print(f"{judgement.subject.name}: {judgement.reason}", flush=True)
    print(f"{verdicts.total()} counts: {dict(verdicts)}")


if __name__ == "__main__":
    main()
