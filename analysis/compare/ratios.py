# SPDX-License-Identifier: GPL-2.0-only
"""Data of the ratio plots of a comparison: ratios of pairs and blocks, interval and margin."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fscale.analysis.compare import wording
from fscale.analysis.compare.compare import paired
from fscale.analysis.compare.model import Comparison, Judgement, Subject
from fscale.analysis.compare.observations import Test
from fscale.analysis.compare.pairs import match_cells
from fscale.analysis.compare.ranktest import RankSamples
from fscale.analysis.compare.sides import Sides
from fscale.analysis.metrics import EVERY

MOST_TICKS = 10_000  # most blocks of sliced pairs that a page draws; with more, only the pairs


@dataclass(frozen=True)
class Dot:
    """The ratio NEW over BASE of a pair, or of a block of whole repetitions, with its label."""

    ratio: float
    label: str


@dataclass(frozen=True)
class Ratios:
    """The drawing of a judgement; `ticks` are the ratios of the blocks within sliced pairs."""

    judgement: Judgement
    name: str
    """the cell, without the parts that all cells share"""
    dots: tuple[Dot, ...] = ()
    ticks: tuple[float, ...] = ()

    @property
    def remark(self) -> str:
        """Change and verdict."""
        known = self.judgement.ratio is not None
        parts = [wording.change(self.judgement.ratio)] if known else []
        return " ".join([*parts, self.judgement.verdict])

    @property
    def margins(self) -> tuple[float, float]:
        """The ratios between which NEW counts as the same."""
        return 1 - self.judgement.margin, 1 / (1 - self.judgement.margin)

    @property
    def label(self) -> str:
        """The judgement in a line."""
        judged = self.judgement
        estimate = wording.estimate(judged.ratio, judged.low, judged.high) or "no estimate"
        return f"{wording.subject_text(self.judgement)}: {estimate}, {judged.verdict}"


def ratios(sides: Sides, comparison: Comparison) -> dict[str, list[Ratios]]:
    """Metric -> all cells that have a ratio of any kind, in the order of the judgements."""
    points = match_cells(sides.base_cells, sides.new_cells)
    pairing = paired(sides, points, comparison.settings)
    tests = {(test.subject, test.metric): test for test in pairing.tests}
    blocks = sum(r.blocks for test in tests.values() for r in test.ratios.values())
    names = _names([test.subject for test in pairing.tests])
    by_metric: dict[str, list[Ratios]] = {}
    for judgement in wording.ordered(comparison):
        test = tests.get((judgement.subject, judgement.metric))
        if test is None:  # the judgement is about a curve
            continue
        ticks = _ticks(test) if blocks <= MOST_TICKS else ()
        drawn = Ratios(judgement, names[test.subject], tuple(_dots(test)), ticks)
        if drawn.dots or judgement.ratio is not None:
            by_metric.setdefault(judgement.metric, []).append(drawn)
    return dict(sorted(by_metric.items(), key=lambda item: _rank(item[0])))


def _rank(metric: str) -> tuple[int, str]:
    return [m.partition(":")[0] for m in EVERY].index(metric.partition(":")[0]), metric


def _names(subjects: Sequence[Subject]) -> dict[Subject, str]:
    """Short names, with the medium, mode or duration only if there are several."""
    several = [
        name
        for name in ("medium", "mode", "duration")
        if len({getattr(s, name) for s in subjects}) > 1
    ]
    named = {}
    for subject in subjects:
        parts = [subject.workload, subject.filesystem, *(str(getattr(subject, n)) for n in several)]
        parts += [f"{key}={value}" for key, value in subject.options]
        cores = subject.cores[0]
        named[subject] = f"{' '.join(parts)}, {cores} core{'s' * (cores > 1)}"
    return named


def _ticks(test: Test) -> tuple[float, ...]:
    return tuple(
        float(np.exp(log)) for pair_ratio in test.ratios.values() for log in pair_ratio.logs
    )


def _dots(test: Test) -> Iterator[Dot]:
    if test.ratios:
        for repetition, pair_ratio in sorted(test.ratios.items()):
            ratio = float(np.exp(pair_ratio.log))
            blocks = f", {pair_ratio.blocks} blocks" if pair_ratio.blocks else ""
            yield Dot(ratio, f"pair {repetition}: {wording.change(ratio)}{blocks}")
    elif test.interleaved and test.base.values and test.new.values:
        yield from _whole(test.samples())


def _whole(samples: RankSamples) -> Iterator[Dot]:
    """A block of whole repetitions, A B B A twice: the ratio of its medians."""
    logs = np.log(samples.value)
    for block in np.unique(samples.block):
        in_block = samples.block == block
        new, base = logs[in_block & samples.new], logs[in_block & ~samples.new]
        if new.size and base.size:
            ratio = float(np.exp(np.median(new) - np.median(base)))
            text = f"block {block + 1}: {wording.change(ratio)}, {base.size} and {new.size}"
            yield Dot(ratio, f"{text} repetitions")
