# SPDX-License-Identifier: GPL-2.0-only
"""KernelCI's database format, version 5.0 (https://docs.kernelci.org/kcidb/).

A test is a repetition. A measured one is DONE and not PASS, because a figure alone does not judge
the code. The build and the checkout are described by the kernel's release, because the machine does
not know its source, unless the caller knows them: results then belong to the build or checkout that
a CI submits itself.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

from fscale.analysis.cells import in_order, moment, one_line, simulated
from fscale.analysis.formats.outcome import Outcome, describe_cell, outcome
from fscale.analysis.reader import Results
from fscale.model.errors import FscaleError
from fscale.model.files import printable
from fscale.model.results import Cell, Run

_NAME = "[a-z0-9_]+"
_VERSION = {"major": 5, "minor": 0}
_STATUS: dict[Outcome, str] = {
    "measured": "DONE",
    "broken": "FAIL",
    "unusable": "ERROR",
    "skipped": "SKIP",
    "absent": "MISS",
}


@dataclass(frozen=True)
class Submission:
    """What a CI that submits a run knows about it, and the run does not."""

    origin: str = "fscale"
    """the submitter's name, which KernelCI assigns"""
    checkout_id: str | None = None
    """the checkout of the kernel, which is submitted elsewhere"""
    build_id: str | None = None
    """the build of the kernel, which is submitted elsewhere, with its checkout"""
    platform: str | None = None
    """the name of the machine in the CI; None: its host name"""

    def __post_init__(self) -> None:
        """Check the names.

        Raises:
            FscaleError: KernelCI's schema does not allow one.
        """
        if not re.fullmatch(_NAME, self.origin):
            raise FscaleError(
                f"--origin {printable(self.origin)} is not an origin of KernelCI; give lower-case "
                "letters, digits and underscores"
            )
        for option, text in (("checkout", self.checkout_id), ("build", self.build_id)):
            if text is not None and not re.fullmatch(f"{_NAME}:.+", text):
                raise FscaleError(
                    f"--{option}-id {printable(text)} is not an id of KernelCI; give ORIGIN:NAME, "
                    f"as the {option} was submitted"
                )

    def id(self, text: str) -> str:
        """An id of this submitter."""
        return f"{self.origin}:{text}"


def render(results: Results, submission: Submission | None = None) -> str:
    """The whole run: one checkout and one build unless they are known, a test per repetition."""
    run, about = results.run, submission or Submission()
    kernel = _kernel(run)
    checkout_id = about.checkout_id or about.id(kernel)
    builder = _Tests(run, about, about.build_id or about.id(kernel))
    absent = [builder.absent(u.file, f"unreadable: {u.reason}") for u in results.unreadable]
    if results.missing:
        absent.append(builder.absent("", f"{results.missing} planned cells left no result"))
    comment = f"Linux {kernel}, as the running kernel names itself; its source is not recorded"
    data: dict[str, Any] = {"version": _VERSION}
    if not (about.checkout_id or about.build_id):
        data["checkouts"] = [{"id": checkout_id, "origin": about.origin, "comment": comment}]
    if not about.build_id:
        data["builds"] = [_build(run, about, checkout_id)]
    data["tests"] = [*map(builder.test, in_order(results.cells)), *absent]
    return json.dumps(data, indent=1) + "\n"


def _kernel(run: Run) -> str:
    build = run.machine.build
    named = f"{run.machine.kernel} {build.version}" if build else run.machine.kernel
    return one_line(f"{named} {run.machine.architecture}")


def _build(run: Run, about: Submission, checkout_id: str) -> dict[str, Any]:
    kernel = _kernel(run)
    build = {
        "id": about.id(kernel),
        "checkout_id": checkout_id,
        "origin": about.origin,
        "comment": kernel,
    }
    if re.fullmatch("[a-z0-9_]+", run.machine.architecture):
        build["architecture"] = run.machine.architecture
    return build


class _Tests:
    """Builds the tests of one run on one build."""

    def __init__(self, run: Run, about: Submission, build_id: str) -> None:
        self._measured, self._id = run, about.id
        machine = run.machine
        identity = f"{machine.hostname} {run.id} {run.started}"
        self._run = f"{printable(run.id)}:{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
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
        parts = ("fscale", key.workload, key.filesystem, key.medium, key.mode, f"{key.cores}c")
        test: dict[str, Any] = {
            "id": self._id(f"{self._run}:{cell.id}"),
            **self._common,
            "path": ".".join(re.sub("[^a-zA-Z0-9_-]", "_", part) for part in parts),
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
