# SPDX-License-Identifier: GPL-2.0-only
"""How the curves of a report look: what is told by colour, what by marker and dashes."""

from collections.abc import Collection, Mapping, Sequence

from analysis.curves import series
from analysis.style import INK, MARKERS, RUN_DASHES, Line, lines

Series = tuple[str, str | None]  # file system and run


def by_run(measured: Collection[Series]) -> bool:
    """Whether colours tell runs apart: where no run has more than one file system."""
    runs = [run for _, run in measured]
    return len(set(runs)) == len(measured)


def looks(
    wanted: Mapping[str, str | None], runs: Sequence[str | None], measured: Collection[Series]
) -> dict[str, Line]:
    """The look of each series that was measured (`analysis.curves.series`).

    One run: a colour and a marker for each file system; `wanted` has the colours that they ask for.
    Several: the colour is the file system's, marker and dashes are the run's; where no run has more
    than one file system, all three are the run's.
    """
    colours = lines(wanted)
    if list(runs) == [None]:
        return colours
    if by_run(measured):
        own = lines({str(run): None for run in runs})
        return {series(name, run): own[str(run)] for name, run in measured}
    marks = {run: run_mark(i) for i, run in enumerate(runs)}
    return {
        series(name, run): Line(colours[name].colour, marks[run].marker, marks[run].dashes)
        for name, run in measured
    }


def run_mark(number: int) -> Line:
    """Marker and dashes of a run, in the colour of text, as a legend shows them."""
    return Line(INK.light, MARKERS[number % len(MARKERS)], RUN_DASHES[number % len(RUN_DASHES)])
