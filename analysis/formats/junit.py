# SPDX-License-Identifier: GPL-2.0-only
"""JUnit XML for CI systems."""

import io
from collections.abc import Mapping

from junitparser import Error, Failure, JUnitXml, Properties, Property, Skipped, TestCase, TestSuite

from fscale.analysis.compare import wording
from fscale.analysis.compare.model import Comparison, Subject
from fscale.analysis.formats.outcome import Outcome, PointOutcome, Repetition, point_outcomes
from fscale.analysis.formats.verdicts import Outcome as Verdict
from fscale.analysis.formats.verdicts import VerdictTest, verdict_tests
from fscale.analysis.reader import Results
from fscale.model.files import printable

_RESULTS: dict[Outcome, type[Error | Failure | Skipped]] = {
    "broken": Failure,
    "unusable": Error,
    "absent": Error,
    "skipped": Skipped,
}


_VERDICTS: dict[Verdict, type[Error | Failure | Skipped]] = {
    "worse": Failure,
    "broken": Error,
    "lost": Error,
    "undecided": Skipped,
    "missing": Skipped,
}


def render_run(results: Results) -> str:
    """A test suite for each point, a test case for each repetition.

    Broken is a failure, unusable or absent an error, skipped is skipped.
    """
    return render(*(_suite(results, group) for group in point_outcomes(results)))


def _suite(results: Results, group: PointOutcome) -> TestSuite:
    suite = TestSuite(group.name)
    suite.hostname = printable(results.run.machine.hostname)
    suite.timestamp = results.run.started
    suite.add_property("kernel", printable(results.run.machine.kernel))
    suite.add_property("machine", printable(results.run.machine.kind))
    if results.run.imported:
        suite.add_property("imported", printable(results.run.imported))
    if group.variant:
        suite.add_property("options", group.variant)
    if group.text:
        suite.add_property("throughput", group.text)
    for entry in group.entries:
        suite.add_testcase(_repetition(group.name, entry))
    return suite


def _repetition(point: str, entry: Repetition) -> TestCase:
    case = TestCase(entry.name, classname=point, time=entry.seconds)
    if entry.outcome in _RESULTS:
        case.result = [_RESULTS[entry.outcome](entry.text)]
    case.system_out = entry.text
    return case


def render_comparison(
    comparison: Comparison,
    fail_undecided: bool = False,
    seconds: Mapping[Subject, float] | None = None,
) -> str:
    """A test case for each judgement; `seconds` as in `verdict_tests`.

    Worse verdicts are failures, broken and lost are errors. Undecided is skipped, which dashboards
    count apart from passes, or an error if it is to fail.
    """
    command = "gate" if comparison.policy == "counted" else "compare"
    suite = TestSuite(f"fscale {command} {comparison.base.label} {comparison.new.label}")
    suite.hostname = comparison.new.machine
    suite.timestamp = comparison.new.started
    suite.add_property("conclusion", wording.conclusion(comparison))
    for warning in comparison.warnings:
        suite.add_property("warning", warning)
    results = _VERDICTS | ({"undecided": Error} if fail_undecided else {})
    for test in verdict_tests(comparison, seconds):
        suite.add_testcase(_verdict(test, results.get(test.outcome)))
    return render(suite)


def _verdict(test: VerdictTest, result: type[Error | Failure | Skipped] | None) -> TestCase:
    case = TestCase(test.what, classname=test.subject, time=test.seconds)
    if result:
        case.result = [result("; ".join(filter(None, [test.text, test.remark])))]
    case.system_out = f"{test.text}\n{test.remark}".strip()
    if test.judgement:
        properties = Properties()  # type: ignore[no-untyped-call]
        for name in ("verdict", "ratio", "low", "high", "p", "q"):
            if (value := getattr(test.judgement, name)) is not None:
                properties.add_property(Property(name, str(value)))
        case.append(properties)  # type: ignore[no-untyped-call]
    return case


def render(*suites: TestSuite) -> str:
    """The XML of suites, with their totals."""
    xml = JUnitXml("fscale")
    for suite in suites:
        # add_testsuite() would search all existing suites for an equal one.
        xml.append(suite)  # type: ignore[no-untyped-call]
    xml.update_statistics()  # type: ignore[no-untyped-call]
    written = io.BytesIO()
    xml.write(written, pretty=True)
    return written.getvalue().decode()
