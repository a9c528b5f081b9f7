# SPDX-License-Identifier: GPL-2.0-only
"""What a command that measured cells prints at its end."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from fscale.model.results import Cell
from fscale.runner.progress import summary, tally


def print_cells(console: Console, cells: Sequence[Cell], directory: Path) -> None:
    """Print the table of rates, what they say about scaling, and how the cells ended."""
    rates = summary(cell for cell in cells if cell.key.side is None)
    if rates.rows:
        from fscale.analysis.conclusion import sentences  # noqa: PLC0415 - imports numpy
        from fscale.analysis.reader import load  # noqa: PLC0415

        console.print("Operations per second (median)")
        console.print(rates)
        for sentence in sentences(load(directory)):
            console.print(f"fscale: {sentence}", style="bold")
    console.print(f"{tally(cells)}; results are in {directory}", soft_wrap=True)
