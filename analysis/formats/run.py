# SPDX-License-Identifier: GPL-2.0-only
"""The formats of a run in which an entry is a repetition; `tables` has those of tables.

In all formats a row, test or sample is a repetition. A repetition without a value has a status and
a reason and no figure, never a zero. A disturbed or simulated one is marked as such next to its
figure. Planned cells without a result and unreadable files are counted.
"""

from collections.abc import Callable

from fscale.analysis.formats import googlebenchmark, junit, kcidb, ktap, openmetrics
from fscale.analysis.reader import Results

FORMATS: dict[str, Callable[[Results], str]] = {
    "google-benchmark": googlebenchmark.render,
    "junit": junit.render_run,
    "kcidb": kcidb.render,
    "ktap": ktap.render_run,
    "openmetrics": openmetrics.render,
}
