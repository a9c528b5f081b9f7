# SPDX-License-Identifier: GPL-2.0-only
"""The reference page of the columns of all tables, from the code that fills them."""

from collections.abc import Iterable
from typing import Any

from docs.scripts import table
from fscale.analysis.formats.tables import TABLES
from fscale.analysis.tables import verdicts
from fscale.analysis.tables.column import PLACE, Column
from fscale.commute.tables import TABLES as CONFLICT_TABLES

LEAD = (
    "`fscale.load` gives these tables as pandas DataFrames (`run.points`), and `fscale export "
    "--table` writes them as CSV, JSON and Parquet. A value that is not known is empty. Of the "
    "columns without a unit, numbers are counts and ratios. [Notebooks](../guide/notebooks.md) and "
    "[figures for other programs](../guide/figures-for-other-programs.md) have examples."
)
PLACED = "These columns come first in all tables about cells and points:"


def page() -> str:
    """Markdown, with a section for each table."""
    parts = ["# Columns of the tables", LEAD, PLACED, *_columns(PLACE)]
    for name, described in TABLES.items():
        parts += [f"## {name}", f"A row is {described.row}."]
        if name == "profiled":
            parts.append("It has the columns of [cells](#cells).")
        else:
            parts += _columns(column for column in described.columns if column not in PLACE)
    parts += ["`fscale export` has two tables of results of `fscale commute`, which is no run:"]
    for name, conflicts in CONFLICT_TABLES.items():
        parts += [f"## {name}", f"A row is {conflicts.row}.", *_columns(conflicts.columns)]
    parts += [
        "## Verdicts",
        "`fscale.compare` gives a row for each verdict, and for each point that is good on one "
        "side only.",
        *_columns(verdicts.COLUMNS),
    ]
    return "\n\n".join(parts) + "\n"


def _columns(columns: Iterable[Column[Any]]) -> list[str]:
    rows = [(f"`{one.name}`", one.type, one.unit, one.meaning) for one in columns]
    return ["\n".join(table(("Column", "Type", "Unit", "Meaning"), rows, "---"))]
