# SPDX-License-Identifier: GPL-2.0-only
"""A run in the formats of other programs: one file a format.

What is common to all: a row, test or sample is a repetition. A repetition without a value has a
status and a reason and no figure, never a zero; a disturbed or simulated one says so beside its
figure; what was planned or cannot be read is counted. `fxmark` reads, all others write.
"""

from collections.abc import Callable

from analysis.formats import googlebenchmark, junit, kcidb, ktap, openmetrics, table
from analysis.reader import Results

FORMATS: dict[str, Callable[[Results], str]] = {
    "csv": table.to_csv,
    "json": table.to_json,
    "google-benchmark": googlebenchmark.render,
    "junit": junit.render,
    "kcidb": kcidb.render,
    "ktap": ktap.render,
    "openmetrics": openmetrics.render,
}
