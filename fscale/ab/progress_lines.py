# SPDX-License-Identifier: GPL-2.0-only
"""Shows the progress of a comparison in guests: a line for each point after each round."""

import time
from collections import defaultdict
from collections.abc import Collection, Sequence
from math import exp

from fscale.ab.loop import Progress
from fscale.ab.point import SIDES, PairedPoint
from fscale.analysis.compare.model import Judgement
from fscale.analysis.compare.pairs import JUDGED
from fscale.analysis.compare.sliced import ratios_of
from fscale.analysis.compare.wording import change, interval, subject_text
from fscale.analysis.metrics import COUNT, METRICS, VALUES
from fscale.model.results import Cell
from fscale.runner.progress import duration
from fscale.vm.steps import Steps


class ProgressLines:
    """See fscale.ab.loop.Watcher."""

    def __init__(self, steps: Steps, metrics: Collection[str] = METRICS) -> None:
        self._steps = steps
        self._metrics = metrics
        self._began = time.monotonic()
        self._rounds = 0

    def measured(self, progress: Progress, batch: Sequence[PairedPoint], left: float) -> None:
        """Print the changes seen in a round, before anything is judged."""
        for point in batch:
            cells: dict[str, list[Cell]] = defaultdict(list)
            for cell in progress.cells[-2 * point.step * len(batch) :]:
                if cell.key.side and cell.key.point == point.key(cell.key.side, 1).point:
                    cells[cell.key.side].append(cell)
            shown = _changes([cells[side] for side in SIDES], self._metrics)
            key = point.base
            self._steps.note(f"    {key.load}, {key.cores} cores: {shown or 'no ratio'}")
        self._steps.note(f"    {duration(max(0.0, left))} left")
        self._rounds += 1
        if self._rounds == 1 and batch:
            self._tell_shortage(progress, batch[0], left)

    def _tell_shortage(self, progress: Progress, point: PairedPoint, left: float) -> None:
        looks = progress.looks.pairs if point.slicing else progress.looks.whole
        took = time.monotonic() - self._began
        if looks and took * looks[0] / point.step > took + left:
            unit = "pairs" if point.slicing else "boots of each side"
            self._steps.note(
                f"a round takes {took:.0f} s and the first verdict needs {looks[0]} {unit}, so "
                f"{(took + left) / 60:.3g} minutes are too few: give more --max-minutes"
            )

    def looked(self, progress: Progress, judgements: Sequence[Judgement], left: float) -> None:
        """Print the verdicts."""
        del progress, left
        for one in judgements:
            self._steps.note(
                f"{subject_text(one)}: {one.metric.removeprefix(COUNT)} {change(one.ratio)} "
                f"{interval(one)}: {one.verdict}"
            )


def _changes(sides: Sequence[Sequence[Cell]], metrics: Collection[str]) -> str:
    """The change of each metric, or count, from BASE to NEW in these cells."""
    if not all(sides):
        return ""
    shown = []
    base, new = sides
    if base[-1].slices or base[-1].counts:
        for metric in JUDGED:
            ratio = ratios_of({1: base[-1]}, {1: new[-1]}, metric).get(1)
            if ratio:
                shown.append(f"{metric.removeprefix(COUNT)} {change(exp(ratio.log))}")
        return ", ".join(shown)
    for metric, value in VALUES.items():
        values = [[v for c in side if c.status == "ok" and (v := value(c))] for side in sides]
        if metric in metrics and all(values):
            means = [sum(side) / len(side) for side in values]
            shown.append(f"{metric} {change(means[1] / means[0])}")
    return ", ".join(shown)
