# SPDX-License-Identifier: GPL-2.0-only
"""Tables of a terminal: a cell is never cut; a column without room moves below its row."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Column as Place
from rich.table import Table as Grid
from rich.text import Text

_GAP = 2  # columns between columns
_INDENT = 4
_BROKEN = 16  # fewest columns of a broken word


@dataclass(frozen=True)
class Column:
    """A column of a table.

    The column with the largest `rank` is the first to move below the rows. Rank 0 stays, and wraps
    at blanks if it has to, the widest first; only where a word has no room the last one moves, too.
    """

    title: str
    rank: int = 0
    right: bool = False
    label: str | None = None
    """what precedes a value below the row; None: the title"""
    breaks: bool = False
    """whether a long word, such as a path, may be broken"""


@dataclass(frozen=True)
class Row:
    """A row; below it, cells without room and remarks stand as a list."""

    cells: Sequence[str]
    style: str = ""


@dataclass(frozen=True)
class Table:
    """Columns and rows, laid out for the width of the console that prints them."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    header: bool = True

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        used = [
            n
            for n, column in enumerate(self.columns)
            if not column.rank or any(row.cells[n] for row in self.rows)
        ]
        widths = {n: self._width(n) for n in used}
        while _total(widths) > options.max_width:
            last = max(widths, key=lambda n: self.columns[n].rank)
            if not self.columns[last].rank:
                break
            del widths[last]
        while (least := self._squeezed(console, widths, options.max_width)) is None:
            widths.popitem()
        widths = least
        below = [n for n in used if n not in widths]
        if self.header:
            titles = [Text(self.columns[n].title) for n in widths]
            yield self._line(titles, widths, "bold")
        for row in self.rows:
            if widths:
                yield self._line([Text(row.cells[n]) for n in widths], widths, row.style)
            if text := "; ".join(self._below(row, below)):
                yield Padding(Text(text), (0, 0, 0, min(_INDENT, options.max_width // 8)))

    def _width(self, number: int) -> int:
        titles = [self.columns[number].title] if self.header else []
        return max(map(cell_len, [*titles, *(row.cells[number] for row in self.rows)]))

    def _squeezed(
        self, console: Console, widths: dict[int, int], most: int
    ) -> dict[int, int] | None:
        """Narrow the widest column as far as its longest word, then the next; None: no room."""
        narrow = dict(widths)
        for number in sorted(widths, key=lambda n: -widths[n]):
            if (excess := _total(narrow) - most) <= 0:
                break
            column = self.columns[number]
            texts = [column.title, *(row.cells[number] for row in self.rows)]
            longest = max(Measurement.get(console, console.options, Text(t)).minimum for t in texts)
            least = _BROKEN if column.breaks or len(widths) == 1 else longest
            narrow[number] = max(min(least, longest), narrow[number] - excess)
        return narrow if _total(narrow) <= most or len(narrow) == 1 else None

    def _line(self, cells: Sequence[Text], widths: dict[int, int], style: str) -> Grid:
        places = [
            Place(
                width=width, justify="right" if self.columns[n].right else "left", overflow="fold"
            )
            for n, width in widths.items()
        ]
        grid = Grid.grid(*places, padding=(0, _GAP, 0, 0), pad_edge=False)
        grid.add_row(*cells, style=style)
        return grid

    def _below(self, row: Row, numbers: Sequence[int]) -> Iterator[str]:
        for number in numbers:
            if value := row.cells[number]:
                column = self.columns[number]
                label = column.title if column.label is None else column.label
                yield f"{label} {value}" if label else value


def _total(widths: dict[int, int]) -> int:
    return sum(widths.values()) + _GAP * (len(widths) - 1)
