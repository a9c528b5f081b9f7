# SPDX-License-Identifier: GPL-2.0-only
"""Makes a pandas DataFrame of a table."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from fscale.analysis.tables.column import Column, Row, Type

_TYPES: dict[Type, str] = {
    "string": "string",
    "integer": "Int64",
    "number": "float64",
    "boolean": "boolean",
}


def make_frame(columns: Sequence[Column[Any]], rows: Sequence[Row]) -> pd.DataFrame:
    """A frame with these rows, which has all columns even if there is no row.

    Its `attrs` have `units` (column -> s, 1/s, ...; no entry for text, counts and shares) and
    `meanings` (column -> what it is).
    """
    made = pd.DataFrame(
        {c.name: pd.Series([row[c.name] for row in rows], dtype=_TYPES[c.type]) for c in columns}
    )
    made.attrs["units"] = {c.name: c.unit for c in columns if c.unit}
    made.attrs["meanings"] = {c.name: c.meaning for c in columns}
    return made
