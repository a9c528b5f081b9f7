# SPDX-License-Identifier: GPL-2.0-only
"""Writes a table as CSV and as JSON (a Tabular Data Resource: schema, rows).

The schema follows https://specs.frictionlessdata.io/table-schema/, which
`pandas.read_json(path, orient="table")` reads with its types; `extDtype` is pandas' own key for
columns that may be empty.
"""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

from fscale.analysis.tables.column import Column, Row, Type, Value

_EXTENSION: dict[Type, str] = {"integer": "Int64", "boolean": "boolean"}


def to_csv(columns: Iterable[Column[Any]], rows: Iterable[Row]) -> str:
    """CSV: a header and the rows; empty means not known."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, [column.name for column in columns], lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _spreadsheet_safe(value) for key, value in row.items()} for row in rows)
    return file.getvalue()


def to_json(columns: Iterable[Column[Any]], rows: Sequence[Row], missing: int) -> str:
    """JSON: `schema` describes the columns, `data` has an object per row.

    `missing`: how many planned cells left no result.
    """
    fields = [
        {"name": c.name, "type": c.type, "description": c.meaning}
        | ({"unit": c.unit} if c.unit else {})
        | ({"extDtype": _EXTENSION[c.type]} if c.type in _EXTENSION else {})
        for c in columns
    ]
    schema = {"fields": fields, "missingCells": missing}
    return json.dumps({"schema": schema, "data": rows}, indent=1) + "\n"


def _spreadsheet_safe(value: Value) -> Value:
    """The value; text that a spreadsheet would read as a formula gets a leading quote."""
    formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@"))
    return f"'{value}" if formula else value
