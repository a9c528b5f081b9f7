# SPDX-License-Identifier: GPL-2.0-only
"""JUnit XML: a test suite for each point, a test case for each repetition."""

from junitparser import Error, Failure, Skipped, TestCase, TestSuite

from fscale.analysis.formats.outcome import Entry, Group, Outcome, groups
from fscale.analysis.reader import Results
from fscale.analysis.verdicts.junit import text_of
from fscale.model.files import printable

_RESULTS: dict[Outcome, type[Error | Failure | Skipped]] = {
    "broken": Failure,
    "unusable": Error,
    "absent": Error,
    "skipped": Skipped,
}


def render(results: Results) -> str:
    """The XML: broken is a failure, unusable or absent an error, skipped is skipped."""
    return text_of(*(_suite(results, group) for group in groups(results)))


def _suite(results: Results, group: Group) -> TestSuite:
    suite = TestSuite(group.name)
    suite.hostname = printable(results.run.machine.hostname)
    suite.add_property("kernel", printable(results.run.machine.kernel))
    suite.add_property("machine", printable(results.run.machine.kind))
    if results.run.imported:
        suite.add_property("imported", printable(results.run.imported))
    if group.text:
        suite.add_property("throughput", group.text)
    for entry in group.entries:
        suite.add_testcase(_case(group.name, entry))
    return suite


def _case(point: str, entry: Entry) -> TestCase:
    case = TestCase(entry.name, classname=point, time=entry.seconds)
    if entry.outcome in _RESULTS:
        case.result = [_RESULTS[entry.outcome](entry.text)]
    case.system_out = entry.text
    return case
