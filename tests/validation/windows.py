# SPDX-License-Identifier: GPL-2.0-only
"""Measures one long interleaved run and cuts it into many comparisons of a few repetitions each."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from analysis.compare.compare import open_sides
from analysis.compare.judge import judge
from analysis.compare.pairs import pair, subject_of
from analysis.compare.settings import Judgement, Settings
from fscale.ab.plan import make
from fscale.ab.run import execute
from fscale.ab.side import parse
from fscale.model.paths import BENCH
from fscale.model.results import Cell
from fscale.runner.request import Request

FOREVER = 1e7


def run(
    base: str, new: str, workloads: list[str], repetitions: int, duration: float, output: Path
) -> Path:
    """Measure, or go on measuring, `repetitions` a side on one core; returns `output`."""
    request = Request(
        suite=Path("quick"),
        output=output,
        overrides={
            "workloads": workloads,
            "cores": [1],
            "duration": duration,
            "profiles": [],
        },
        seed=1,
        binary=BENCH,
    )
    execute(make(request, parse(base), parse(new), Settings(), repetitions), FOREVER, wait=FOREVER)
    return output


def windows(output: Path, size: int) -> Iterator[list[Judgement]]:
    """The judgements of each window of `size` repetitions a side and of each of its points."""
    sides = open_sides(output, None)
    last = max(c.key.repetition for c in sides.base_cells)
    subjects = {subject_of(c.key) for c in sides.base_cells}
    for subject in sorted(subjects, key=lambda s: s.name):
        workload = subject.workload
        for first in range(0, last - size + 1, size):
            cut = [
                [_renumbered(c, first) for c in cells if _inside(c, workload, first, size)]
                for cells in (sides.base_cells, sides.new_cells)
            ]
            yield judge(pair(cut[0], cut[1], interleaved=True).tests, Settings())


def _inside(cell: Cell, workload: str, first: int, size: int) -> bool:
    return cell.key.workload == workload and first < cell.key.repetition <= first + size


def _renumbered(cell: Cell, first: int) -> Cell:
    key = cell.key.model_copy(update={"repetition": cell.key.repetition - first})
    return cell.model_copy(update={"key": key, "id": key.id})


def tally(output: Path, size: int) -> dict[tuple[str, str], Counter[str]]:
    """(workload, metric) -> how often each verdict was given; "any" is the worst of the metrics."""
    found: dict[tuple[str, str], Counter[str]] = {}
    for judgements in windows(output, size):
        workload = judgements[0].subject.workload
        for j in judgements:
            found.setdefault((workload, j.metric), Counter())[j.verdict] += 1
        verdicts = {j.verdict for j in judgements}
        worst = next(v for v in ("slower", "faster", "undecided", "same") if v in verdicts)
        found.setdefault((workload, "any"), Counter())[worst] += 1
    return found
