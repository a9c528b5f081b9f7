# SPDX-License-Identifier: GPL-2.0-only
"""Shows the progress of a paired run: the ratios with their intervals, and the time left."""

import sys
import time
from collections.abc import Sequence

from rich.live import Live
from rich.table import Table

from fscale.ab.loop import Progress
from fscale.ab.point import PairedPoint
from fscale.analysis.compare import wording
from fscale.analysis.compare.judge import running
from fscale.analysis.compare.model import Judgement
from fscale.analysis.compare.pairs import match_cells, pair, subject_of
from fscale.analysis.compare.settings import Settings
from fscale.analysis.metrics import VALUES
from fscale.model.results import CellKey
from fscale.model.terminal import terminal
from fscale.runner.progress import duration

PERIOD = 10.0  # seconds between two lines about what is measured


class ProgressTable:
    """Writes to standard error: a live table on a terminal, else a line for each decision.

    Between decisions, which may be minutes apart, a line tells what was measured last.
    """

    def __init__(self, points: Sequence[PairedPoint], settings: Settings) -> None:
        self._points = points
        self._settings = settings
        self._console = terminal(error=True)
        self._metrics = [metric for metric in VALUES if metric in settings.metrics]
        self._open = {point.name for point in points}
        self._pairs: dict[str, int] = {}
        self._estimates: dict[tuple[str, str], str] = {}
        self._verdicts: dict[tuple[str, str], str] = {}
        self._left = ""
        self._told = time.monotonic()
        self._live: Live | None = None

    def __enter__(self) -> "ProgressTable":
        if sys.stderr.isatty():
            # No automatic refresh: its thread would take CPU time from a turn.
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._live:
            self._live.stop()

    def say(self, text: str) -> None:
        """Print a message for the user."""
        self._console.print(text, markup=False, soft_wrap=True)

    def measured(self, progress: Progress, batch: Sequence[PairedPoint], left: float) -> None:
        """See Watcher."""
        (point,) = batch
        name = point.name
        self._pairs[name] = progress.done[name]
        self._left = duration(max(0.0, left))
        if self._live and point.slicing:
            names = [point.key(side, 1).point for side in "AB"]
            sides = [[c for c in progress.cells if c.key.point == one] for one in names]
            looks, settings = progress.looks.pairs, self._settings
            for test in pair(match_cells(*sides), pair_looks=looks, metrics=settings.metrics).tests:
                if e := running(test, settings):
                    estimate = wording.estimate(e.ratio, e.low, e.high)
                    self._estimates[name, test.metric] = estimate
        if not self._live and time.monotonic() - self._told >= PERIOD:
            self._told = time.monotonic()
            unit = "pairs" if point.slicing else "repetitions per side"
            self.say(
                f"{title(point.base)}: {progress.done[name]} {unit}; {self._left} left at most"
            )
        self._refresh()

    def looked(self, progress: Progress, judgements: Sequence[Judgement], left: float) -> None:
        """See Watcher."""
        still = {point.name for point in progress.open}
        names = {subject_of(point.base): point.base for point in self._points}
        for judgement in judgements:
            key = names[judgement.subject]
            if key.point not in self._open:
                continue
            estimate = wording.estimate(judgement.ratio, judgement.low, judgement.high)
            self._estimates[key.point, judgement.metric] = estimate
            if key.point not in still:
                self._verdicts[key.point, judgement.metric] = judgement.verdict
                if not self._live:
                    self.say(f"{title(key)}, {judgement.metric}: {judgement.verdict} {estimate}")
        self._open &= still
        self._left = duration(max(0.0, left))
        if not self._live:
            self.say(f"{len(still)} of {len(self._points)} points are undecided; {self._left} left")
        self._refresh()

    def _refresh(self) -> None:
        if self._live:
            self._live.update(self._table(), refresh=True)

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, title=f"{self._left} left", title_justify="left")
        table.add_column("")
        table.add_column("n", justify="right")
        for metric in self._metrics:
            table.add_column(metric)
        for point in self._points:
            name = point.name
            if name in self._pairs:
                cells = (
                    " ".join(
                        filter(
                            None, [self._estimates.get((name, m)), self._verdicts.get((name, m))]
                        )
                    )
                    for m in self._metrics
                )
                table.add_row(title(point.base), str(self._pairs[name]), *cells)
        return table


def title(key: CellKey) -> str:
    """A short name of a point: workload, options, mode and cores."""
    mode = "" if key.mode == "buffered" else f" {key.mode}"
    return f"{key.load}{mode} x{key.cores}"
