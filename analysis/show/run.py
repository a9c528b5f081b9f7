# SPDX-License-Identifier: GPL-2.0-only
"""The output of `fscale show`, from top to bottom."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from fscale.analysis.curves import Page, Panel
from fscale.analysis.metrics import THROUGHPUT
from fscale.analysis.report.section import Report
from fscale.analysis.show import plot, tables
from fscale.analysis.style import lines
from fscale.analysis.sweeps import Sweep, sweeps
from fscale.model import crew
from fscale.model.topology import machine_layout
from fscale.model.words import plural

PANEL = (38, 11)  # columns and lines of one of several plots
LARGEST = (100, 22)  # columns and lines of a single one
OTHERS = 6  # other lines besides a single plot and its table, including the shell's


def drawn(report: Report, width: int, height: int) -> Iterator[RenderableType]:
    """The run's name, the curves of each page, and last, so that it stays visible, the matrix.

    `width` and `height` are the terminal's, in characters; no line is longer than `width`.
    """
    yield _head(report)
    several = len(report.pages) > 1
    for page in report.pages:
        if several:
            yield Text(f"\n{page.title}")
        yield from _page(report, page, width, height)


def _head(report: Report) -> Text:
    results = report.results
    run, machine = results.run, results.run.machine
    kind = "SIMULATED, not measured; " if machine.simulated else ""
    lines = [f"{run.id}: {kind}kernel {machine.kernel}, {machine.identity}"]
    if run.state != "complete":
        lines.append(f"the run is {run.state_shown}: more cells may follow")
    lines += crew.sentences(run)
    if borders := machine_layout(machine).borders:
        lines.append(f"beyond {', '.join(map(str, borders))} cores, slower cores are added")
    unusable = sum(c.status != "ok" for c in results.cells) + len(results.unreadable)
    if unusable:
        lines.append(f"{plural(unusable, 'cell')} without a figure; `fscale report` shows why")
    if disturbed := sum(point.disturbed for point in report.points):
        lines.append(f"{plural(disturbed, 'repetition')} disturbed by other processes")
    lines += [said for kept in report.predicted.values() for said in kept.sentences]
    control = report.controls.get(None)
    if control and control.given and report.metric == THROUGHPUT:
        last = control.given[-1]
        first = plural(control.given[0].cores, "core")
        gain = f"speed-up {last.best.value:.3g} over {first}; " if last.best else ""
        lines.append(
            f"control at {last.cores} cores: {gain}linear is {last.linear * last.efficiency:.3g}, "
            f"by {last.basis.value}"
        )
    return Text("\n".join(lines))


def _page(report: Report, page: Page, width: int, height: int) -> Iterator[RenderableType]:
    marked = plot.marks(page, report.lines)
    panels = page.panels
    if len(page.cores) > 1:
        yield _legend(marked, width, page.predicted)
        if len(panels) == 1:
            left = height - OTHERS - len(panels[0].drawn)
            columns, lines = min(width, LARGEST[0]), min(max(left, PANEL[1]), LARGEST[1])
            yield _plot(panels[0], marked, columns, lines)
        else:
            yield from _plots(panels, marked, width)
    of = "per second" if report.metric == THROUGHPUT else f"of {report.metric}"
    meaning = f"median {of}, and half the spread; !: other processes disturbed it"
    if page.predicted:
        meaning += "; in brackets: predicted, and its interval"
    if len(panels) == 1 or report.metric != THROUGHPUT:
        for panel in panels:
            yield Text("" if len(panels) == 1 else f"\n{panel.name}")
            yield from tables.figures(panel, width)
        yield Text(meaning)
    else:
        yield Text("")
        yield from tables.matrix(page, width)
        if len(page.cores) > 1:
            most = f"speed-up at {page.cores[-1]} cores (†: at fewer)"
            yield Text(f"cores at the peak, {most}, and: {tables.LEGEND}")
        else:
            yield Text(f"median per second at {plural(page.cores[0], 'core')}")
    yield from (Text(f"{panel.name}: {said}") for panel in panels for said in panel.untold)
    found = sweeps([page]) if len(panels) > 1 else []  # a single panel has the curves already
    for sweep in found:
        yield from _sweep(sweep, width)
    if found:
        yield Text(meaning)


def _sweep(sweep: Sweep, width: int) -> Iterator[RenderableType]:
    """The curves by value, and their figures."""
    yield Text("")
    if len(sweep.panel.cores) > 1:
        marked = plot.marks(sweep.alone, lines(dict.fromkeys(sweep.names)))
        yield _legend(marked, width, sweep.alone.predicted)
        yield _plot(sweep.panel, marked, min(width, LARGEST[0]), PANEL[1])
    else:
        yield Text(sweep.name, style="bold")
    yield from tables.figures(sweep.panel, width)


def _plots(
    panels: Sequence[Panel], marked: dict[str, plot.Mark], width: int
) -> Iterator[RenderableType]:
    beside = max(1, (width + tables.GAP) // (PANEL[0] + tables.GAP))
    columns = (width + tables.GAP) // beside - tables.GAP
    for start in range(0, len(panels), beside):
        row = [_plot(p, marked, columns, PANEL[1]) for p in panels[start : start + beside]]
        # A long title takes two lines, and its neighbour's plot stands beside its own.
        places = [Column(width=columns, vertical="bottom") for _ in row]
        grid = Table.grid(*places, padding=(0, tables.GAP, 0, 0), pad_edge=False)
        grid.add_row(*row)
        yield grid


def _plot(panel: Panel, marked: dict[str, plot.Mark], columns: int, lines: int) -> RenderableType:
    title = f"{panel.name}  {panel.title}"
    if columns < plot.MIN_COLUMNS:
        return Text(title)
    return Group(Text(title, style="bold"), plot.curves(panel, marked, columns, lines - 1))


def _legend(marked: dict[str, plot.Mark], width: int, predicted: bool) -> Text:
    """The marks and their names, of which a line ends between two."""
    lines = [Text()]
    shown = marked | ({"predicted": plot.Mark(plot.BEYOND, "default")} if predicted else {})
    for name, mark in shown.items():
        entry = Text.assemble((mark.character, mark.colour), f" {name}  ")
        if lines[-1] and lines[-1].cell_len + entry.cell_len - 2 > width:
            lines.append(Text())
        lines[-1].append_text(entry)
    return Text("\n").join(lines)
