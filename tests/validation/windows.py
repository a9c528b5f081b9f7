# SPDX-License-Identifier: GPL-2.0-only
"""Measures one long interleaved run and cuts it into many comparisons of a few repetitions each."""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from fscale.ab.plan import make
from fscale.ab.run import execute
from fscale.analysis.compare.curves import curve_tests
from fscale.analysis.compare.judge import judge
from fscale.analysis.compare.model import Judgement
from fscale.analysis.compare.pairs import match_cells, pair, subject_of
from fscale.analysis.compare.sequential import growing
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.analysis.compare.sliced import FIRST_LOOK
from fscale.apps.adapter import loads
from fscale.model.paths import BENCH
from fscale.model.results import Cell
from fscale.model.variant import parse
from fscale.runner.request import Request
from fscale.runner.session import this_machine_held

FOREVER = 1e7


def arguments(description: str | None, workloads: str, pairs: int) -> argparse.Namespace:
    """What a program that measures one point after another in slices is told, with defaults."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--filesystem", default="ext4")
    parser.add_argument("--workloads", default=workloads)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=pairs)
    return parser.parse_args()


def run(
    base: str,
    new: str,
    workloads: list[str],
    repetitions: int,
    duration: float,
    output: Path,
    *,
    cores: Sequence[int] = (1,),
    slices: bool | None = False,
    settings: Settings | None = None,
    latency: bool = False,
    options: dict[str, dict[str, int]] | None = None,
) -> Path:
    """Measure, or go on measuring, `repetitions` a side; in slices, pairs. Returns `output`."""
    request = Request(
        suite=Path("quick"),
        output=output,
        overrides={
            "workloads": workloads,
            "cores": list(cores),
            "duration": duration,
            "profiles": [],
            "latency": latency,
            "options": options or {},
        },
        seed=1,
        binary=BENCH,
        applications=loads,
    )
    sides = parse(base), parse(new)
    with this_machine_held(FOREVER) as signals:
        plan = make(request, *sides, settings or Settings(), repetitions, slices=slices)
        execute(plan, signals, FOREVER)
    return output


def windows(output: Path, size: int, settings: Settings | None = None) -> Iterator[list[Judgement]]:
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
            own = settings or Settings()
            yield judge(
                pair(match_cells(cut[0], cut[1]), interleaved=True, metrics=own.metrics).tests, own
            )


def together(output: Path, pairs: int, settings: Settings) -> Iterator[list[Judgement]]:
    """All judgements of each window of so many pairs in slices of all points, looks on the way."""
    sides = open_sides(output, None)
    last = min(max(c.key.repetition for c in own) for own in _by_point(sides.base_cells).values())
    for first in range(0, last - pairs + 1, pairs):
        cut = [
            [_renumbered(c, first) for c in cells if first < c.key.repetition <= first + pairs]
            for cells in (sides.base_cells, sides.new_cells)
        ]
        looks = growing(FIRST_LOOK, pairs)
        tests = pair(match_cells(cut[0], cut[1]), interleaved=True, pair_looks=looks).tests
        yield judge([*tests, *curve_tests(tests, settings.margin)], settings)


def _by_point(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell.key.point, []).append(cell)
    return found


def _inside(cell: Cell, workload: str, first: int, size: int) -> bool:
    return cell.key.workload == workload and first < cell.key.repetition <= first + size


def _renumbered(cell: Cell, first: int) -> Cell:
    key = cell.key.model_copy(update={"repetition": cell.key.repetition - first})
    return cell.model_copy(update={"key": key, "id": key.id})


def tally(
    output: Path, size: int, settings: Settings | None = None
) -> dict[tuple[str, str], Counter[str]]:
    """(workload, metric) -> how often each verdict was given; "any" is the worst of the metrics."""
    found: dict[tuple[str, str], Counter[str]] = {}
    for judgements in windows(output, size, settings):
        workload = judgements[0].subject.workload
        for j in judgements:
            found.setdefault((workload, j.metric), Counter())[j.verdict] += 1
        verdicts = {j.verdict for j in judgements}
        worst = next(v for v in ("slower", "faster", "undecided", "same") if v in verdicts)
        found.setdefault((workload, "any"), Counter())[worst] += 1
    return found
