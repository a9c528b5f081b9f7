# SPDX-License-Identifier: GPL-2.0-only
"""The look of a report's curves: what colour, marker and dashes stand for."""

from collections.abc import Collection, Mapping, Sequence

from fscale.analysis.curves import series
from fscale.analysis.style import INK, MARKERS, RUN_DASHES, LineStyle, lines

Series = tuple[str, str | None]  # file system and run


def by_run(measured: Collection[Series]) -> bool:
    """Whether colours stand for runs, which is so if no run has more than one file system."""
    runs = [run for _, run in measured]
    return len(set(runs)) == len(measured)


def looks(
    wanted: Mapping[str, str | None], runs: Sequence[str | None], measured: Collection[Series]
) -> dict[str, LineStyle]:
    """The look of each series that was measured (`fscale.analysis.curves.series`).

    One run: a colour and a marker for each file system; `wanted` has their configured colours.
    Several runs: the colour stands for the file system, marker and dashes for the run. If no run
    has more than one file system, all three stand for the run.
    """
    colours = lines(wanted)
    if list(runs) == [None]:
        return colours
    if by_run(measured):
        run_lines = lines({str(run): None for run in runs})
        return {series(name, run): run_lines[str(run)] for name, run in measured}
    marks = {run: run_mark(i) for i, run in enumerate(runs)}
    return {
        series(name, run): LineStyle(colours[name].colour, marks[run].marker, marks[run].dashes)
        for name, run in measured
    }


def run_mark(number: int) -> LineStyle:
    """Marker and dashes of a run in the text colour, for a legend."""
    return LineStyle(
        INK.light, MARKERS[number % len(MARKERS)], RUN_DASHES[number % len(RUN_DASHES)]
    )
