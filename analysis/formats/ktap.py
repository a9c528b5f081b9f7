# SPDX-License-Identifier: GPL-2.0-only
"""KTAP: a test for each point, a subtest for each repetition.

A repetition passes if it has a figure; `fscale compare` judges whether the figure is good.
"""

from fscale.analysis import ktap
from fscale.analysis.formats.outcome import Entry, Group, groups
from fscale.analysis.ktap import Test
from fscale.analysis.reader import Results

_DIRECTIVES = {"skipped": "SKIP", "unusable": "ERROR", "absent": "ERROR"}


def render(results: Results) -> str:
    """The whole run."""
    return ktap.render([_point(group) for group in groups(results)])


def _point(group: Group) -> Test:
    """The test of a point: skipped if all repetitions are, failed if one failed."""
    subtests = tuple(_repetition(entry) for entry in group.entries)
    diagnostics = (group.text,) if group.text else ()
    skipped = all(entry.outcome == "skipped" for entry in group.entries)
    return Test(
        group.name,
        all(test.ok for test in subtests),
        "SKIP" if skipped else "",
        group.entries[0].text if skipped else "",
        diagnostics,
        subtests,
    )


def _repetition(entry: Entry) -> Test:
    ok = entry.outcome in ("measured", "skipped")
    return Test(entry.name, ok, _DIRECTIVES.get(entry.outcome, ""), entry.text)
