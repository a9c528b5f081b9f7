# SPDX-License-Identifier: GPL-2.0-only
"""The matrix and the figures of a run as text, no wider than the terminal."""

from collections.abc import Iterator, Sequence

from rich.cells import cell_len, set_cell_size
from rich.table import Table
from rich.text import Text

from fscale.analysis.compare.wording import figure
from fscale.analysis.curves import Curve, Page, Panel
from fscale.analysis.metrics import NAMED
from fscale.analysis.numbers import rate, times
from fscale.analysis.prediction.model import Range
from fscale.analysis.summary import Point

GAP = 2  # columns between columns
LONGEST_NAME = 24

# Lower bound of log(speed-up) / log(linear), sign, colour.
SCALE = ((0.75, "++", "blue"), (0.25, "+", "cyan"), (-0.25, "=", ""), (-0.75, "-", "yellow"))
LOSS = ("--", "red")
LEGEND = "++ near linear, + gains, = no gain, - loses, -- loses much"


def matrix(page: Page, width: int) -> Iterator[Table]:
    """FxMark's Figure 13 with a row for each workload: the cores at the peak, the speed-up, a sign.

    If the table is too wide, it is split into several, one after another. A dagger marks a curve
    without a figure at the page's highest core count. With one core count: throughput.
    """
    rows = [
        (panel.name, [_square(panel.curve(n), page) for n in page.names]) for panel in page.panels
    ]
    yield from tables("workload", page.names, rows, width)


def figures(panel: Panel, width: int) -> Iterator[Table]:
    """The median of each point, with half the spread around it; predicted ones are in brackets."""
    names = [curve.name for curve in panel.curves]
    cells = [
        {cores: _predicted(of) for cores, of in curve.beyond}
        | {p.key.cores: _figure(p) for p in curve.points}
        for curve in panel.curves
    ]
    rows = [
        (str(count), [by_cores.get(count, Text("·")) for by_cores in cells])
        for count in panel.drawn
    ]
    yield from tables("cores", names, rows, width)


def tables(
    corner: str, names: Sequence[str], rows: Sequence[tuple[str, Sequence[Text]]], width: int
) -> Iterator[Table]:
    """The columns, split into as many tables as needed to keep each within `width`."""
    heads = [shortened(name, LONGEST_NAME) for name in names]
    first = max(cell_len(name) for name in (corner, *(shortened(r, LONGEST_NAME) for r, _ in rows)))
    wide = [
        max(cell_len(heads[i]), *(cells[i].cell_len for _, cells in rows))
        for i in range(len(names))
    ]
    start = 0
    while start < len(names):
        end, taken = start + 1, first + GAP + wide[start]
        while end < len(names) and taken + GAP + wide[end] <= width:
            taken += GAP + wide[end]
            end += 1
        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
        table.add_column(corner, no_wrap=True)
        for head in heads[start:end]:
            table.add_column(Text(head), justify="right", no_wrap=True)
        for name, cells in rows:
            table.add_row(Text(shortened(name, LONGEST_NAME)), *cells[start:end])
        yield table
        start = end


def shortened(name: str, most: int) -> str:
    """The name in at most so many columns."""
    return name if cell_len(name) <= most else set_cell_size(name, most - 1) + "…"


def _square(curve: Curve | None, page: Page) -> Text:
    if curve is None:
        return Text("·")
    dagger = "†" if curve.top.key.cores != page.cores[-1] else " "
    if curve.top_speedup is None:
        return Text(f"{rate(curve.peak.median)}{dagger}")
    sign, colour = _sign(curve.share_of_linear)
    speedup = times(curve.top_speedup.value)
    return Text(f"{curve.peak.key.cores}{dagger}{speedup:>6} ").append(f"{sign:<2}", style=colour)


def _sign(share: float | None) -> tuple[str, str]:
    if share is None:
        return "", ""
    return next(((sign, colour) for least, sign, colour in SCALE if share >= least), LOSS)


def _predicted(of: Range) -> Text:
    return Text(f"({rate(of.value)}, {rate(of.low)} to {rate(of.high)})")


def _figure(point: Point) -> Text:
    known = point.n > 1 and point.median > 0
    half = 50 * (point.spread.high - point.spread.low) / point.median if known else 0.0
    spread = f" {half:4.1f}%" if known else ""
    value = figure(point.metric, point.median) if point.metric in NAMED else rate(point.median)
    return Text(f"{value}{spread}{'!' if point.disturbed else ' '}")
