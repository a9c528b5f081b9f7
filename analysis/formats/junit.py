# SPDX-License-Identifier: GPL-2.0-only
"""JUnit XML for CI systems."""

import io
import json

from junitparser import Error, Failure, JUnitXml, Property, Skipped, TestCase, TestSuite

from fscale.analysis.compare import wording
from fscale.analysis.compare.model import Comparison, Judgement
from fscale.analysis.formats.outcome import Outcome, PointOutcome, Repetition, point_outcomes
from fscale.analysis.reader import Results
from fscale.model.files import printable

_RESULTS: dict[Outcome, type[Error | Failure | Skipped]] = {
    "broken": Failure,
    "unusable": Error,
    "absent": Error,
    "skipped": Skipped,
}


def render_run(results: Results) -> str:
    """A test suite for each point, a test case for each repetition.

    Broken is a failure, unusable or absent an error, skipped is skipped.
    """
    return _render(*(_suite(results, group) for group in point_outcomes(results)))


def _suite(results: Results, group: PointOutcome) -> TestSuite:
    suite = TestSuite(group.name)
    suite.hostname = printable(results.run.machine.hostname)
    suite.add_property("kernel", printable(results.run.machine.kernel))
    suite.add_property("machine", printable(results.run.machine.kind))
    if results.run.imported:
        suite.add_property("imported", printable(results.run.imported))
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


def render_comparison(comparison: Comparison, fail_undecided: bool = False) -> str:
    """A test case for each judgement.

    Worse verdicts are failures, broken and lost are errors. Undecided is skipped, which dashboards
    count apart from passes, or an error if it is to fail.
    """
    command = "gate" if comparison.policy == "counted" else "compare"
    suite = TestSuite(f"fscale {command} {comparison.base.label} {comparison.new.label}")
    suite.add_property("conclusion", wording.conclusion(comparison))
    for warning in comparison.warnings:
        suite.add_property("warning", warning)
    for point in comparison.health:
        case = TestCase(point.kind, classname=point.subject.name)
        case.system_out = wording.health(point)
        if point.kind != "mended":
            case.result = [Error(wording.health(point))]
        suite.add_testcase(case)
    for judgement in comparison.judgements:
        suite.add_testcase(_judgement(judgement, fail_undecided))
    for lock in comparison.locks:
        case = TestCase(f"{lock.kind} {lock.lock}", classname=lock.subject.name)
        case.system_out = wording.lock_change(lock)
        suite.add_testcase(case)
    for side, missing in (("BASE", comparison.missing_in_base), ("NEW", comparison.missing_in_new)):
        for name in missing:
            case = TestCase("all", classname=name)
            case.result = [Skipped(f"missing in {side}")]
            suite.add_testcase(case)
    return _render(suite)


def _judgement(judgement: Judgement, fail_undecided: bool) -> TestCase:
    case = TestCase(judgement.metric, classname=judgement.subject.name)
    line, remark = wording.judgement_line(judgement), wording.remark(judgement)
    if judgement.worse:
        case.result = [Failure(f"{judgement.verdict}: {line}{remark and f'; {remark}'}")]
    elif judgement.verdict == "undecided":
        kind = Error if fail_undecided else Skipped
        case.result = [kind(f"undecided: {wording.change(judgement.ratio)}; {remark}")]
    case.system_out = f"{judgement.verdict}: {line}\n{remark}".strip()
    for name in ("verdict", "ratio", "low", "high", "p", "q"):
        case.append(  # type: ignore[no-untyped-call]
            Property(name, json.dumps(getattr(judgement, name)))
        )
    return case


def _render(*suites: TestSuite) -> str:
    """The XML of suites, with their totals."""
    xml = JUnitXml("fscale")
    for suite in suites:
        # add_testsuite() would search all existing suites for an equal one.
        xml.append(suite)  # type: ignore[no-untyped-call]
    xml.update_statistics()  # type: ignore[no-untyped-call]
    written = io.BytesIO()
    xml.write(written, pretty=True)
    return written.getvalue().decode()
