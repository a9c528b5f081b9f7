# SPDX-License-Identifier: GPL-2.0-only
"""JUnit XML of a comparison of conflicts, for CI systems."""

from junitparser import Failure, TestCase, TestSuite

from fscale.analysis.formats.junit import render
from fscale.commute.compare import Compared, ConflictComparison, summary


def render_conflicts(comparison: ConflictComparison) -> str:
    """A test suite for each file system, a test case for each pair of calls that changed.

    A pair that newly conflicts is a failure. Where none changed, one test case says so.
    """
    return render(*map(_suite, comparison.compared))


def _suite(one: Compared) -> TestSuite:
    suite = TestSuite(f"fscale compare {one.base.filesystem} {one.new.filesystem}")
    suite.add_property("conclusion", summary(one))
    for change in [*one.conflicting, *one.free]:
        case = TestCase(", ".join(change.calls), classname=one.new.filesystem)
        case.system_out = f"{', '.join(change.tests)}\n{', '.join(change.objects)}"
        if change in one.conflicting:
            case.result = [Failure(f"newly conflict at {', '.join(change.objects)}")]
        suite.add_testcase(case)
    if not one.conflicting and not one.free:
        suite.add_testcase(TestCase("all pairs of calls", classname=one.new.filesystem))
    return suite
