# SPDX-License-Identifier: GPL-2.0-only
"""KTAP version 1, as specified in the kernel's Documentation/dev-tools/ktap.rst."""

from collections.abc import Sequence
from dataclasses import dataclass

from fscale.analysis.cells import one_line
from fscale.analysis.compare import wording
from fscale.analysis.compare.model import Comparison
from fscale.analysis.formats.outcome import PointOutcome, Repetition, point_outcomes
from fscale.analysis.formats.verdicts import Outcome, VerdictTest, verdict_tests
from fscale.analysis.reader import Results

_VERSION = "KTAP version 1"
_INDENT = "  "
_DIRECTIVES = {"skipped": "SKIP", "unusable": "ERROR", "absent": "ERROR"}
# Those that fail have a directive, if only an empty one.
_VERDICTS: dict[Outcome, str] = {
    "worse": "",
    "broken": "ERROR",
    "lost": "ERROR",
    "undecided": "SKIP",
    "missing": "SKIP",
}


@dataclass(frozen=True)
class KtapTest:
    """A test: `directive` is SKIP, ERROR or empty, `text` follows it, then `subtests`."""

    name: str
    ok: bool
    directive: str = ""
    text: str = ""
    diagnostics: tuple[str, ...] = ()
    subtests: tuple["KtapTest", ...] = ()


def render_run(results: Results) -> str:
    """A test for each point, a subtest for each repetition.

    A repetition passes if it has a figure; `fscale compare` judges whether the figure is good.
    """
    return _render([_point(group) for group in point_outcomes(results)])


def _point(group: PointOutcome) -> KtapTest:
    """The test of a point: skipped if all repetitions are, failed if one failed."""
    subtests = tuple(_repetition(entry) for entry in group.entries)
    diagnostics = tuple(line for line in (group.variant, group.text) if line)
    skipped = all(entry.outcome == "skipped" for entry in group.entries)
    return KtapTest(
        group.name,
        all(test.ok for test in subtests),
        "SKIP" if skipped else "",
        group.entries[0].text if skipped else "",
        diagnostics,
        subtests,
    )


def _repetition(entry: Repetition) -> KtapTest:
    ok = entry.outcome in ("measured", "skipped")
    return KtapTest(entry.name, ok, _DIRECTIVES.get(entry.outcome, ""), entry.text)


def render_comparison(comparison: Comparison, fail_undecided: bool = False) -> str:
    """A test for each judgement, as in the JUnit XML, and the conclusion.

    Worse verdicts fail, broken and lost are errors, undecided (unless it is to fail) and missing
    are skipped.
    """
    directives = _VERDICTS | ({"undecided": "ERROR"} if fail_undecided else {})
    tests = [_verdict(test, directives.get(test.outcome)) for test in verdict_tests(comparison)]
    version, *lines = _level(tests)
    return "\n".join([version, f"# fscale {wording.conclusion(comparison)}", *lines]) + "\n"


def _verdict(test: VerdictTest, directive: str | None) -> KtapTest:
    return KtapTest(
        f"{test.subject} {test.what}",
        directive in (None, "SKIP"),
        directive or "",
        test.text,
        (test.remark,) if test.remark else (),
    )


def _render(tests: Sequence[KtapTest]) -> str:
    return "\n".join(_level(tests)) + "\n"


def _level(tests: Sequence[KtapTest], name: str = "") -> list[str]:
    lines = [_VERSION, *([f"# Subtest: {_described(name)}"] if name else []), f"1..{len(tests)}"]
    for number, test in enumerate(tests, 1):
        if test.subtests:
            lines += [_INDENT + line for line in _level(test.subtests, test.name)]
        lines += [f"# {one_line(text)}" for text in test.diagnostics]
        tail = one_line(f"{test.directive} {test.text}")
        result = f"{'ok' if test.ok else 'not ok'} {number} {_described(test.name)}"
        lines.append(f"{result} # {tail}" if tail else result)
    return lines


def _described(name: str) -> str:
    """A description, in which # is replaced because it would begin a directive."""
    return one_line(name).replace("#", "_")
