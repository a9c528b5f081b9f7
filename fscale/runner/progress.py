# SPDX-License-Identifier: GPL-2.0-only
"""Shows how long a run will take, its progress, and the table at its end."""

import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from fscale.model.results import Cell, CellKey
from fscale.model.tables import Column, Row, Table
from fscale.model.terminal import terminal
from fscale.model.words import natural, plural

# Seconds per cell for mkfs, mount, set-up and unmount: `make run` on two cores took 422 s for 304
# cells of 0.6 s, with build and report.
FRESH = 0.8


def duration(seconds: float) -> str:
    """Format seconds as `1:02:03` or `2:03`."""
    minutes, secs = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{secs:02}" if hours else f"{minutes}:{secs:02}"


def estimate_seconds(cells: Sequence[CellKey], warmup: float) -> float:
    """Estimate the seconds that cells take, each with `warmup` seconds, without restocking."""
    return sum(FRESH + warmup + cell.duration for cell in cells)


def format_estimate(cells: Sequence[CellKey], warmup: float) -> str:
    """Format the estimate: `304 cells to measure: about 7:06, plus restocking`."""
    about = duration(estimate_seconds(cells, warmup))
    return f"{len(cells)} cells to measure: about {about}, plus restocking"


class Reporter:
    """Shows a progress bar on a terminal, else one line per cell; both on standard error."""

    def __init__(self, total: int, done: int) -> None:
        self.console = terminal(error=True)
        self._total = total
        self._done = done
        self._measured = 0
        self._started = time.monotonic()
        self._live: Progress | None = None

    def __enter__(self) -> "Reporter":
        if sys.stderr.isatty():
            self._live = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[left]} left"),
                console=self.console,
                auto_refresh=False,  # a refresh in the timed window would cost CPU time
            )
            self._task = self._live.add_task("", total=self._total, completed=self._done, left="?")
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def again(self, keys: Sequence[CellKey]) -> None:
        """Show that so many more cells follow, which are measured again."""
        self._total += len(keys)
        if self._live:
            self._live.update(self._task, total=self._total)
        self.say(f"measuring {plural(len(keys), 'cell')} again")

    def begins(self, key: CellKey) -> None:
        """Show that a cell begins."""
        if self._live:
            self._live.update(self._task, description=_name(key), left=self._left())
            self._live.refresh()

    def ends(self, cell: Cell) -> None:
        """Show that a cell has ended."""
        self._done += 1
        self._measured += 1
        trouble = cell.status not in ("ok", "skipped") or cell.disturbed
        if self._live:
            self._live.update(self._task, completed=self._done, left=self._left())
            if trouble:
                self.console.print(_line(cell), markup=False)
        else:
            place = f"[{self._done}/{self._total}, {self._left()} left]"
            self.console.print(f"{place} {_line(cell)}", markup=False, soft_wrap=True)

    def say(self, text: str) -> None:
        """Show a message."""
        self.console.print(text, markup=False, soft_wrap=True)

    def _left(self) -> str:
        if not self._measured:
            return "?"
        each = (time.monotonic() - self._started) / self._measured
        return duration(each * (self._total - self._done))


def _name(key: CellKey) -> str:
    mode = "" if key.mode == "buffered" else f" {key.mode}"
    profile = f" ({key.profile})" if key.profile else ""
    where = f"{key.load} {key.filesystem}{mode} x{key.cores}"
    return f"{where} r{key.repetition}{profile}"


def _line(cell: Cell) -> str:
    if cell.status == "ok":
        text = f"{_name(cell.key)}: {cell.ops_per_second:,.0f} {cell.unit}/s"
        return f"{text} (disturbed: {cell.disturbed})" if cell.disturbed else text
    return f"{_name(cell.key)}: {cell.status}: {cell.reason or 'no reason given'}"


def summary(cells: Iterable[Cell]) -> Table:
    """Make a table of median rates: rows are workloads, columns file systems at core counts."""
    rates: dict[tuple[str, str], dict[tuple[str, str, int], list[float]]] = {}
    for cell in cells:
        if cell.status == "ok" and not cell.key.profile and not cell.key.control:
            row = rates.setdefault((cell.key.load, cell.key.mode), {})
            column = (cell.key.medium, cell.key.filesystem, cell.key.cores)
            row.setdefault(column, []).append(cell.ops_per_second)
    columns = sorted({column for row in rates.values() for column in row})
    # Show the smallest and the largest core count only; the report has the whole curve.
    ends: dict[tuple[str, str], set[int]] = {}
    for medium, fs, cores in columns:
        ends.setdefault((medium, fs), set()).add(cores)
    columns = [c for c in columns if c[2] in (min(ends[c[:2]]), max(ends[c[:2]]))]
    heads = [
        Column(f"{fs} x{cores}" if medium == "none" else f"{fs} {medium} x{cores}", right=True)
        for medium, fs, cores in columns
    ]
    rows = [
        Row(
            [
                load if mode == "buffered" else f"{load} {mode}",
                *(_short(statistics.median(row[c])) if c in row else "" for c in columns),
            ]
        )
        for (load, mode), row in sorted(rates.items(), key=lambda one: natural(" ".join(one[0])))
    ]
    return Table([Column("workload"), *heads], rows)


def _short(rate: float) -> str:
    for unit, size in (("M", 1e6), ("K", 1e3)):
        if rate >= size:
            return f"{rate / size:.3g}{unit}"
    return f"{rate:.3g}"


def tally(cells: Iterable[Cell]) -> str:
    """Format the number of cells by status: `150 ok, 2 error; 3 disturbed by other load`.

    Cells that were measured again follow: `; 5 measured again`.
    """
    listed = list(cells)
    counts = Counter(cell.status for cell in listed)
    parts = [f"{n} {status}" for status, n in counts.most_common()]
    disturbed = sum(cell.disturbed is not None for cell in listed)
    again = sum(cell.replaces is not None for cell in listed)
    remarks = {"disturbed by other load": disturbed, "measured again": again}
    return "; ".join([", ".join(parts), *(f"{n} {what}" for what, n in remarks.items() if n)])
