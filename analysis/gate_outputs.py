# SPDX-License-Identifier: GPL-2.0-only
"""The gate's judgements as JUnit XML and Markdown."""

from collections.abc import Sequence

from junitparser import Error, Failure, Skipped, TestCase, TestSuite

from analysis.compare.junit import text_of
from analysis.compare.markdown import cell
from analysis.gate import Judgement


def headline(judgements: Sequence[Judgement]) -> str:
    """What came out, in one line."""
    counts = {
        verdict: sum(j.verdict == verdict for j in judgements)
        for verdict in ("broken", "newly shared", "more", "less", "same", "not judged")
    }
    return ", ".join(f"{n} {verdict}" for verdict, n in counts.items() if n) or "nothing judged"


def junit(judgements: Sequence[Judgement], base: str, new: str) -> str:
    """The XML: more and newly shared fail, broken is an error, what is not judged was skipped."""
    suite = TestSuite(f"fscale gate {base} {new}")
    for judgement in judgements:
        case = TestCase(judgement.metric, classname=judgement.name)
        case.system_out = str(judgement)
        if judgement.verdict == "broken":
            case.result = [Error(str(judgement))]
        elif judgement.bad:
            case.result = [Failure(str(judgement))]
        elif judgement.verdict == "not judged":
            case.result = [Skipped(str(judgement))]
        suite.add_testcase(case)
    return text_of(suite)


def markdown(judgements: Sequence[Judgement], base: str, new: str) -> str:
    """A heading and a table; what fails is bold."""
    lines = [
        f"### fscale gate, simulated: {headline(judgements)}",
        "",
        f"`{base}` (base) against `{new}` (new)",
        "",
        "| verdict | point | count an operation | base | new | lines |",
        "|---|---|---|--:|--:|---|",
    ]
    for j in judgements:
        verdict = f"**{j.verdict}**" if j.bad else j.verdict
        base_text = f"{j.base.median:.4g}" if j.base else ""
        new_text = f"{j.new.median:.4g}" if j.new else ""
        row = (verdict, j.name, j.metric, base_text, new_text, "; ".join(j.lines) or j.reason)
        lines.append(f"| {' | '.join(map(cell, row))} |")
    return "\n".join(lines) + "\n"
