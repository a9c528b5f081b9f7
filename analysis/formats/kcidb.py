# SPDX-License-Identifier: GPL-2.0-only
"""KernelCI's database format, version 5.0 (https://docs.kernelci.org/kcidb/).

In a run a test is a repetition. A measured one is DONE and not PASS, because a figure alone does
not judge the code. In a comparison a test is a verdict on NEW.
"""

from collections.abc import Mapping
from typing import Any

from fscale.analysis.cells import in_order, moment, one_line, simulated
from fscale.analysis.compare import wording
from fscale.analysis.compare.model import Comparison, Judgement, Subject
from fscale.analysis.formats.outcome import Outcome, describe_cell, outcome
from fscale.analysis.formats.submission import (
    Submission,
    describe_kernel,
    make_path,
    make_run_id,
)
from fscale.analysis.formats.verdicts import Outcome as Verdict
from fscale.analysis.formats.verdicts import VerdictTest, verdict_tests
from fscale.analysis.metrics import FAIRNESS, LATENCIES
from fscale.analysis.reader import Results
from fscale.model.files import printable
from fscale.model.results import Cell, Run

_STATUS: dict[Outcome, str] = {
    "measured": "DONE",
    "broken": "FAIL",
    "unusable": "ERROR",
    "skipped": "SKIP",
    "absent": "MISS",
}
_VERDICTS: dict[Verdict, str] = {
    "passed": "PASS",
    "worse": "FAIL",
    "broken": "FAIL",
    "lost": "ERROR",
    "undecided": "SKIP",
    "missing": "SKIP",
}
_SUBJECT_PARTS = 5  # of a subject's name: workload, file system, medium, mode and cores


def render(results: Results, submission: Submission | None = None) -> str:
    """The whole run: one checkout and one build unless they are known, a test per repetition."""
    machine, about = results.run.machine, submission or Submission()
    build = machine.build.version if machine.build else None
    kernel = describe_kernel(machine.kernel, build, machine.architecture)
    builder = _Tests(results.run, about, about.build_of(kernel))
    absent = [builder.absent(u.file, f"unreadable: {u.reason}") for u in results.unreadable]
    if results.missing:
        absent.append(builder.absent("", f"{results.missing} planned cells left no result"))
    tests = [*map(builder.test, in_order(results.cells)), *absent]
    return about.document(kernel, machine.architecture, tests)


class _Tests:
    """Builds the tests of one run on one build."""

    def __init__(self, run: Run, about: Submission, build_id: str) -> None:
        self._measured, self._id = run, about.id
        machine = run.machine
        self._run = make_run_id(run.id, machine.hostname, run.id, run.started)
        self._common = {
            "build_id": build_id,
            "origin": about.origin,
            "environment": {
                "comment": one_line(machine.identity),
                "misc": {
                    "platform": printable(about.platform or machine.host),
                    "cpus": len(machine.cpu_order),
                    "cpus_kept_free": len(machine.kept_free),
                    **({"memory_bytes": machine.memory_bytes} if machine.memory_bytes else {}),
                    "machine": printable(machine.kind),
                    "imported": printable(run.imported or ""),
                },
            },
        }

    def test(self, cell: Cell) -> dict[str, Any]:
        """The test of a repetition."""
        key = cell.key
        test: dict[str, Any] = {
            "id": self._id(f"{self._run}:{cell.id}"),
            **self._common,
            "path": make_path(
                *(key.workload, key.filesystem, key.medium, key.mode, f"{key.cores}c"),
                *key.variant.split(),
            ),
            "status": _STATUS[outcome(cell)],
            "comment": describe_cell(cell),
            "misc": {
                **key.model_dump(),
                "simulated": simulated(self._measured, cell),
                "disturbed": None if cell.disturbed is None else printable(cell.disturbed),
            },
        }
        if cell.wall_seconds is not None:
            test["duration"] = cell.wall_seconds
        if started := moment(cell.started):
            test["start_time"] = started.isoformat()
        if cell.status == "ok" and key.profile is None:
            test["number"] = {
                "value": cell.ops_per_second,
                "unit": f"{cell.unit}/s",
                "prefix": "metric",
            }
        return test

    def absent(self, file: str, reason: str) -> dict[str, Any]:
        """The test for a file or planned cells without a readable repetition."""
        return {
            "id": self._id(f"{self._run}:absent:{file}"),
            **self._common,
            "path": "fscale",
            "status": _STATUS["absent"],
            "comment": one_line(reason),
        }


def render_comparison(
    comparison: Comparison,
    about: Submission,
    architecture: str,
    *,
    fail_undecided: bool = False,
    seconds: Mapping[Subject, float] | None = None,
) -> str:
    """A test per verdict, on the kernel of NEW; `architecture` is that of its machine.

    `seconds` as in `verdict_tests`.
    """
    base, new = comparison.base, comparison.new
    kernel = describe_kernel(new.kernel, new.build, architecture)
    run = make_run_id(new.id, *(f"{side.machine} {side.id} {side.started}" for side in (base, new)))
    statuses = _VERDICTS | ({"undecided": "ERROR"} if fail_undecided else {})
    common: dict[str, Any] = {
        "build_id": about.build_of(kernel),
        "origin": about.origin,
        "environment": {
            "comment": one_line(f"{new.machine} ({new.cpus})"),
            "misc": {
                "platform": printable(about.platform or new.machine),
                "base": base.label,
                "base_kernel": describe_kernel(base.kernel, base.build, architecture),
                "new": new.label,
            },
        },
    }
    if started := moment(new.started):
        common["start_time"] = started.isoformat()
    tests = [
        {
            "id": about.id(f"{run}:{test.subject}:{test.what}"),
            **common,
            "path": make_path(*_place(test.subject.split()), test.what),
            "status": statuses[test.outcome],
            **_details(test),
        }
        for test in verdict_tests(comparison, seconds)
    ]
    return about.document(kernel, architecture, tests)


def _place(subject: list[str]) -> list[str]:
    """The words of a subject's name without its duration."""
    return [*subject[:_SUBJECT_PARTS], *subject[_SUBJECT_PARTS + 1 :]]


def _details(test: VerdictTest) -> dict[str, Any]:
    """The fields of a test that only some have, and its comment."""
    found: dict[str, Any] = {
        "comment": one_line("; ".join(filter(None, [test.text, test.remark]))),
    }
    if test.seconds is not None:
        found["duration"] = test.seconds
    if judgement := test.judgement:
        shown = {"verdict", "ratio", "low", "high", "level", "p", "q", "margin"}
        found["misc"] = judgement.model_dump(include=shown)
        if judgement.new.median is not None:
            found["number"] = {"value": judgement.new.median, **_unit(judgement)}
    return found


def _unit(judgement: Judgement) -> dict[str, str]:
    if judgement.metric in FAIRNESS:
        return {}
    unit = "s" if judgement.metric in LATENCIES else wording.unit(judgement)
    return {"unit": unit, "prefix": "metric"}


def render_unjudged(about: Submission, reason: str, *, build_failed: bool = False) -> str:
    """The only test of a commit without a verdict: SKIP if its build failed, otherwise ERROR."""
    build_id = about.build_of("")
    test = {
        "id": f"{build_id}:unjudged",
        "build_id": build_id,
        "origin": about.origin,
        "path": make_path("bisect"),
        "status": "SKIP" if build_failed else "ERROR",
        "comment": one_line(reason),
    }
    return about.document("", "", [test], **({"status": "FAIL"} if build_failed else {}))
