# SPDX-License-Identifier: GPL-2.0-only
"""What `fscale export` writes of a run in memory."""

from fscale.analysis.formats.run import FORMATS
from fscale.analysis.formats.tables import TABLE_FORMATS, TABLES, missing_cells
from fscale.analysis.members import Member
from fscale.analysis.reader import Results


def exported(results: Results, form: str, table: str = "cells") -> str:
    """Its text in a format of repetitions, or a table as CSV or JSON."""
    if form in FORMATS:
        return FORMATS[form](results)
    members, filled = (Member(results),), TABLES[table]
    text = TABLE_FORMATS[form](filled.columns, filled.rows(members), missing_cells(members))
    assert isinstance(text, str)
    return text
