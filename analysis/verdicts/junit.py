# SPDX-License-Identifier: GPL-2.0-only
"""The comparison as JUnit XML for CI systems: a test case for each judgement."""

import io
import json

from junitparser import Error, Failure, JUnitXml, Property, Skipped, TestCase, TestSuite

from fscale.analysis.compare import wording
from fscale.analysis.compare.settings import Comparison, Judgement


def render(comparison: Comparison) -> str:
    """The XML: worse verdicts are failures, broken and lost are errors, undecided is skipped."""
    command = "gate" if comparison.policy == "counted" else "compare"
    suite = TestSuite(f"fscale {command} {comparison.base.label} {comparison.new.label}")
    for warning in comparison.warnings:
        suite.add_property("warning", warning)
    for point in comparison.health:
        case = TestCase(point.kind, classname=point.subject.name)
        case.system_out = wording.health(point)
        if point.kind != "mended":
            case.result = [Error(wording.health(point))]
        suite.add_testcase(case)
    for judgement in comparison.judgements:
        suite.add_testcase(_case(judgement))
    for lock in comparison.locks:
        case = TestCase(f"new bottleneck {lock.lock}", classname=lock.subject.name)
        case.system_out = f"{lock.share:.1%} of the cores' time, {lock.base_share:.1%} in BASE"
        suite.add_testcase(case)
    for side, missing in (("BASE", comparison.missing_in_base), ("NEW", comparison.missing_in_new)):
        for name in missing:
            case = TestCase("all", classname=name)
            case.result = [Skipped(f"missing in {side}")]
            suite.add_testcase(case)
    return text_of(suite)


def text_of(*suites: TestSuite) -> str:
    """The XML of suites, with their totals."""
    xml = JUnitXml("fscale")
    for suite in suites:
        # add_testsuite() would search all existing suites for an equal one.
        xml.append(suite)  # type: ignore[no-untyped-call]
    xml.update_statistics()  # type: ignore[no-untyped-call]
    written = io.BytesIO()
    xml.write(written, pretty=True)
    return written.getvalue().decode()


def _case(judgement: Judgement) -> TestCase:
    case = TestCase(judgement.metric, classname=judgement.subject.name)
    said, remark = wording.judgement_line(judgement), wording.remark(judgement)
    if judgement.worse:
        case.result = [Failure(f"{judgement.verdict}: {said}{remark and f'; {remark}'}")]
    elif judgement.verdict == "undecided":
        case.result = [Skipped(f"undecided: {remark}")]
    case.system_out = f"{judgement.verdict}: {said}\n{remark}".strip()
    for name in ("verdict", "ratio", "low", "high", "p", "q"):
        case.append(  # type: ignore[no-untyped-call]
            Property(name, json.dumps(getattr(judgement, name)))
        )
    return case
